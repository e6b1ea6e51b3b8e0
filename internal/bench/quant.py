"""Measures the dequantisation of tensor/gguf and internal/checkpoint beside numpy's, on one core, in one run.

Needs numpy and gguf. go test -c -o .bin/gguf.test ./tensor/gguf, go test -c -o .bin/checkpoint.test
./internal/checkpoint, then python internal/bench/quant.py .bin/gguf.test .bin/checkpoint.test. Each metric is the best of many short runs, in GB/s
of the output: what the machine can do where it is left alone.
"""

import os
import re
import subprocess
import sys
import time

import gguf
import numpy as np
from gguf import quants

ROWS, COLUMNS = 16, 4096


def best(f):
    end, least = time.monotonic() + 2, 1e9
    while time.monotonic() < end:
        start = time.perf_counter()
        f()
        least = min(least, time.perf_counter() - start)
    return 4 * ROWS * COLUMNS / least / 1e9


def codes(size):
    return (np.arange(size) * 7 & 0x3B).astype(np.uint8)


def blocks(name):
    kind = getattr(gguf.GGMLQuantizationType, name.upper())
    length, size = gguf.GGML_QUANT_SIZES[kind]
    data = codes(ROWS * COLUMNS // length * size).reshape(ROWS, -1)
    return lambda: quants.dequantize(data, kind)


def affine(bits, dtype):
    words = codes(ROWS * COLUMNS * bits // 8).view(np.uint32).reshape(ROWS, -1, 1)
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    s = np.full((ROWS, COLUMNS // 64, 1), 0.01, dtype)

    def run():
        q = (words >> shifts & np.uint32(2**bits - 1)).reshape(ROWS, -1, 64).astype(dtype)
        return (q * s + s).astype(np.float32)

    return run


np.seterr(all="ignore")
numpy = {f"Blocks/{k}": blocks(k) for k in ["q4_0", "q8_0", "q4_k", "q6_k", "q5_k", "iq4_nl", "iq2_xs"]}
numpy |= {f"Affine/{b}bits-{n}": affine(b, d) for b in [4, 8] for n, d in [("f32", np.float32), ("f16", np.float16)]}
print(f"{'':20}{'numpy':>8}{'Go':>8}  GB/s")
for name, f in numpy.items():
    args = [sys.argv[1 if name.startswith("Blocks") else 2], "-test.run=^$", f"-test.bench=^Benchmark{name.replace('/', '$/^')}$", "-test.benchtime=300x", "-test.count=20"]
    out = subprocess.run(args, capture_output=True, text=True, check=True, env=os.environ | {"GOMAXPROCS": "1"}).stdout
    go = max(float(v) for v in re.findall(r"([\d.]+) MB/s", out)) / 1e3
    base = best(f)
    print(f"{name:20}{base:8.2f}{go:8.2f}  {go / base:.0f} ×")
