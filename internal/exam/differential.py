"""A differential exam of `parity compare`: its figures against numpy, on random and special tensors.

Every pair of tensors is made twice: as arrays here, of which numpy computes the figures in extended
precision from their definitions, and as files of all formats, of which the command computes them.
Counts, indices and maxima must be equal, sums to 1e-11. See README.md.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import safetensors.torch
import torch

SUMS = 1e-11  # largest relative error of a sum: room for the rounding of float64, and little more
# The same for pairs of one 16-bit float type with more elements than a block: float32 adds them up.
SUMS16, BLOCK = 1e-6, 8192
TIMEOUT = 60  # seconds that a run may take: more is a hang
LONG = np.longdouble  # 64 bits of mantissa on x86, and a range in which no square of a float64 overflows


class DType:
    """An element type as each format names it."""

    def __init__(self, name, numpy, short, code, limits=None):
        self.name = name  # torch's name, which the report also has
        self.numpy = np.dtype(numpy)
        self.short = short  # the name in --raw, and in capitals that of safetensors
        self.code = code  # in .max
        self.limits = limits  # default relative L2 of the tensor and of its worst row; None for integers

    @property
    def torch(self):
        return getattr(torch, self.name)

    @property
    def is_float(self):
        return self.limits is not None

    @property
    def in_npy(self):
        """Whether a .npy file tells the type: it keeps only the size of most 8-bit floats."""
        return not self.name.startswith("float8") or self.name == "float8_e5m2"


DTYPES = {
    d.name: d
    for d in [
        DType("float64", "f8", "f64", 82, (1e-9, 1e-9)),
        DType("float32", "f4", "f32", 81, (1e-4, 1e-4)),
        DType("float16", "f2", "f16", 79, (4e-3, 1e-2)),
        DType("bfloat16", ml_dtypes.bfloat16, "bf16", 80, (3e-2, 8e-2)),
        DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "f8_e4m3", 75, (0.25, 0.25)),
        DType("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "f8_e4m3fnuz", 76, (0.25, 0.25)),
        DType("float8_e5m2", ml_dtypes.float8_e5m2, "f8_e5m2", 77, (0.5, 0.5)),
        DType("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "f8_e5m2fnuz", 78, (0.5, 0.5)),
        DType("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "f8_e8m0", 73, (0.5, 0.5)),
        DType("bool", "?", "bool", 1),
        DType("int8", "i1", "i8", 135),
        DType("uint8", "u1", "u8", 134),
        DType("int16", "i2", "i16", 137),
        DType("uint16", "u2", "u16", 136),
        DType("int32", "i4", "i32", 139),
        DType("uint32", "u4", "u32", 138),
        DType("int64", "i8", "i64", 141),
        DType("uint64", "u8", "u64", 140),
    ]
}


def dtype_of(array):
    return next(d for d in DTYPES.values() if d.numpy == array.dtype)


# Pairs: the golden array, the candidate's.

SHAPES = [
    (), (1,), (7,), (63,), (64,), (65,), (2047,), (2048,), (2049,), (5000,), (3, 4), (1, 130), (130, 1), (17, 64),
    (40, 100), (9, 63),
    (3, 5, 7), (2, 3, 4, 5), (1, 1, 1, 1), (2, 3000), (300, 3), (5, 1, 65), (2, 2, 2, 2, 3), (33, 128),
]  # fmt: skip
RARE_SHAPES = [(60000,), (3, 20000), (20000, 2), (600, 100)]

FLOAT_STYLES = ["normal", "wide", "tiny", "huge", "zeros", "bits", "ties", "special", "one", "rows", "constant"]
INT_STYLES = ["small", "bits", "extremes", "zeros"]
CHANGES = ["none", "noise", "sparse", "scale", "row", "special", "independent", "edge", "step", "zero"]

# (atol, rtol); None: the defaults judge.
TOLERANCES = [None, None, (0, 0), (1e-5, 1e-4), (1e-3, 0), (0, 1e-2), (0.125, 0.25), (1e-8, 1e-5), (1, 0), (3e-2, 3e-2)]


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def random_bits(rng, dtype, shape):
    if dtype.name == "bool":
        return rng.random(shape) < 0.5
    data = rng.bytes(math.prod(shape) * dtype.numpy.itemsize)
    return np.frombuffer(data, dtype.numpy).reshape(shape).copy()


def values(rng, dtype, shape, style):
    """Makes an array."""
    if style == "bits":
        return random_bits(rng, dtype, shape)
    if not dtype.is_float:
        if style == "zeros":
            return np.zeros(shape, dtype.numpy)
        if dtype.name == "bool":
            return rng.random(shape) < 0.7
        info = np.iinfo(dtype.numpy)
        if style == "extremes":
            # beyond 2^53, neighbours differ by less than float64 can tell
            near = [
                x
                for e in (0, 7, 15, 31, 53, 62, 63)
                for x in (2**e - 1, 2**e, 2**e + 1, -(2**e))
                if info.min <= x <= info.max
            ]
            pool = np.array([info.min, info.min + 1, info.max, info.max - 1, *near], dtype.numpy)
            return pool[rng.integers(len(pool), size=shape)]
        return rng.integers(max(info.min, -100), 100, size=shape).astype(dtype.numpy)
    x = rng.standard_normal(shape)
    if style == "wide":
        x = x * 10.0 ** rng.uniform(-30, 30, shape)
    elif style in ("tiny", "huge"):
        scale = float(ml_dtypes.finfo(dtype.numpy).tiny if style == "tiny" else ml_dtypes.finfo(dtype.numpy).max)
        x = x * scale * 0.3
    elif style == "zeros":
        x = np.where(rng.random(shape) < 0.5, 0.0, -0.0)
    elif style == "ties":
        x = rng.integers(-3, 4, size=shape).astype(float)
    elif style == "one":  # one massive value
        x = np.array(x * 1e-3)
        x[tuple(rng.integers(n) for n in shape)] = 300
    elif style == "rows" and len(shape) > 1:  # rows of very different norms
        x = x * 10.0 ** rng.uniform(-4, 4, (*shape[:-1], 1))
    elif style == "constant" and shape:  # along one axis, so that it can be a broadcast view
        axis = int(rng.integers(len(shape)))
        x = np.repeat(x.take([0], axis), shape[axis], axis)
    if style == "special":
        x = specials(rng, x, 0.1)
    return cast(x, dtype)


def specials(rng, x, share):
    x = np.array(x, np.float64)
    at = rng.random(x.shape) < share
    x[at] = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-40])[rng.integers(7, size=int(at.sum()))]
    return x


def cast(x, dtype):
    """Rounds float64 values to a type; integers saturate."""
    x = np.asarray(x)
    if dtype.name == "bool":
        return np.asarray(x != 0)
    if not dtype.is_float:
        info = np.iinfo(dtype.numpy)
        whole = np.rint(np.nan_to_num(x, nan=0, posinf=info.max, neginf=info.min))
        # The largest 64-bit integers are not float64 numbers: stop at the one before.
        return np.clip(
            whole, float(info.min), np.nextafter(float(info.max), 0) if info.max > 2**53 else info.max
        ).astype(dtype.numpy)
    if dtype.name == "float8_e8m0fnu":
        x = np.abs(x) + 2.0**-127  # no sign, no zero
    return np.asarray(x.astype(dtype.numpy))


def changed(rng, golden, dtype, change, tolerance):
    """Makes the candidate's array of a golden one."""
    source = dtype_of(golden)
    if change == "independent":
        return values(rng, dtype, golden.shape, pick(rng, FLOAT_STYLES if dtype.is_float else INT_STYLES))
    if not dtype.is_float and not source.is_float:
        a = golden.astype(dtype.numpy)  # wraps around
        if change != "none" and a.size:
            flat = a.reshape(-1)
            for i in rng.integers(flat.size, size=1 + int(rng.integers(4))):
                flat[i] = (
                    ~flat[i] if dtype.name == "bool" else flat[i] + np.array(pick(rng, [1, 1, 5, 100]), dtype.numpy)
                )
        return a
    a = np.array(golden.astype(np.float64))
    if change == "noise":
        a = a * (1 + rng.standard_normal(a.shape) * 10.0 ** rng.uniform(-9, -1))
    elif change == "scale":
        a = a * 1.02
    elif change == "zero":
        a = a * 0
    elif change == "special":
        a = specials(rng, a, 0.05)
    elif change == "edge":  # on the tolerance, or the number next to it
        atol, rtol = tolerance or (1e-3, 0)
        edge = a + rng.choice([-1.0, 1.0], a.shape) * (atol + rtol * np.abs(a))
        beside = np.nextafter(edge, rng.choice([-np.inf, np.inf], a.shape))
        a = np.where(rng.random(a.shape) < 0.5, edge, beside)
    elif change == "row" and a.ndim:
        a[tuple(int(rng.integers(n)) for n in a.shape[:-1])] *= -1
    elif change in ("sparse", "row"):
        flat = a.reshape(-1)
        for i in rng.integers(flat.size, size=1 + int(rng.integers(3))):
            flat[i] = flat[i] * 1.5 + 1e-3
    a = cast(a, dtype)
    if change == "step" and dtype.is_float and dtype.name != "float8_e8m0fnu" and a.size:  # the next number of the type
        bits = a.reshape(-1).view(f"u{dtype.numpy.itemsize}")
        bits[rng.integers(bits.size, size=3)] ^= 1
    return a


