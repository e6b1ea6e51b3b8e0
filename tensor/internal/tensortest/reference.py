"""What the generate.py of all formats share: values of every type, and how want.json writes tensors."""

import ml_dtypes
import numpy as np

SMALL = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
FLOATS = SMALL + ["float16", "bfloat16", "float32", "float64"]
INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def patterns(name):
    """All 256 values of the 8-bit types, and special values and random bits of the others."""
    if name == "bool":
        return np.array([0, 1, 1, 0], "bool")
    d = dtype_of(name)
    if d.itemsize == 1:
        return np.arange(256, dtype="u1").view(d).reshape(4, 64)
    if name in FLOATS:
        f = ml_dtypes.finfo(d)
        special = np.array([0.0, -0.0, 1, -1, f.max, f.min, f.tiny, f.smallest_subnormal, np.inf, -np.inf, np.nan, 1 / 3], d)
    else:
        i = np.iinfo(d)
        special = np.array([0, 1, i.min, i.max], d)
    rng = np.random.default_rng(d.itemsize)
    return np.concatenate([special, rng.integers(0, 256, 20 * d.itemsize, "u1").view(d)])


def values(a):
    if a.dtype.kind in "biu":
        return [str(int(x)) for x in a.reshape(-1)]
    out = []
    for x in a.astype("float64").reshape(-1):
        out.append("nan" if np.isnan(x) else "inf" if x == np.inf else "-inf" if x == -np.inf else hexadecimal(float(x)))
    return out


def hexadecimal(x):
    """float.hex without trailing zeros and normalised, as Go's 'x' format writes it."""
    m, e = np.frexp(abs(x))
    sign = "-" if np.signbit(x) else ""
    if m == 0:
        return sign + "0x0p+00"
    digits = float(m * 2).hex().split("p")[0][2:].rstrip("0").rstrip(".")
    e = int(e) - 1
    return f"{sign}0x{digits}p{'-' if e < 0 else '+'}{abs(e):02d}"


def entry(name, dtype, a):
    return {"name": name, "dtype": dtype, "shape": list(a.shape), "values": values(a)}
