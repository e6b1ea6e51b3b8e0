"""Writes the runs beside it: a tiny Llama in torch with its program, and in ONNX Runtime in float32 and 8 bits. Needs torch, transformers, onnx, onnxscript,
onnxruntime and safetensors:

    python internal/judge/testdata/int8/generate.py
"""

import copy
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2] / "exam" / "archs"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import record  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from feeds import Feed, Inputs  # noqa: E402
from onnxruntime import quantization as q  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

SIZES = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
TAPPED = []  # layer and port of each tensor that Tapped returns


class Live(record.Recorder):
    def _copy(self, layer, port, t):
        return t.detach().clone()


class Tapped(torch.nn.Module):
    """Returns what all modules got and returned."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        recorder = Live(self.model)
        self.model(input_ids=ids, use_cache=False)
        records = recorder.take()
        recorder.remove()
        TAPPED[:] = [(layer, port) for layer, port, _ in records]
        return tuple(t for _, _, t in records)


class Once(q.CalibrationDataReader):
    def __init__(self, ids):
        self.inputs = iter([{"ids": ids.numpy()}])

    def get_next(self):
        return next(self.inputs, None)


def main():
    for old in HERE.glob("*/"):
        shutil.rmtree(old)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    config = transformers.LlamaConfig(**SIZES, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).eval()
    for p in model.parameters():
        p.data = p.data + 0.3 * torch.randn_like(p) if p.ndim < 2 else torch.randn_like(p) / p.shape[-1] ** 0.5
    ids = torch.randint(0, 32, (1, 7))
    feed = Feed([Inputs(input_ids=ids)], {"use_cache": False})
    record.write(HERE / "ref", "run", record.run(model, feed), "float32")
    record.write_program(HERE / "ref", "run", model, feed)
    save_file(model.state_dict(), HERE / "weights.safetensors")
    right = export(model, ids)
    write("float32", right, ids)
    write("dynamic", dynamic(right), ids)
    write("channels", dynamic(right, per_channel=True, reduce_range=True), ids)
    write("static", eight(right, q.quantize_static, Once(ids), op_types_to_quantize=["MatMul"]), ids)
    for name in ("mlp.up_proj", "self_attn.q_proj"):
        wrong = copy.deepcopy(model)
        wrong.model.layers[0].get_submodule(name).weight.data *= 1.05
        write(name, dynamic(export(wrong, ids)), ids)


def export(model, ids):
    exported = torch.export.export(Tapped(model).eval(), (ids,), strict=False)
    return torch.onnx.export(exported, (), dynamo=True, input_names=["ids"], output_names=[f"{layer}-{port}" for layer, port in TAPPED]).model_proto


def dynamic(model, **how):
    return eight(model, q.quantize_dynamic, weight_type=q.QuantType.QInt8, **how)


def eight(model, quantize, *args, **how):
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "eight.onnx"
        quantize(model, str(path), *args, **how)
        return onnx.load(str(path))


def write(name, model, ids):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    out = session.run(None, {"ids": ids.numpy()})
    record.write(HERE / name, "run", [[(*at, torch.from_numpy(np.array(t))) for at, t in zip(TAPPED, out)]], None)


if __name__ == "__main__":
    main()
