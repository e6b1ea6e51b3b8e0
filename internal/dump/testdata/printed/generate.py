"""Prints tensors with real MAX in the styles COMPACT and FULL: compact.log, full6.log, full10.log, full27.log; want.json has their content.

Needs max[serve]; version of the last run: 26.7.0, on a CPU (where it cannot print 8-bit floats).
"""

import json
import os
import sys

import numpy as np
from max.driver import CPU, Buffer
from max.dtype import DType
from max.engine import InferenceSession
from max.graph import DeviceRef, Graph, TensorType

SHAPES = ["", "1", "3", "6", "7", "8", "100", "1x1", "2x3", "7x8", "6x7", "2x100", "100x2", "1x7", "7x1", "2x7x8", "8x8x8", "1x13x10", "7x2x2", "7x7x2",
          "7x1x1", "2x3x4x5", "2x4x7x7", "3x3x2x2", "7x7x3x7", "1x1x1x1x9", "0", "0x3", "2x0", "0x2x3", "2x0x3", "2x3x0", "0x3x3x0", "2x3x0x2"]
SPECIAL = [[0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3], [1e-3, 1e-4, 1e-5, 1e-7, 1e-30, 1.5e-42], [123.456, 99999.0, 123456.0, 1e6, 12345678.0, 1e10],
           [3e38, -3e38, np.inf, -np.inf, np.nan], [1.5e20, 1.5e24, 1.5e25, 1.5e26, 1.5e27, 1.5e28], [-1.5e25, -1.5e26, 1.5e29, 1.5e30, 1.5e31, 1.5e35]]
INTS = [0, 1, -1, 5, -7, 127, -128, 2**15, 2**31 - 1, -2**31, 2**63 - 1, -2**63, 2**64 - 1]
items = []  # label, dtype, array of numpy (bfloat16 as its bits)


def bf16(a):
    u = np.asarray(a, np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


for s in SHAPES:
    shape = tuple(int(d) for d in s.split("x") if d)
    items.append((f"f32-{s}", "float32", (np.arange(np.prod(shape, dtype=int), dtype="f4") + 0.5).reshape(shape)))
for d in ["float32", "float64"]:
    for i, v in enumerate(SPECIAL):
        items.append((f"{d}-special{i}", d, np.array(v, d)))
items.append(("float64-huge", "float64", np.array(-1.5e300)))
for s in [(), (3,), (2, 9)]:
    v = (np.arange(np.prod(s, dtype=int)) + 0.5).reshape(s)
    items.append((f"f16-{len(s)}", "float16", v.astype("f2")))
    items.append((f"bf16-{len(s)}", "bfloat16", bf16(v)))
items.append(("f16-special", "float16", np.array([0.0, -0.0, 1e-4, 6e-8, 65504, np.inf], "f2")))
items.append(("bf16-special", "bfloat16", bf16([0.0, -0.0, 1e-4, 3e38, np.inf, -np.inf])))
items.append(("model.layers.0 (x)-output", "float32", np.random.default_rng(1).standard_normal((2, 9, 12)).astype("f4")))
items.append(("odd = tensor([[", "float32", np.arange(4, dtype="f4").reshape(2, 2)))
for d in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]:
    i = np.iinfo(d)
    items.append((f"{d}-limits", d, np.array([x for x in INTS if i.min <= x <= i.max][-6:], d)))
    items.append((f"{d}-scalar", d, np.array(1, d)))
    items.append((f"{d}-matrix", d, np.arange(18).reshape(2, 9).astype(d)))
items.append(("bool-vector", "bool", np.array([0, 1, 1, 0, 1], bool)))
items.append(("bool-matrix", "bool", (np.arange(18) % 3 == 0).reshape(2, 9)))

with Graph("print", input_types=[TensorType(getattr(DType, d), a.shape, device=DeviceRef.CPU()) for _, d, a in items]) as graph:
    for (label, _, _), value in zip(items, graph.inputs):
        value.tensor.print(label)
    graph.output(graph.inputs[0])
session = InferenceSession(devices=[CPU()])
model = session.load(graph)
args = [Buffer.from_numpy(np.array(a, order="C")) for _, _, a in items]
args = [b.view(DType.bfloat16, a.shape) if d == "bfloat16" else b for b, (_, d, a) in zip(args, items)]
for file, style, precision in [("compact.log", "COMPACT", 6), ("full6.log", "FULL", 6), ("full10.log", "FULL", 10), ("full27.log", "FULL", 27)]:
    session.set_debug_print_options(style, precision=precision)
    sys.stdout.flush()
    saved = os.dup(1)
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(out, 1)
    try:
        model.execute(*args)
    finally:
        os.dup2(saved, 1)
short = [line for line in open("full27.log") if len(line) < 400]
open("full27.log", "w").writelines(short)
json.dump([{"label": l, "dtype": d, "shape": list(a.shape), "hex": a.tobytes().hex()} for l, d, a in items], open("want.json", "w"),
          separators=(",", ":"))