def pair(rng, tolerance, dtypes=None, shape=None):
    """Makes a golden and a candidate's array."""
    names = list(DTYPES)
    g = DTYPES[pick(rng, dtypes or names[:4] * 3 + names)]
    a = DTYPES[pick(rng, dtypes or names[:4] * 3 + names)] if rng.random() < 0.35 else g
    if shape is None:
        shape = pick(rng, RARE_SHAPES) if rng.random() < 0.03 else pick(rng, SHAPES)
    golden = values(rng, g, shape, pick(rng, FLOAT_STYLES if g.is_float else INT_STYLES))
    return golden, changed(rng, golden, a, pick(rng, CHANGES), tolerance)


# Figures, from their definitions.


def figures(golden, actual, atol, rtol, equal_nan):
    """What report.json must say about a pair that is not empty. Sums are in extended precision."""
    shape, n = golden.shape, golden.size
    exact = not dtype_of(golden).is_float and not dtype_of(actual).is_float
    g, a = (np.asarray(x.astype(np.float64)).reshape(-1) for x in (golden, actual))
    finite = np.isfinite(g) & np.isfinite(a)
    if exact:
        big = abs(actual.reshape(-1).astype(object) - golden.reshape(-1).astype(object))  # Python's integers
        d = wide_d = big.astype(np.float64)
        bad = d != 0
    else:
        d = np.abs(a - g)
        wide_d = np.where(finite, a, 0).astype(LONG) - np.where(finite, g, 0)
        same = (a == g) | (equal_nan & np.isnan(a) & np.isnan(g))
        bad = np.where(finite, ~(d <= atol + rtol * np.abs(g)), ~same)
    out = {
        "sums": precision(golden, actual),
        "n": n,
        "n_finite": int(finite.sum()),
        "mismatches": int(bad.sum()),
        "bad_non_finite": int((bad & ~finite).sum()),
        "first_mismatch_index": index(bad.argmax(), shape) if bad.any() else None,
    }
    for side, x in (("golden", g), ("actual", a)):
        out["nan_" + side] = int(np.isnan(x).sum())
        out["inf_" + side] = int(np.isinf(x).sum())

    some = bool(finite.any())
    for name, figure in (("max_abs", d), ("max_rel", d / np.maximum(np.abs(g), 1e-10))):
        figure = np.where(finite, figure, -1)
        at = int((big if exact and name == "max_abs" else figure).argmax())  # the first of equal ones
        out[name] = float(figure[at]) if some else 0.0
        out[name + "_index"] = index(at, shape) if some else None
        out[name + "_golden"] = float(g[at]) if some else 0.0
        out[name + "_actual"] = float(a[at]) if some else 0.0

    g, a, d, wide_d = (np.where(finite, x, 0) for x in (g, a, d, wide_d))
    row_len = shape[-1] if shape else 1
    rows = n // row_len
    dd, gg, aa = (np.square(x.astype(LONG)).reshape(rows, row_len).sum(axis=1) for x in (wide_d, g, a))
    sdd, sgg, saa = dd.sum(), gg.sum(), aa.sum()
    out["mse"] = to_float(sdd / max(out["n_finite"], 1))
    out["rel_l2"] = to_float(ratio(sdd, sgg))
    out["snr_db"] = math.inf if sdd == 0 else -math.inf if sgg == 0 else float(10 * np.log10(sgg / sdd))
    out["cosine_distance"], out["cosine_error"] = cosine_distance(g, a, sdd, sgg, saa, out["sums"])
    out["cosine"] = 1 - out["cosine_distance"]

    floor = (1 if row_len < 64 else 0.1) ** 2 * sgg / rows
    out["rows"] = rel = np.array([ratio(x, max(y, floor)) for x, y in zip(dd, gg)], LONG)
    out["row_index"] = int(rel.argmax())
    out["row_is_tiny"] = bool(dd[out["row_index"]] < LONG(1e-290) * dd.max())
    out["row_rel_l2"] = to_float(rel.max())
    out["row_max_abs_of"] = d.reshape(rows, row_len).max(axis=1)
    # Exact distances of 64-bit integers tell rows apart that are equal as float64.
    out["max_abs_row"] = int((big if exact else np.where(finite, d, -1)).argmax()) // row_len if some else None
    return out


