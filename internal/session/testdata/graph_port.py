"""graph_port.py FAULT JOB: a decoder with a cache and a sliding window as an own max.graph, for any path.

FAULT is none, position (decode steps are rotated by one position less) or window (after a cache one
token less is seen). MODEL is a folder of MistralForCausalLM beside this file's working directory.
"""

import json
import os
import sys

import numpy as np
from max.driver import CPU
from max.dtype import DType
from max.engine import InferenceSession
from max.graph import DeviceRef, Graph, TensorType, ops
from safetensors.numpy import load_file

fault, job_file = sys.argv[1:]
with open(job_file, encoding="utf-8") as f:
    job = json.load(f)
with open("model/config.json", encoding="utf-8") as f:
    config = json.load(f)
weights = load_file("model/model.safetensors")
heads, kv, hidden = config["num_attention_heads"], config["num_key_value_heads"], config["hidden_size"]
layers, size, window, eps = config["num_hidden_layers"], hidden // heads, config["sliding_window"], config["rms_norm_eps"]
device, f32 = DeviceRef.CPU(), DType.float32


def graph():
    """Returns the compiled model and the labels of its outputs; the new caches come first."""
    inputs = [TensorType(DType.int64, ["n"], device), TensorType(f32, ["n", size], device), TensorType(f32, ["n", size], device),
              TensorType(f32, ["n", "t"], device)] + [TensorType(f32, [kv, "m", size], device)] * (2 * layers)  # fmt: skip
    with Graph("port", input_types=inputs) as g:
        ids, cos, sin, mask, *past = [v.tensor for v in g.inputs]
        made, caches = {}, []

        def keep(layer, value):
            made[f"{layer}-output"] = value
            return value

        def constant(name):
            return ops.constant(np.ascontiguousarray(weights[name + ".weight"]), f32, device=device)

        def linear(layer, x):
            return keep(layer, ops.matmul(x, ops.transpose(constant(layer), 0, 1)))

        def norm(layer, x):
            return keep(layer, x * ops.rsqrt(ops.mean(x * x, axis=-1) + eps) * constant(layer))

        def split(x, n):
            return ops.permute(ops.reshape(x, ["n", n, size]), [1, 0, 2])

        def rotate(x):
            half = size // 2
            turned = ops.concat([-x[:, :, half:], x[:, :, :half]], 2)
            return x * ops.unsqueeze(cos, 0) + turned * ops.unsqueeze(sin, 0)

        def attend(layer, x, keys, values):
            q = rotate(split(linear(layer + ".q_proj", x), heads))
            k = rotate(split(linear(layer + ".k_proj", x), kv))
            v = split(linear(layer + ".v_proj", x), kv)
            k, v = (ops.rebind(ops.concat(p, 1), [kv, "t", size]) for p in ([keys, k], [values, v]))
            caches.extend([k, v])
            k, v = (ops.concat([x[h // (heads // kv) : h // (heads // kv) + 1] for h in range(heads)], 0) for x in (k, v))
            p = ops.softmax(ops.matmul(q, ops.transpose(k, 1, 2)) * size**-0.5 + ops.unsqueeze(mask, 0))
            out = ops.reshape(ops.permute(ops.matmul(p, v), [1, 0, 2]), ["n", hidden])
            return keep(layer, linear(layer + ".o_proj", out))

        x = keep("model.embed_tokens", ops.gather(constant("model.embed_tokens"), ids, axis=0))
        for i in range(layers):
            layer = f"model.layers.{i}"
            x = x + attend(layer + ".self_attn", norm(layer + ".input_layernorm", x), past[2 * i], past[2 * i + 1])
            h = norm(layer + ".post_attention_layernorm", x)
            h = ops.silu(linear(layer + ".mlp.gate_proj", h)) * linear(layer + ".mlp.up_proj", h)
            x = keep(layer, x + keep(layer + ".mlp", linear(layer + ".mlp.down_proj", h)))
        linear("lm_head", norm("model.norm", x))
        g.output(*caches, *made.values())
    return InferenceSession(devices=[CPU()]).load(g), list(made)


model, labels = graph()


def forward(tokens, start, caches):
    """Returns the caches and the values by label, for tokens at positions from start on."""
    at = np.arange(start, start + len(tokens))
    turned = at - 1 if fault == "position" and start else at
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    angles = turned[:, None] * theta ** (-np.arange(0, size, 2) / size)
    angles = np.concatenate([angles, angles], 1)
    after = at[:, None] - np.arange(start + len(tokens))
    seen = (after >= 0) & (after < window - (fault == "window" and start > 0))
    mask = np.where(seen, 0, -1e9)
    given = [np.ascontiguousarray(a, dtype="f4") for a in (np.cos(angles), np.sin(angles), mask, *caches)]
    made = [np.from_dlpack(v).copy() for v in model.execute(np.array(tokens), *given)]
    return made[: 2 * layers], dict(zip(labels, made[2 * layers :]))


empty = [np.zeros((kv, 0, size))] * (2 * layers)
out = job["out"] + ".tmp"
for case in job["cases"]:
    ids = case["token_ids"]
    passes = case.get("passes") or [[{"sequence": s, "from": 0, "to": len(t)}] for s, t in enumerate(ids[:1])]
    caches, order = {}, []
    for k, items in enumerate(passes):
        values = {}
        for item in items:  # ragged rows, one sequence after the other
            s, a, b = item["sequence"], item["from"], item["to"]
            before = caches[s] if a and not item.get("fresh") else empty
            caches[s], rows = forward(ids[s][a:b], a, before)
            for label, v in rows.items():
                values.setdefault(label, []).append(v)
        os.makedirs(f"{out}/{case['name']}/{k}")
        for label, v in values.items():
            np.save(f"{out}/{case['name']}/{k}/{label}.npy", np.concatenate(v))
            order.append([str(k), *label.rsplit("-", 1), label + ".npy"])
    run = {"schema": 2, "engine": "max.graph", "device": job["device"], "encoding": "float32", "case": case["name"], "token_ids": ids, "nonce": job["nonce"], "order": order}
    if "passes" in case:
        run |= {"path": case["path"], "passes": passes}
    with open(f"{out}/{case['name']}/run.json", "w", encoding="utf-8") as f:
        json.dump(run, f)
os.rename(out, job["out"])
