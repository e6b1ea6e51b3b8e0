"""Writes files of every dtype with the reference implementation, and want.json with what they hold.

Needs numpy, ml_dtypes and safetensors; versions of the last run: 2.4.6, 0.6.0, 0.8.0.
"""

import json
import sys

import numpy as np
from safetensors import TensorSpec, serialize

sys.path.insert(0, "../../internal/tensortest")
from reference import FLOATS, INTS, entry, patterns  # noqa: E402


def save(file, tensors, metadata=None):
    data = serialize({n: TensorSpec(dtype=d, shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes) for n, (d, a) in tensors.items()}, metadata)
    open(file, "wb").write(data)
    return data


def main():
    want = {}

    def write(file, tensors, metadata=None):
        data = save(file, tensors, metadata)
        size = int.from_bytes(data[:8], "little")
        order = [k for k in json.loads(data[8:8 + size]) if k != "__metadata__"]
        want[file] = [entry(n, *tensors[n]) for n in order]

    write("dtypes.safetensors", {n: (n, patterns(n)) for n in ["bool"] + INTS + FLOATS})
    write("shapes.safetensors", {
        "scalar": ("float32", np.array(1.5, "f4")),
        "empty": ("float32", np.zeros((0, 3), "f4")),
        "empty byte": ("uint8", np.zeros((2, 0, 1), "u1")),
        "4d": ("int16", np.arange(24, dtype="i2").reshape(2, 3, 1, 4)),
        "odd": ("uint8", np.arange(3, dtype="u1")),
        "name with \"quotes\", \u03bb and \n": ("float64", np.array([np.pi])),
        "": ("bool", np.array([True])),
    }, {"format": "pt", "\u03bb": "\"x\""})
    write("nothing.safetensors", {})
    save("c64.safetensors", {"good": ("float32", np.zeros(2, "f4")), "bad": ("complex64", np.zeros(2, "c8"))})
    save("f4.safetensors", {"bad": ("float4_e2m1fn_x2", np.zeros(2, "u1"))})
    json.dump(want, open("want.json", "w"), indent=None, separators=(",", ":"))


main()