def ratio(dd, gg):
    """The root of dd/gg; 0 if both are zero."""
    return LONG(0) if dd == 0 else LONG(np.inf) if gg == 0 else np.sqrt(dd / gg)


def precision(golden, actual):
    """The largest relative error of a sum."""
    same = golden.dtype == actual.dtype and dtype_of(golden).name in ("float16", "bfloat16")
    return SUMS16 if same and golden.size > BLOCK else SUMS


def cosine_distance(g, a, sdd, sgg, saa, sums):
    """1 − cosine as half the squared distance of the unit vectors, which does not cancel; its float64 error."""
    if sgg == 0 or saa == 0:
        return (0.0 if sgg == saa else 1.0), 0.0
    ng, na = np.sqrt(sgg), np.sqrt(saa)
    u = a.astype(LONG) / na - g.astype(LONG) / ng
    distance = float(np.square(u).sum() / 2)
    square = float(sdd / (ng * na))  # from which the difference of the norms is taken
    return distance, sums * distance + (sums * square if sums > SUMS else 0) + 2e-13 * min(1.0, square**0.5)


def index(at, shape):
    return [int(i) for i in np.unravel_index(int(at), shape)]


def to_float(x):
    return float(x) if x <= np.finfo(np.float64).max else math.inf


def passes(want, golden, actual, tolerance):
    """The verdict of a pair; None if it depends on rounding."""
    if want["bad_non_finite"]:
        return False
    sides = [dtype_of(golden), dtype_of(actual)]
    if tolerance is not None or not any(d.is_float for d in sides):
        return want["mismatches"] == 0
    coarsest = max(d.limits for d in sides if d.is_float)
    verdict = True
    for got, limit in zip((want["rel_l2"], want["row_rel_l2"]), coarsest):
        if abs(got - limit) < max(1e-9, want["sums"]) * limit:
            return None
        verdict = verdict and got <= limit
    return verdict


