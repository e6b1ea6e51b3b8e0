"""Writes .npy and .npz files with numpy, and want.json with what they hold.

Needs numpy and ml_dtypes; versions of the last run: 2.4.6, 0.6.0.
"""

import io
import json
import sys
import zipfile

import numpy as np

sys.path.insert(0, "../../internal/tensortest")
from reference import FLOATS, INTS, dtype_of, entry, patterns  # noqa: E402


def main():
    want = {}

    def save(file, dtype, a, version=None):
        with open(file, "wb") as f:
            np.lib.format.write_array(f, a, version)
        want[file] = [entry("", dtype, a)]

    for n in ["bool"] + INTS + FLOATS:
        save(f"{n}.npy", n, patterns(n))
    for n in ["int16", "uint32", "int64", "float16", "float32", "float64"]:
        save(f"{n}-big.npy", n, patterns(n).astype(dtype_of(n).newbyteorder(">")))
    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    save("scalar.npy", "float32", np.array(1.5, "f4"))
    save("empty.npy", "int64", np.zeros((0, 3), "i8"))
    save("empty-fortran.npy", "int64", np.zeros((2, 0, 3), "i8", order="F"))
    save("fortran.npy", "float32", np.asfortranarray(x))
    save("fortran-big.npy", "float32", np.asfortranarray(x.astype(">f4")))
    save("version2.npy", "float32", x, (2, 0))
    save("version3.npy", "float32", x, (3, 0))

    arrays = {"a": patterns("float32"), "model.layers.0/out": np.asfortranarray(x), "scalar": np.array(7), "empty": np.zeros((0, 2), "f8"),
              "\u03bb bf16": patterns("bfloat16"), "big": patterns("int16").astype(">i2")}
    dtypes = ["float32", "float32", "int64", "float64", "bfloat16", "int16"]
    np.savez("stored.npz", **arrays)
    np.savez_compressed("deflated.npz", **arrays)
    for f in ["stored.npz", "deflated.npz"]:
        want[f] = [entry(n, d, a) for (n, a), d in zip(arrays.items(), dtypes)]
    np.savez("none.npz")
    want["none.npz"] = []
    np.savez_compressed("large.npz", zeros=np.zeros(1 << 16, "f4"), ones=np.ones(40000, "u1"))

    # What cannot be read.
    np.save("bad-struct.npy", np.zeros(2, [("a", "<f4"), ("b", "<i4", (2,))]))
    np.save("bad-complex.npy", np.zeros(2, "c8"))
    np.save("bad-longdouble.npy", np.zeros(2, "longdouble"))
    np.save("bad-text.npy", np.array(["a", "bc"]))
    np.save("bad-bytes.npy", np.array([b"a", b"bc"]))
    np.save("bad-object.npy", np.array([{}], object), allow_pickle=True)
    np.save("bad-date.npy", np.array([1], "datetime64[s]"))
    np.save("bad-void.npy", np.zeros(2, "V4"))
    with open("bad-two.npy", "wb") as f:
        np.save(f, x)
        np.save(f, x)
    with zipfile.ZipFile("bad-bzip2.npz", "w", zipfile.ZIP_BZIP2) as z:
        b = io.BytesIO()
        np.save(b, x)
        z.writestr("x.npy", b.getvalue())
    np.savez("bad-member.npz", fine=x, wrong=np.zeros(2, "c16"))
    json.dump(want, open("want.json", "w"), separators=(",", ":"))


main()
