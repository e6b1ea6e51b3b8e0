"""Reads the .max files beside it with numpy and writes want.json.

The files were written by MAX 26.7.0 on a CPU, by the print ops of a graph or of a real model; zoo-* were written by hand in the same layout.
Needs numpy and ml_dtypes; versions of the last run: 2.4.6, 0.6.0.
"""

import glob
import json
import struct
import sys

import numpy as np

sys.path.insert(0, "../../internal/tensortest")
from reference import dtype_of, entry  # noqa: E402


CODES = {1: "bool", 79: "float16", 80: "bfloat16", 81: "float32", 82: "float64", 134: "uint8", 135: "int8", 136: "uint16", 137: "int16",
         138: "uint32", 139: "int32", 140: "uint64", 141: "int64"}


def read(path):
    b = open(path, "rb").read()
    (k,) = struct.unpack_from("<I", b, 24)
    name = b[28:28 + k].decode()
    code, rank = b[28 + k], b[29 + k]
    shape = struct.unpack_from(f"<{rank}I", b, 30 + k)
    (at,) = struct.unpack_from("<Q", b, 30 + k + 4 * rank)
    a = np.frombuffer(b, dtype_of(CODES[code]), int(np.prod(shape)), at).reshape(shape)
    return entry(name, CODES[code], a)


json.dump({f: [read(f)] for f in sorted(glob.glob("*.max"))}, open("want.json", "w"), separators=(",", ":"))