EXACT = [
    "n", "n_finite", "mismatches", "bad_non_finite", "first_mismatch_index", "nan_golden", "nan_actual", "inf_golden",
    "inf_actual",
    "max_abs_index", "max_rel_index", "max_abs_row",
]  # fmt: skip


def differences(got, want):
    """Lists the figures of a report that differ from the wanted ones."""
    out = []

    def number(key):
        return float(got[key])  # "Infinity" is one too

    for key in EXACT:
        if got[key] != want[key]:
            out.append(f"{key} is {got[key]}, want {want[key]}")
    for side, key in itertools.product(("", "_golden", "_actual"), ("max_abs", "max_rel")):
        if number(key + side) != want[key + side]:
            out.append(f"{key + side} is {number(key + side)!r}, want {want[key + side]!r}")
    for key in ("mse", "rel_l2", "snr_db", "row_rel_l2"):
        slack = max(1e-9, 10 * want["sums"]) if key == "snr_db" else want["sums"] * abs(want[key]) + 5e-324
        if number(key) != want[key] and not abs(number(key) - want[key]) <= slack:
            out.append(f"{key} is {number(key)!r}, want {want[key]!r}")
    for key, slack in (("cosine_distance", want["cosine_error"]), ("cosine", want["cosine_error"] + 3e-16)):
        if not abs(number(key) - want[key]) <= slack:
            out.append(f"{key} is {number(key)!r}, want {want[key]!r} ± {slack}")
    row = got["row_index"]
    rel = want["rows"][row]
    # float64 may not tell the rows apart
    tied = want["row_is_tiny"] or 0 < rel < np.inf and abs(rel - want["rows"].max()) <= want["sums"] * rel
    if row != want["row_index"] and not tied:
        out.append(f"row_index is {row}, want {want['row_index']}")
    elif number("row_max_abs") != want["row_max_abs_of"][row]:
        out.append(f"row_max_abs is {number('row_max_abs')!r}, want {want['row_max_abs_of'][row]!r}")
    return out


# Files.


def raw_bytes(array):
    return np.ascontiguousarray(array).tobytes()


def tensor(array):
    """The array as a torch tensor of its type."""
    d = dtype_of(array)
    size = d.numpy.itemsize
    bits = np.ascontiguousarray(array).view("u1" if size == 1 else f"i{size}").copy().reshape(array.shape)
    return torch.from_numpy(bits).view(d.torch)


def as_bits(t):
    return t.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])


def transposed(t, rng):
    if t.dim() < 2:
        return t
    i, j = rng.choice(t.dim(), 2, replace=False).tolist()
    return t.transpose(i, j).contiguous().transpose(i, j)


def strided(t, rng):
    bits = as_bits(t)
    big = torch.full([2 * n + 1 for n in t.shape], 3, dtype=bits.dtype)
    view = big[tuple(slice(1, None, 2) for _ in t.shape)]
    view.copy_(bits)
    return view.view(t.dtype)


def sliced(t, rng):
    bits = as_bits(t)
    big = torch.full([n + 3 for n in t.shape], 3, dtype=bits.dtype)
    view = big[tuple(slice(2, -1) for _ in t.shape)]
    view.copy_(bits)
    return view.view(t.dtype)


def expanded(t, rng):
    """Broadcasts along the axes along which t is constant."""
    bits = as_bits(t)
    for axis in range(t.dim()):
        first = bits.narrow(axis, 0, 1)
        if t.shape[axis] and torch.equal(first.expand(t.shape), bits):
            bits = first.contiguous().expand(t.shape)
            break
    return bits.view(t.dtype)


VIEWS = [lambda t, rng: t, transposed, strided, sliced, expanded]


def write_npy(path, name, array, rng):
    path = path / (name + ".npy")
    if rng.random() < 0.3:
        array = np.asarray(array, order="F")
    if rng.random() < 0.3 and array.dtype.kind in "fiu" and array.dtype.itemsize > 1:
        array = array.astype(array.dtype.newbyteorder(">"))
    with open(path, "wb") as f:
        np.lib.format.write_array(f, array, version=pick(rng, [(1, 0), (2, 0), (3, 0)]))
    return path


