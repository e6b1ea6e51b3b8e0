# engine.py: every module's output in ONNX Runtime.
import ast, os

import numpy as np, onnx, onnxruntime

CAN = {"does": "a candidate: ONNX Runtime", "packages": ["onnxruntime", "onnx"], "tasks": ["embeddings"], "encodings": ["float32"],
       "paths": [], "settings": [], "records": []}


def check(job):
    pass


def load(job, out, cases):
    model = onnx.load(os.path.join(os.path.dirname(__file__), "model.onnx"))
    # The last node of a module computes its output; torch's exporter says of each node in which modules it is.
    layers = {}
    for node in model.graph.node:
        for p in node.metadata_props:
            if p.key == "pkg.torch.onnx.name_scopes":
                for module in ast.literal_eval(p.value)[1:-1]:
                    layers[f"model.{module}-output"] = node.output[0]
    layers["model-output_last_hidden_state"] = model.graph.output[0].name
    known = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in dict.fromkeys(layers.values()) if n not in known)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]), layers


def run(model, dump, case):
    session, layers = model
    x = np.array(dump.token_ids(), dtype=np.int64)
    values = session.run(list(layers.values()), {"input_ids": x, "attention_mask": np.ones_like(x)})
    dump.tensors(0, dict(zip(layers, values)))


def weights(model):
    return []
