"""Writes cases.json: pairs of tensors and the metrics that compare.Tensors must give for them.

Counts, indices and maxima are numpy's in float64, and Python's integers where both sides are integers; sums are of exact
products in decimals of 60 digits. rows lists all rows that are as bad as the worst but for rounding. Run it with numpy and ml_dtypes installed:

    python generate.py > cases.json
"""

import base64
import decimal
import json
import math

import ml_dtypes
import numpy as np

decimal.setcontext(decimal.Context(prec=60, Emax=10**6, Emin=-(10**6)))
D = decimal.Decimal
rng = np.random.default_rng(20261121)

DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8_e4m3": ml_dtypes.float8_e4m3fn, "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8_e5m2": ml_dtypes.float8_e5m2,
    "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8_e8m0": ml_dtypes.float8_e8m0fnu,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "bool": np.bool_,
}
FLOATS = [d for d in DTYPES if d[0] in "fb" and d != "bool"]
INTS = [d for d in DTYPES if d not in FLOATS]
cases = []


def is_float(dtype):
    return dtype in FLOATS


class T:
    """A tensor: a storage, and how it is seen."""

    def __init__(self, dtype, values, layout="rows"):
        v = np.asarray(values).astype(DTYPES[dtype]) if not isinstance(values, bytes) else values
        self.dtype, self.shape, self.big, self.offset, self.strides = dtype, list(v.shape), False, 0, None
        self.values = v
        store = v
        if layout == "big":
            self.big = True
        elif layout == "columns":  # transposed
            store = v.T
            self.strides = [int(s) // store.itemsize for s in np.ascontiguousarray(store).T.strides]
        elif layout == "gaps":  # every other element of the last axis, after an offset
            store = np.zeros(list(v.shape[:-1]) + [2 * v.shape[-1]], v.dtype)
            store[..., ::2] = v
            strides = [s // store.itemsize for s in store.strides]
            strides[-1] = 2
            store = np.concatenate([np.zeros(3, v.dtype), store.ravel()])
            self.offset, self.strides = 3, strides
        elif layout == "repeat":  # the first row for all
            self.values = np.broadcast_to(v[:1], v.shape)
            store = v[:1]
            self.strides = [0] + [s // v.itemsize for s in np.ascontiguousarray(v).strides[1:]]
        data = np.ascontiguousarray(store).tobytes()
        if self.big:
            data = np.frombuffer(data, np.uint8).reshape(-1, v.itemsize)[:, ::-1].tobytes()
        self.data = data

    def json(self):
        out = {"dtype": self.dtype, "shape": self.shape, "data": base64.b64encode(self.data).decode()}
        if self.strides is not None:
            out["strides"] = self.strides
        if self.offset:
            out["offset"] = self.offset
        if self.big:
            out["big"] = True
        return out


def num(x):
    x = float(x)
    return x if math.isfinite(x) else str(x)


def root(x):
    return x.sqrt() if x > 0 else D(0)


def ratio(x, y):
    return num(float(x / y)) if y else (0.0 if not x else "inf")


def case(name, g, a, atol=0.0, rtol=0.0, equal_nan=False):
    exact = not is_float(g.dtype) and not is_float(a.dtype)
    gv, av = g.values.ravel(), a.values.ravel()
    n = gv.size
    want = {"n": n}
    with np.errstate(all="ignore"):
        gf, af = gv.astype(np.float64), av.astype(np.float64)
        fin = np.isfinite(gf) & np.isfinite(af)
        if exact:
            d = np.array([float(abs(int(x) - int(y))) for x, y in zip(av, gv)])
            bad = np.array([int(x) != int(y) for x, y in zip(av, gv)], bool)
        else:
            d = np.abs(af - gf)
            bad = ~(d <= atol + rtol * np.abs(gf))
            bad[~fin] = ~((gf == af) | (equal_nan & np.isnan(gf) & np.isnan(af)))[~fin]
        rel = d / np.maximum(np.abs(gf), 1e-10)
    want["mismatches"] = int(bad.sum())
    want["first"] = int(np.argmax(bad)) if bad.any() else -1
    want["nan_golden"], want["nan_actual"] = int(np.isnan(gf).sum()), int(np.isnan(af).sum())
    want["inf_golden"], want["inf_actual"] = int(np.isinf(gf).sum()), int(np.isinf(af).sum())
    want["finite"] = int(fin.sum())
    for key, v in (("max_abs", d), ("max_rel", rel)):
        at = int(np.argmax(np.where(fin, v, -1))) if fin.any() else -1
        want[key] = [num(v[at]) if at >= 0 else 0.0, at]
    number = (lambda x: D(int(x))) if exact else (lambda x: D(float(x)))
    ok = [i for i in range(n) if fin[i]]
    G, A = {i: number(gv[i]) for i in ok}, {i: number(av[i]) for i in ok}
    dd = sum(((A[i] - G[i]) ** 2 for i in ok), D(0))
    gg, aa = sum((G[i] ** 2 for i in ok), D(0)), sum((A[i] ** 2 for i in ok), D(0))
    ab = sum((G[i] * A[i] for i in ok), D(0))
    want["norms"] = [num(root(gg)), num(root(aa)), num(root(dd))]
    want["mse"] = num(dd / max(len(ok), 1))
    want["rel_l2"] = ratio(root(dd), root(gg))
    want["cosine_distance"] = (0.0 if not gg and not aa else 1.0) if not gg or not aa else num(round(1 - ab / (root(gg) * root(aa)), 50))
    want["snr"] = 0.0 if n == 0 else "inf" if not dd else "-inf" if not gg else num(20 * (root(gg) / root(dd)).log10())
    row_len = g.shape[-1] if g.shape else 1
    rows = n // row_len if n else 0
    if rows:
        f = D(1) if row_len < 64 else D("0.1")
        least = f * root(gg / rows)
        scores = []
        for r in range(rows):
            own = [i for i in range(r * row_len, (r + 1) * row_len) if fin[i]]
            rd, rg = sum(((A[i] - G[i]) ** 2 for i in own), D(0)), sum((G[i] ** 2 for i in own), D(0))
            y = max(root(rg), least)
            scores.append((D(0) if not rd else root(rd) / y if y else D("inf")))
        best = max(scores)
        want["row"] = num(best)
        want["rows"] = [i for i, s in enumerate(scores) if s == best or s > best * (1 - D("1e-13"))]
    tol = {"atol": atol, "rtol": rtol}
    if equal_nan:
        tol["equal_nan"] = True
    cases.append({"name": name, "golden": g.json(), "actual": a.json(), **tol, "want": want})


def noisy(v, sigma):
    v = v.astype(np.float64)
    return v * (1 + sigma * rng.standard_normal(v.shape)) + sigma * 1e-2 * rng.standard_normal(v.shape)


def random_bits(dtype, *shape):
    itemsize = np.dtype(DTYPES[dtype]).itemsize
    n = int(np.prod(shape))
    raw = rng.integers(0, 256, n * itemsize, dtype=np.uint8)
    if dtype == "bool":
        raw &= 1
    return raw.view(DTYPES[dtype]).reshape(shape)


EPS = {"f64": 1e-12, "f32": 1e-6, "f16": 2e-3, "bf16": 2e-2}

# Every float type with values as they are in a model, every layout, rows of many lengths.
for dtype in FLOATS:
    eps = EPS.get(dtype, 0.3)
    for shape in ([], [1], [7], [3, 5], [2, 3, 64], [5, 67]):
        v = np.abs(rng.standard_normal(shape)) + 0.1 if dtype == "f8_e8m0" else rng.standard_normal(shape)
        g = T(dtype, v)
        case(f"{dtype} {shape}", g, T(dtype, noisy(g.values, eps)), atol=eps, rtol=eps)
for layout in ("big", "columns", "gaps", "repeat"):
    for dtype in ("f64", "f32", "bf16", "f16", "i32", "i64", "u16"):
        v = rng.integers(-50, 50, (6, 20)) if dtype[0] in "iu" else rng.standard_normal((6, 20))
        v = np.abs(v) if dtype[0] == "u" else v
        g = T(dtype, v, layout)
        a = g.values.astype(np.float64)
        case(f"{layout} {dtype}", g, T(dtype, a + (rng.random(a.shape) < 0.1), "columns"), atol=0.5)

# Rows and tensors longer than a block.
for dtype, shape in (("f32", [3, 2049]), ("bf16", [4, 1500]), ("f16", [4100]), ("i8", [2, 4097]), ("f8_e5m2", [70, 65]), ("f64", [2500, 1])):
    v = rng.integers(-100, 100, shape) if dtype == "i8" else rng.standard_normal(shape)
    g = T(dtype, v)
    a = g.values.astype(np.float64)
    hit = rng.random(shape) < 0.01
    case(f"long {dtype} {shape}", g, T(dtype, a + hit * (1 if dtype == "i8" else 0.3)), rtol=1e-3)

# Any bytes: NaN, infinities, subnormals, −0.
for dtype in FLOATS:
    for tries in range(2):
        g, a = T(dtype, random_bits(dtype, 4, 70)), T(dtype, random_bits(dtype, 4, 70))
        a.values = np.where(rng.random((4, 70)) < 0.5, g.values, a.values)
        case(f"bits {dtype} {tries}", g, T(dtype, a.values), rtol=0.5, equal_nan=tries == 1)
special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-45, 1e-40, -1e-40, 3.4e38, -3.4e38, 65504.0, 6e-8]
grid_g, grid_a = np.meshgrid(special, special)
for dtype in ("f64", "f32", "bf16", "f16"):
    for equal_nan in (False, True):
        with np.errstate(all="ignore"):
            case(f"special {dtype} {equal_nan}", T(dtype, grid_g), T(dtype, grid_a), atol=1e-9, rtol=1.0, equal_nan=equal_nan)

# Values at the tolerance: exactly on it, and one step of float64 to both sides.
g = rng.standard_normal((4, 64))
for rtol, atol in ((1e-3, 1e-5), (0.0, 0.25), (0.125, 0.0)):
    with np.errstate(all="ignore"):
        t = atol + rtol * np.abs(g)
        step = rng.integers(-2, 3, g.shape)
        a = g + np.where(rng.random(g.shape) < 0.5, t, -t)
        a = np.where(step < 0, np.nextafter(a, -np.inf), np.where(step > 0, np.nextafter(a, np.inf), a))
    case(f"at the tolerance {rtol} {atol}", T("f64", g), T("f64", a), atol=atol, rtol=rtol)

# Integers and bools exactly, mixed widths and signs; and against floats by the tolerance.
for x in INTS:
    for y in ("i8", "u8", "i64", "u64", "bool"):
        g, a = random_bits(x, 3, 30), random_bits(y, 3, 30)
        small = rng.random(g.shape) < 0.5
        g = np.where(small, rng.integers(0, 2, g.shape).astype(g.dtype), g)
        a = np.where(small, rng.integers(0, 2, a.shape).astype(a.dtype), a)
        case(f"exact {x} {y}", T(x, g), T(y, a), atol=1e9)
big = np.array([2**63 - 1, -(2**63), 2**53, 2**53 + 1, -1, 0, 2**62])
case("int64 next to each other", T("i64", big), T("i64", big + np.array([-1, 1, 1, -1, 1, 0, 1])))
case("int64 against uint64", T("i64", big), T("u64", big.astype(np.uint64)))
case("int64 far apart", T("i64", [-(2**63), 2**63 - 1]), T("u64", np.array([2**64 - 1, 0], np.uint64)))
for x, y in (("i64", "f32"), ("f32", "i64"), ("u8", "bf16"), ("f64", "i32"), ("bool", "f16"), ("f32", "u64")):
    v = rng.integers(0, 2 if "bool" in (x, y) else 100, (4, 16))
    case(f"mixed {x} {y}", T(x, v), T(y, v + (rng.random(v.shape) < 0.2)), atol=0.5)
for x, y in (("f32", "bf16"), ("bf16", "f32"), ("f64", "f32"), ("f16", "bf16"), ("f32", "f8_e4m3"), ("f32", "f64")):
    v = rng.standard_normal((4, 96))
    case(f"mixed {x} {y}", T(x, v), T(y, v), rtol=1e-2)

# Float64 whose squares overflow or vanish.
for scale in (1e200, 1e-200, 1e300, 1e-310, 1e154, 1e-154):
    v = rng.standard_normal((4, 70)) * scale
    case(f"float64 at {scale}", T("f64", v), T("f64", v * (1 + 1e-3 * rng.standard_normal(v.shape))), rtol=1e-3)
case("the difference overflows", T("f64", [1.7e308, 1.0]), T("f64", [-1.7e308, 1.0]))

# Rows: norms of many sizes, a sink row, one wrong row, zero rows, ties.
for row_len in (1, 8, 63, 64, 200):
    v = rng.standard_normal((12, row_len)) * (10.0 ** rng.integers(-6, 4, (12, 1)))
    v[3] = 0
    a = v * (1 + 1e-3 * rng.standard_normal(v.shape))
    a[3] = 1e-3
    case(f"rows of many norms, {row_len} long", T("f32", v), T("f32", a), atol=1e-3)
    case(f"negated row, {row_len} long", T("f32", v), T("f32", np.where(np.arange(12)[:, None] == 5, -v, v)), atol=1e-3)
    case(f"doubled, {row_len} long", T("f32", v), T("f32", 2 * v), rtol=0.5)
    case(f"all zero actual, {row_len} long", T("f32", v), T("f32", 0 * v), rtol=0.5)
    case(f"all zero golden, {row_len} long", T("f32", 0 * v), T("f32", v), rtol=0.5)
    case(f"equal, {row_len} long", T("f32", v), T("f32", v))
case("all zero", T("f32", np.zeros((3, 4))), T("f32", np.zeros((3, 4))))
case("all NaN", T("f32", np.full((3, 4), np.nan)), T("f32", np.full((3, 4), np.nan)), equal_nan=True)
case("empty", T("f32", np.zeros((3, 0))), T("f32", np.zeros((3, 0))))

# Cosine: nearly parallel, opposite, orthogonal, of different length.
v = rng.standard_normal((1, 300))
for name, a in (("1e-9 off", v * (1 + 1e-9 * rng.standard_normal(v.shape))), ("1e-5 off", v * (1 + 1e-5 * rng.standard_normal(v.shape))),
                ("opposite", -v), ("turned", np.roll(v, 1)), ("times 1.02", 1.02 * v), ("turned and small", 1e-12 * np.roll(v, 1)), ("small", 1e-9 * v)):
    case(f"cosine {name}", T("f64", v), T("f64", a))

print("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]")