def write_npz(path, name, array, rng):
    path = path / (name + ".npz")
    pick(rng, [np.savez, np.savez_compressed])(path, **{name: array})
    return path


def write_pt(path, name, array, rng):
    path = path / (name + pick(rng, [".pt", ".pth"]))
    t = pick(rng, VIEWS)(tensor(array), rng)
    if rng.random() < 0.1 and t.is_floating_point() and t.element_size() > 1:
        t = torch.nn.Parameter(t)
    torch.save(t, path, _use_new_zipfile_serialization=rng.random() < 0.7)
    return path


def write_safetensors(path, name, array, rng):
    path = path / (name + ".safetensors")
    path.write_bytes(safetensors_bytes({name: array}))
    return path


def safetensors_bytes(arrays):
    """The format written by hand: the library does not know all types."""
    header, data = {}, b""
    for name, array in arrays.items():
        payload = raw_bytes(array)
        header[name] = {
            "dtype": dtype_of(array).short.upper(),
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(payload)],
        }
        data += payload
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_max(path, name, array, rng):
    path = path / (name + ".max")
    key = name.encode()
    size = 4 + len(key) + 2 + 4 * array.ndim + 8
    gap = int(rng.integers(4)) * 5  # nothing promises where the elements begin
    head = b"\x93\xf0\x9f\x94\xa5++\x93" + struct.pack("<IIQI", 0, 1, size, len(key)) + key
    head += struct.pack(f"<BB{array.ndim}IQ", dtype_of(array).code, array.ndim, *array.shape, 24 + size + gap)
    path.write_bytes(head + b"\xee" * gap + raw_bytes(array))
    return path


def write_raw(path, name, array, rng):
    path = path / name
    path.write_bytes(raw_bytes(array))
    return path


WRITERS = [write_npy, write_npz, write_pt, write_pt, write_safetensors, write_max]


def write(path, name, array, rng):
    """Writes an array in a random format that can hold it."""
    writer = pick(rng, WRITERS)
    while writer in (write_npy, write_npz) and not dtype_of(array).in_npy:
        writer = pick(rng, WRITERS)
    return writer(path, name, array, rng)


GGUF = {"float32": 0, "float16": 1, "int8": 24, "int16": 25, "int32": 26, "int64": 27, "float64": 28, "bfloat16": 30}


def gguf_bytes(arrays, rng):
    """A .gguf file of version 2 or 3, of either byte order."""
    order = pick(rng, "<>")
    head = b"GGUF" + struct.pack(order + "IQQ", pick(rng, [2, 3]), len(arrays), 0)
    data = b""
    for name, a in arrays.items():
        data += bytes(-len(data) % 32)
        text = name.encode()
        head += struct.pack(f"{order}Q{len(text)}sI", len(text), text, a.ndim)
        head += struct.pack(f"{order}{a.ndim}QIQ", *a.shape[::-1], GGUF[dtype_of(a).name], len(data))
        raw = np.ascontiguousarray(a).reshape(a.shape)
        data += (raw.byteswap() if order == ">" else raw).tobytes()
    return head + bytes(-len(head) % 32) + data


def write_container(path, name, arrays, rng):
    """Writes arrays into one file: a dict of torch tensors, or an archive."""
    kind = pick(rng, ["pt", "legacy", "safetensors", "library", "npz", "gguf"])
    if kind == "gguf" and all(dtype_of(a).name in GGUF for a in arrays.values()):
        path = path / (name + ".gguf")
        path.write_bytes(gguf_bytes(arrays, rng))
    elif kind == "npz" and all(dtype_of(a).in_npy for a in arrays.values()):
        path = path / (name + ".npz")
        pick(rng, [np.savez, np.savez_compressed])(path, **arrays)
    elif kind == "library" and not any(dtype_of(a).name.endswith(("fnuz", "fnu")) for a in arrays.values()):
        path = path / (name + ".safetensors")
        safetensors.torch.save_file({k: tensor(a) for k, a in arrays.items()}, path)
    elif kind == "safetensors":
        path = path / (name + ".safetensors")
        path.write_bytes(safetensors_bytes(arrays))
    else:
        path = path / (name + ".pt")
        torch.save(
            {k: pick(rng, VIEWS)(tensor(a), rng) for k, a in arrays.items()},
            path,
            _use_new_zipfile_serialization=kind != "legacy",
        )
    return path


def write_two(path, name, array, rng):
    return write_container(path, name, {"x": array, "y": array}, rng)


# The command.


