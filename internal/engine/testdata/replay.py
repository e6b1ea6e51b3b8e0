"""Replays a program.json with torch: what each value was."""

import base64
import json
import os

import torch

from goparity import safetensors, torchhooks

DTYPES = {str(d).removeprefix("torch."): d for d in [*torchhooks.DTYPES, torch.complex64, torch.complex128]}
CODES = {code: dtype for dtype, code in torchhooks.DTYPES.items()}


def replay(folder, weights):
    """The program, and its values as torch computes them anew."""
    with open(os.path.join(folder, "program.json"), encoding="utf-8") as f:
        program = json.load(f)
    kept = safetensors.read(os.path.join(folder, "program.safetensors"))
    env = [_source(v, kept, weights) for v in program["values"]]
    assert [v["id"] for v in program["values"]] == list(range(len(env)))
    for i, op in enumerate(program["ops"]):
        made = _call(op, program["values"], env)
        for out, t in zip(op["out"], made):
            if out is None:
                continue
            value = program["values"][int(out[1:])]
            assert value["from"] == {"op": i} and env[value["id"]] is None, (value, i)
            assert list(t.shape) == value["shape"], (op, list(t.shape), value)
            env[value["id"]] = t.to(DTYPES[value["dtype"]])
    return program, env


def _source(value, kept, weights):
    source = value["from"]
    if "weight" in source:
        return weights[source["weight"]].detach()
    if "data" in source:
        return _tensor(bytearray(base64.b64decode(source["data"])), DTYPES[value["dtype"]], value["shape"])
    if "op" in source:
        return None
    dtype, shape, data = kept[f"input:{source['step']}:{source['input']}" if "input" in source else source["constant"]]
    t = _tensor(bytearray(data), CODES[dtype], shape)
    return torch.view_as_complex(t) if value["dtype"].startswith("complex") else t


def _tensor(data, dtype, shape):
    return torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)


def _call(op, values, env):
    namespace, name, overload = op["op"].split(".")
    args = {k: _value(k, a, env) for k, a in op["args"].items()}
    if name == "view" and overload == "default":
        out = args["self"].reshape(args["size"])
    elif name == "full":
        out = torch.full(**args)
    elif name == "arange":
        out = torch.arange(args["start"], args["end"], args["step"], dtype=DTYPES[values[int(op["out"][0][1:])]["dtype"]])
    elif name == "scaled_dot_product_attention":
        out = torch.nn.functional.scaled_dot_product_attention(**args)
    else:
        if name.startswith("as_strided") or name == "view_as_complex":
            args["self"] = args["self"].contiguous()
        function = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        arguments = [a for a in function._schema.arguments if a.name in args]
        out = function(*(args[a.name] for a in arguments if not a.kwarg_only), **{a.name: args[a.name] for a in arguments if a.kwarg_only})
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _value(name, a, env):
    if isinstance(a, list):
        return [_value(name, x, env) for x in a]
    if isinstance(a, dict):
        return float(a["float"])
    if isinstance(a, str) and a.startswith("%"):
        return env[int(a[1:])]
    return DTYPES[a] if name in ("dtype", "out_dtype") and a in DTYPES else a
