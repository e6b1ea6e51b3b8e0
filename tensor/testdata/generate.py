"""Writes dtypes.json: what torch 2.15 and ml_dtypes decode small floats to.

    pip install torch==2.15.0 ml_dtypes numpy && python generate.py

"values": for each 8-bit type the 256 codes as float64, little-endian, in hexadecimal. torch and ml_dtypes must agree.
"sha256": for each 16-bit type the hash of its 65536 codes as float64, little-endian. All NaN are 0x7ff8000000000000.
"finfo": the unit roundoff of each float type (half of eps).
"""

import hashlib
import json
import os

import ml_dtypes
import numpy as np
import torch

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def wide(t):
    a = t.to(torch.float64).numpy().copy()
    a[np.isnan(a)] = np.frombuffer(bytes.fromhex("000000000000f87f"), "<f8")[0]
    return a


out = {"values": {}, "sha256": {}, "finfo": {}}
for name in ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]:
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    values = wide(codes.view(getattr(torch, name)))
    other = codes.numpy().view(getattr(ml_dtypes, name)).astype(np.float64)
    np.testing.assert_array_equal(values, other)
    out["values"][name] = values.astype("<f8").tobytes().hex()
for name in ["float16", "bfloat16"]:
    codes = torch.arange(65536, dtype=torch.int32).to(torch.uint16)
    out["sha256"][name] = hashlib.sha256(wide(codes.view(getattr(torch, name))).astype("<f8").tobytes()).hexdigest()
for name in [*out["values"], *out["sha256"], "float32", "float64"]:
    info = torch.finfo(getattr(torch, name))
    out["finfo"][name] = {"roundoff": info.eps / 2}

with open("dtypes.json", "w") as f:
    json.dump(out, f, indent=1)
    f.write("\n")