class Run:
    """One call of `parity compare`. Paths are relative to the exam's folder."""

    def __init__(self, exam, golden, actual, args=(), env=None):
        self.args = [str(golden), str(actual), *args]
        out = exam.dir / "report.json"
        out.unlink(missing_ok=True)
        self.problems = []
        try:
            done = subprocess.run(
                [exam.parity, "compare", *self.args, "--json", out.name],
                cwd=exam.dir, capture_output=True, timeout=TIMEOUT, check=False, env={**os.environ, **(env or {})},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.code, self.stderr, self.text = None, "", ""
            self.problems.append(f"it hangs: no end after {TIMEOUT} s")
        else:
            self.code, self.stderr = done.returncode, done.stderr.decode(errors="backslashreplace")
            self.text = out.read_text() if out.exists() else ""
            crashed = any(word in self.stderr for word in ("panic:", "goroutine ", "fatal error:"))
            if crashed or self.code not in (0, 1, 2, 3):
                self.problems.append(f"it crashed: {self.stderr[:600]}")
        self.report = json.loads(self.text, parse_constant=self.problems.append) if self.text else None

    def rows(self):
        return {row["layer"]: row for row in (self.report or {}).get("layers") or []}


class Exam:
    """Counts the runs, and keeps what went wrong."""

    def __init__(self, parity, directory, keep):
        self.parity, self.dir, self.keep = parity, directory, keep
        self.pairs = self.runs = self.failures = 0

    def sides(self):
        """Makes an empty folder for each side."""
        for side in ("golden", "actual"):
            shutil.rmtree(self.dir / side, ignore_errors=True)
            (self.dir / side).mkdir()
        return self.dir / "golden", self.dir / "actual"

    def run(self, golden, actual, args=(), env=None):
        self.runs += 1
        return Run(self, golden.relative_to(self.dir), actual.relative_to(self.dir), args, env)

    def check(self, what, problems, run):
        """Reports problems and keeps the files."""
        if not problems:
            return
        self.failures += 1
        if self.keep:
            shutil.copytree(self.dir, self.keep / str(self.failures))
        print(f"{what}: parity compare {' '.join(run.args)} (exit code {run.code})")
        for p in problems:
            print(f"    {p}")

    def judge(self, what, run, pairs, tolerance, equal_nan):
        """Compares a whole report with what is expected of the pairs, by name."""
        problems = list(run.problems)
        rows = run.rows()
        fails = []
        for name, (golden, actual) in pairs.items():
            self.pairs += 1
            side = f"{name} {golden.dtype}/{actual.dtype}{list(golden.shape)}: "
            row = rows.get(name)
            if (row is None or row["standard"] is None) and not alike(golden, actual) and run.code in (1, 3):
                fails.append(True)  # refused, which is no pass
                continue
            if row is None or row["standard"] is None:
                problems.append(side + f"no figures: {row and row['note']}; {run.stderr[:300]}")
                continue
            atol, rtol = tolerance or (0, 0)
            want = figures(golden, actual, atol, rtol, equal_nan)
            found = differences(row["standard"], want)
            for key, array in (("golden", golden), ("actual", actual)):
                if row[key]["dtype"] != dtype_of(array).name or row[key]["shape"] != list(array.shape):
                    found.append(f"{key} is {row[key]}")
            ok = passes(want, golden, actual, tolerance)
            fails.append(None if ok is None else not ok)
            if ok is not None and (row["status"] == "pass") != ok:
                found.append(f"status is {row['status']}, want {'pass' if ok else 'fail'}")
            problems += [side + f for f in found]
        if len(rows) != len(pairs) and run.code != 3:
            problems.append(f"the report has {len(rows)} rows, want {len(pairs)}")
        if (
            (None not in fails or True in fails)
            and run.code != int(True in fails)
            and not (run.code == 3 and True in fails)
        ):
            problems.append(f"exit code {run.code}, want {int(True in fails)}: {run.stderr[:300]}")
        self.check(what, problems, run)


def alike(golden, actual):
    """Whether both are floats, or integers of one signedness, or bools: the command may refuse others."""
    kinds = [d.name.rstrip("0123456789") if not d.is_float else "float" for d in map(dtype_of, (golden, actual))]
    return kinds[0] == kinds[1]


def options(tolerance, equal_nan):
    args = ["--equal-nan"] if equal_nan else []
    return args + (["--atol", repr(tolerance[0]), "--rtol", repr(tolerance[1])] if tolerance else [])


def random_runs(exam, seed):
    """One folder, one container and some single files, all of one seed."""
    rng = np.random.default_rng(seed)
    for kind in ("folder", "container", "single", "single", "single", "raw"):
        g, a = exam.sides()
        tolerance, equal_nan = pick(rng, TOLERANCES), rng.random() < 0.3
        args = options(tolerance, equal_nan)
        if kind in ("folder", "container"):
            pairs = {f"block{i}": pair(rng, tolerance) for i in range(12)}
        else:
            pairs = {"x": pair(rng, tolerance)}
        if kind == "container":
            g = write_container(g, "run", {k: p[0] for k, p in pairs.items()}, rng)
            a = write_container(a, "run", {k: p[1] for k, p in pairs.items()}, rng)
        elif kind == "raw":
            golden, actual = pairs["x"]
            pairs = {"x": (golden, actual.astype(np.float64).astype(golden.dtype))}
            args += ["--raw", f"{dtype_of(golden).short}:{'x'.join(map(str, golden.shape))}"]
            g, a = (write_raw(path, "x", array, rng) for path, array in ((g, golden), (a, pairs["x"][1])))
        else:
            for name, (golden, actual) in pairs.items():
                files = write(g, name, golden, rng), write(a, name, actual, rng)
            if kind == "single":
                g, a = files
        run = exam.run(g, a, args)
        exam.judge(f"seed {seed} {kind}", run, pairs, tolerance, equal_nan)
        if kind == "folder":
            for procs in ("1", "7"):
                other = exam.run(g, a, args, env={"GOMAXPROCS": procs})
                same = (other.text, other.code) == (run.text, run.code)
                exam.check(f"seed {seed} GOMAXPROCS={procs}", [] if same else ["the report differs"], other)


def damaged_runs(exam, seed, count):
    """Files that were cut or changed: no crash, no hang, and no pass with fewer elements or other values."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[pick(rng, ["float64", "float32", "float16", "int64", "int8", "bool"])]
    array = values(rng, dtype, pick(rng, [(5, 40), (200,), (2, 3, 4), ()]), "bits")
    writer = pick(rng, [write_npy, write_npz, write_pt, write_safetensors, write_max, write_two])
    files = [writer(d, "x", array, rng) for d in exam.sides()]
    side = int(rng.integers(2))
    whole = files[side].read_bytes()
    for _ in range(count):
        files[side].write_bytes(damaged(rng, whole))
        run = exam.run(*files, ["--equal-nan", "--atol", "0"])
        problems = list(run.problems)
        if run.code == 2:
            problems.append(f"exit code 2 is for wrong usage: {run.stderr[:300]}")
        if run.code == 0:
            lost = len(run.report["unmatched"]["golden"]) + len(run.report["unmatched"]["actual"])
            for name, row in run.rows().items():
                if row["status"] == "pass" and row["standard"]["n"] != array.size:
                    problems.append(f"{name} passes with {row['standard']['n']} of {array.size} elements")
            if not lost and {r["standard"]["n"] for r in run.rows().values()} != {array.size}:
                problems.append("it passes without the elements")
        exam.check(f"seed {seed} damaged {files[side].name}", problems, run)


def damaged(rng, data):
    """Cuts data, or changes some bits or bytes, mostly near its ends, where headers and directories are."""
    n = len(data)

    def near():
        return int(pick(rng, [rng.integers(min(n, 256)), n - 1 - rng.integers(min(n, 512)), rng.integers(n)]))

    how = rng.random()
    if how < 0.3:
        return data[: near()]
    out = bytearray(data)
    for _ in range(1 + int(rng.integers(3))):
        at = near()
        if how < 0.7:
            out[at] ^= 1 << int(rng.integers(8))
        elif how < 0.9:
            out[at] = pick(rng, [0, 1, 0x7F, 0x80, 0xFF, ord("9"), ord("-")])
        else:
            out[at : at + 8] = pick(rng, [b"", rng.bytes(8), b"\xff" * 8, b"\x00" * 3])
    return bytes(out)


# Cases in which definitions matter more than arithmetic.

INF, NAN = math.inf, math.nan


def f32(*x):
    return np.array(x, np.float32)


def f64(*x):
    return np.array(x, np.float64)


def ints(dtype, *x):
    return np.array(x, dtype)


# what, golden, actual, options, exit code, some figures of the report
SPECIAL = [
    ("a tolerance that is hit passes", f64(1, 2), f64(1.25, 2), ["--atol", "0.25"], 0,
        {"mismatches": 0, "max_abs": 0.25}),
    ("the next number does not", f64(1, 2), f64(1.25 + 2**-52, 2), ["--atol", "0.25"], 1,
        {"mismatches": 1, "first_mismatch_index": [0]}),
    ("rtol is relative to the golden", f64(1, 2), f64(1, 4), ["--rtol", "0.5"], 1, {"mismatches": 1, "max_rel": 1}),
    ("and not to the actual", f64(4), f64(2), ["--rtol", "0.5"], 0, {"mismatches": 0, "max_rel": 0.5}),
    ("zeros of both signs", f32(0.0, -0.0), f32(-0.0, 0.0), ["--atol", "0"], 0,
        {"mismatches": 0, "rel_l2": 0, "cosine": 1, "snr_db": INF}),
    ("only the golden is zero", f32(0, 0), f32(0, 1), ["--atol", "2"], 0,
        {"rel_l2": INF, "cosine": 0, "snr_db": -INF, "max_rel": 1e10}),
    ("NaN is not NaN", f32(1, NAN), f32(1, NAN), [], 1,
        {"mismatches": 1, "n_finite": 1, "nan_golden": 1, "nan_actual": 1}),
    ("unless it is said to be", f32(1, NAN), f32(1, NAN), ["--equal-nan"], 0, {"mismatches": 0, "nan_golden": 1}),
    ("NaN is never a number", f32(1, NAN), f32(1, 1), ["--equal-nan", "--atol", "9"], 1,
        {"mismatches": 1, "first_mismatch_index": [1]}),
    ("nor the other way round", f32(1, 1), f32(1, NAN), ["--equal-nan", "--atol", "9"], 1,
        {"mismatches": 1, "nan_actual": 1}),
    ("an infinity is itself", f32(INF, -INF, 1), f32(INF, -INF, 1), ["--atol", "0"], 0,
        {"mismatches": 0, "inf_golden": 2, "n_finite": 1}),
    ("and not the other one", f64(INF), f64(-INF), ["--atol", "9e11"], 1, {"mismatches": 1}),
    ("nor a large number", f64(INF), f64(1.7e308), ["--atol", "9e11", "--rtol", "1"], 1,
        {"mismatches": 1, "inf_actual": 0}),
    ("all NaN", f32(NAN, NAN), f32(0, 0), [], 1, {"n_finite": 0, "mismatches": 2, "max_abs_index": None}),
    ("differences overflow", f64(1e308, 1), f64(-1e308, 1), [], 1, {"max_abs": INF, "rel_l2": 2, "cosine": -1}),
    ("squares vanish", f64(3e-300, 4e-300), f64(3e-300, 4e-300 + 1e-301), [], 1, {"rel_l2": 0.02}),
    ("a scalar", np.float32(2), np.float32(3), [], 1,
        {"n": 1, "max_abs_index": [], "first_mismatch_index": [], "row_index": 0}),
    ("integers are exact", ints("i8", 2**53), ints("i8", 2**53 + 1), ["--atol", "9"], 1,
        {"mismatches": 1, "max_abs": 1}),
    ("at both ends", ints("i8", -(2**63)), ints("i8", 2**63 - 1), [], 1, {"max_abs": 2.0**64}),
    ("their largest difference too", ints("u8", 0, 0), ints("u8", 2**63, 2**63 + 1), [], 1,
        {"max_abs": 2.0**63, "max_abs_index": [1]}),
    ("uint64", ints("u8", 2**64 - 1), ints("u8", 2**64 - 2), [], 1, {"mismatches": 1, "max_abs": 1}),
    ("widths of integers", ints("i1", -1, 5), ints("i8", -1, 5), [], 0, {"mismatches": 0, "n": 2}),
    ("bools", ints("?", 0, 1, 1), ints("?", 0, 1, 0), ["--atol", "5"], 1,
        {"mismatches": 1, "max_abs": 1, "max_abs_index": [2]}),
    ("of equal maxima the first", f32(0, 0, 0), f32(1, -2, 2), ["--atol", "9"], 0,
        {"max_abs_index": [1], "max_abs_actual": -2}),
    ("nothing to compare", f32(), f32(), [], 3, None),
    ("a shape", f32(1, 2, 3), f32(1, 2), ["--atol", "9"], (1, 3), None),
    ("an empty actual", f32(1, 2, 3), f32(), ["--atol", "9"], (1, 3), None),
    ("a negative tolerance", f32(1), f32(1), ["--atol", "-1"], 2, None),
    ("no number", f32(1), f32(1), ["--rtol", "nan"], 2, None),
]  # fmt: skip


def special_cases(exam):
    rng = np.random.default_rng(0)
    for what, golden, actual, args, code, want in SPECIAL:
        files = [write(d, "x", np.asarray(x), rng) for d, x in zip(exam.sides(), (golden, actual))]
        run = exam.run(*files, args)
        problems = list(run.problems)
        if run.code not in (code if isinstance(code, tuple) else [code]):
            problems.append(f"exit code {run.code}, want {code}: {run.stderr[:300]}")
        elif want is not None:
            got = run.rows()["x"]["standard"]
            for key, value in want.items():
                is_index = value is None or isinstance(value, list)
                same = got[key] == value if is_index else math.isclose(float(got[key]), value, rel_tol=1e-12)
                problems += [] if same else [f"{key} is {got[key]}, want {value}"]
        exam.pairs += 1
        exam.check(f"special: {what}", problems, run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parity", required=True, type=pathlib.Path, help="the command, as `make` builds it")
    parser.add_argument(
        "--seeds", type=int, default=50, help="how many seeds to go through; each is about 30 pairs and 8 runs"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--damage", type=int, default=20, help="damaged files a seed")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the files of what went wrong; it must not exist")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True)
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as directory:
        exam = Exam(args.parity.resolve(), pathlib.Path(directory), args.keep)
        special_cases(exam)
        for seed in range(args.first, args.first + args.seeds):
            random_runs(exam, seed)
            damaged_runs(exam, seed, args.damage)
    print(f"{exam.pairs} pairs in {exam.runs} runs, {exam.failures} runs with differences")
    sys.exit(1 if exam.failures else 0)


if __name__ == "__main__":
    main()
