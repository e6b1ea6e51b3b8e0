"""Operators whose results hang on one element of each operand."""

import torch

F32, BF16, F16, F64, I64, I32, U8, BOOL = torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool
FLOATS = [F32, BF16, F16, F64]
a = torch.ops.aten

UNARY = """neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    floor ceil trunc frac sign sgn erf erfc erfinv lgamma digamma sigmoid silu relu hardsigmoid hardswish mish log_sigmoid_forward isinf
    isnan logical_not hardtanh leaky_relu elu softplus gelu round nan_to_num glu""".split()
ARITHMETIC = "add sub mul div".split()
COMPARED = "lt le gt ge eq ne maximum minimum".split()
WHOLE = "bitwise_and bitwise_or bitwise_xor".split()


def first(x):
    return x[0] if isinstance(x, tuple) else x


def called(name, *args, **kw):
    return first(getattr(a, name)(*args, **kw))


samples = [
    *[(n, lambda t, n=n: called(n, t(12, strange=n != "gelu", scale=2.0))) for n in UNARY if n != "log_sigmoid_forward"],
    *[(n, lambda t, n=n: called(n, t(6, dtype=BF16))) for n in "exp log rsqrt sqrt cos tanh sigmoid silu gelu softplus mish elu glu".split()],
    *[(n, lambda t, n=n: called(n, t(6, dtype=F64))) for n in "exp sin rsqrt erf gelu digamma".split()],
    *[(n, lambda t, n=n: called(n, t(6, dtype=F16))) for n in ["exp", "rsqrt", "gelu", "silu", "tanh"]],
    ("log_sigmoid_forward", lambda t: called("log_sigmoid_forward", t(8, scale=20.0))),
    *[(n, lambda t, n=n: called(n, t(6, dtype=I64))) for n in "neg abs sign sin sqrt exp reciprocal sigmoid".split()],  # integers become floats
    ("relu", lambda t: a.relu(t(3, 4).t())),
    ("gelu", lambda t: a.gelu(t(12, strange=True, scale=3.0), approximate="tanh")),
    ("gelu", lambda t: a.gelu(t(6, dtype=BF16), approximate="tanh")),
    ("elu", lambda t: a.elu(t(6), 0.7, 1.1, 1.3)),
    ("softplus", lambda t: a.softplus(t(8, scale=10.0), 2, 15)),
    ("leaky_relu", lambda t: a.leaky_relu(t(6), 0.2)),
    ("hardtanh", lambda t: a.hardtanh(t(6, dtype=BF16), -0.3, 0.3)),
    ("glu", lambda t: a.glu(t(4, 6), 0)),
    ("round", lambda t: a.round(t.of([0.5, 1.5, 2.5, -0.5, -1.5, 1e9]))),
    ("round", lambda t: a.round(t.of([123.456, -1.25, 0.335]), decimals=2)),
    ("nan_to_num", lambda t: a.nan_to_num(t(6, strange=True), 1.5, 7.0, -7.0)),
    ("nan_to_num", lambda t: a.nan_to_num(t(6, dtype=BF16, strange=True))),
    ("bitwise_not", lambda t: a.bitwise_not(t(4, dtype=BOOL))),
    ("bitwise_not", lambda t: a.bitwise_not(t(4, dtype=I64))),
    ("bitwise_not", lambda t: a.bitwise_not(t(4, dtype=U8))),
    ("_neg_view", lambda t: a._neg_view(t(4)) * 1),
    ("logical_not", lambda t: a.logical_not(t(4, dtype=I64, low=0, high=2))),
    # two operands
    *[(n, lambda t, n=n, d=d: called(n, t(3, 6, dtype=d, strange=True), t(6, dtype=d))) for n in ARITHMETIC for d in FLOATS],
    *[(n, lambda t, n=n: called(n, t(3, 1, 4), t(2, 4).t()[:, :1].view(4, 1)[:3].view(3, 1, 1))) for n in ARITHMETIC],
    *[(n, lambda t, n=n: called(n, t(3, 4).t(), t(4, 3))) for n in ARITHMETIC],
    *[(n, lambda t, n=n, d=d: called(n, t(8, dtype=d), 0.1)) for n in ARITHMETIC for d in [F32, BF16, F16]],  # the number of a product keeps float32
    *[(n, lambda t, n=n, d=d: called(n, t(8, dtype=d), t.of(0.1))) for n in ARITHMETIC for d in [F32, BF16]],  # as a scalar does
    *[(n, lambda t, n=n: called(n, t(8, dtype=BF16), t.of(0.1, dtype=F64))) for n in ARITHMETIC],
    *[(n, lambda t, n=n: called(n, t.of(0.1), t(8, dtype=BF16))) for n in ARITHMETIC],
    *[(n, lambda t, n=n: called(n, t(8, dtype=I64), 2.5)) for n in ARITHMETIC],
    *[(n, lambda t, n=n: called(n, t(8, dtype=I64), t(8, dtype=I64, low=1))) for n in ["add", "sub", "mul", "div"]],
    *[(n, lambda t, n=n: called(n, t(8, dtype=BF16), t(8))) for n in ARITHMETIC],  # promotion
    *[(n, lambda t, n=n: called(n, t(8, dtype=BF16), t(8, dtype=F16))) for n in ["add", "mul"]],
    *[(n, lambda t, n=n: called(n, t.of([257, 1023, 3], dtype=I64), t(3, dtype=BF16))) for n in ["add", "mul"]],  # integers are rounded first
    *[(n, lambda t, n=n: called(n, t(4), t(4, dtype=F64))) for n in ["add", "mul"]],
    *[(n, lambda t, n=n: called(n, t(4, dtype=BOOL), t(4, dtype=BOOL))) for n in ["add", "mul"]],
    ("mul", lambda t: a.mul(t(4, dtype=BOOL), t(4))),
    ("mul", lambda t: a.mul(t(4, dtype=I32), t(4, dtype=I64))),
    ("add", lambda t: a.add(t(6), t(6), alpha=0.3)),
    ("add", lambda t: a.add(t(6, dtype=I64), t(6, dtype=I64), alpha=3)),
    ("sub", lambda t: a.sub(t(6), t(6), alpha=2)),
    ("rsub", lambda t: a.rsub(t(6), 1.0)),
    ("rsub", lambda t: a.rsub(t(6, dtype=BF16), 0.1)),
    ("rsub", lambda t: a.rsub(t(6), t(6), alpha=2)),
    ("rsub", lambda t: a.rsub(t(6, dtype=I64), 1)),
    *[("div", lambda t, m=m, d=d: a.div(t(8, dtype=d), t.of([2, -2, 3, -3, 1, 5, 7, -1], dtype=d), rounding_mode=m)) for m in ["floor", "trunc"] for d in [F32, I64]],
    ("div", lambda t: a.div(t.of([7, -7, 8], dtype=I64), 2, rounding_mode="floor")),
    *[("floor_divide", lambda t, d=d: a.floor_divide(t(8, dtype=d), t.of([2, -2, 3, -3, 1, 5, 7, -1], dtype=d))) for d in [F32, I64]],
    *[(n, lambda t, n=n, d=d: called(n, t(8, dtype=d, strange=d == F32), t.of([2, -2, 3, -3, 1, 5, 7, -1], dtype=d))) for n in ["remainder", "fmod"] for d in [F32, I64]],
    ("remainder", lambda t: a.remainder(t(8, dtype=I64), 3)),
    *[("pow", lambda t, e=e, d=d: a.pow(t(8, dtype=d, strange=True), e)) for e in [2, 3, 0.5, -0.5, -1, -2, 1.7, 0] for d in [F32, BF16]],
    ("pow", lambda t: a.pow(t(4, dtype=I64), 2)),
    ("pow", lambda t: a.pow(10000.0, t(6))),
    ("pow", lambda t: a.pow(2, t(6, dtype=I64, low=0))),
    ("pow", lambda t: a.pow(t(6).abs(), t(6))),
    *[(n, lambda t, n=n, d=d: called(n, t(4, 5, dtype=d, strange=d.is_floating_point), t(5, dtype=d))) for n in COMPARED for d in [F32, BF16, I64]],
    *[(n, lambda t, n=n, d=d: called(n, t.of([0.1, 0.2, 0.09], dtype=d), 0.1)) for n in COMPARED[:6] for d in [F32, BF16]],
    *[(n, lambda t, n=n: called(n, t.of([0.1, 0.2], dtype=BF16), t.of(0.1))) for n in COMPARED[:6]],
    *[(n, lambda t, n=n: called(n, t(6, dtype=I64), 0.5)) for n in COMPARED[:6]],
    ("ge", lambda t: a.ge(t(4, 1, dtype=I64), t(1, 4, dtype=I64))),
    ("eq", lambda t: a.eq(t(5, dtype=BOOL), False)),
    *[(n, lambda t, n=n, d=d: called(n, t(6, dtype=d), t(6, dtype=d))) for n in WHOLE for d in [BOOL, I64]],
    ("bitwise_and", lambda t: a.bitwise_and(t(6, dtype=I64), 3)),
    *[(n, lambda t, n=n: called(n, t(6, dtype=I64), t(6, dtype=I64, low=0, high=4))) for n in ["bitwise_left_shift", "bitwise_right_shift"]],
    *[(n, lambda t, n=n, d=d: called(n, t(6, dtype=d), t(6, dtype=d))) for n in ["logical_and", "logical_or", "logical_xor"] for d in [BOOL, F32]],
    *[(n, lambda t, n=n: called(n, t(8), t(8))) for n in ["atan2", "hypot", "copysign", "logaddexp"]],
    ("logaddexp", lambda t: a.logaddexp(t.of([-float("inf"), 1.0, float("inf")]), t.of([-float("inf"), -float("inf"), float("inf")]))),
    # several
    *[("clamp", lambda t, d=d: a.clamp(t(8, dtype=d, strange=d.is_floating_point), -1, 1)) for d in [F32, BF16, I64]],
    ("clamp", lambda t: a.clamp(t(8), min=0.1)),
    ("clamp", lambda t: a.clamp(t(8, dtype=I64), max=2)),
    ("clamp", lambda t: a.clamp(t(8), 1.0, -1.0)),
    ("clamp", lambda t: a.clamp(t(2, 4), t(4), t(2, 1).abs() + 1)),
    ("clamp_min", lambda t: a.clamp_min(t(8, strange=True), 0.2)),
    ("clamp_max", lambda t: a.clamp_max(t(8, dtype=BF16), 0.2)),
    *[("where", lambda t, d=d: a.where(t(3, 4, dtype=BOOL), t(4, dtype=d), t(3, 1, dtype=d))) for d in [F32, BF16, I64]],
    ("where", lambda t: a.where(t(3, 4, dtype=BOOL), t(3, 4, dtype=BF16), t.of(-1e38))),
    ("where", lambda t: a.where(t(4, dtype=BOOL), t(4, dtype=I64), t(4))),
    *[("masked_fill", lambda t, d=d: a.masked_fill(t(3, 4, dtype=d), t(4, dtype=BOOL), torch.finfo(d).min)) for d in FLOATS],
    ("masked_fill", lambda t: a.masked_fill(t(3, 4), t(3, 1, dtype=BOOL), t.of(-float("inf")))),
    ("masked_fill", lambda t: a.masked_fill(t(4, dtype=I64), t(4, dtype=BOOL), 1)),
    ("lerp", lambda t: a.lerp(t(6), t(6), 0.3)),
    ("lerp", lambda t: a.lerp(t(6), t(6), t(6))),
    *[("_to_copy", lambda t, f=f, to=to: t(8, dtype=f, strange=f.is_floating_point and to.is_floating_point, scale=100.0).to(to))
      for f in [F32, BF16, F64, I64, BOOL] for to in [F32, BF16, F16, I64, BOOL] if f != to],
    ("_to_copy", lambda t: t.of([300, -5, 128, 255], dtype=I64).to(U8)),
    ("_to_copy", lambda t: t.of([300, -5, 128, 70000], dtype=I64).to(torch.int8)),
    ("_to_copy", lambda t: t.of([2.0**31, -5, 2.0**40], dtype=F64).to(I64).to(I32)),
    ("_to_copy", lambda t: t.of([-float("inf"), float("nan"), 1e30]).to(I64)),
    # complex numbers
    ("complex", lambda t: torch.view_as_real(torch.polar(t(3, 4).abs(), t(3, 4)) * torch.view_as_complex(t(4, 2)))),
    ("complex", lambda t: (torch.view_as_complex(t(3, 4, 2)).transpose(0, 1) / torch.view_as_complex(t(3, 2))).abs()),
    ("complex", lambda t: torch.view_as_real(torch.view_as_complex(t(3, 2)).conj() + torch.complex(t(3), t(3)))),
    ("complex", lambda t: torch.view_as_real(torch.cat([torch.view_as_complex(t(3, 2)), torch.view_as_complex(t(2, 2))]) * 2.5)),
    ("complex", lambda t: torch.view_as_real(torch.view_as_complex(t(2, 6, 2)).reshape(3, 4) - 1)),
    ("complex", lambda t: torch.view_as_complex(t(6, 2)).angle()),
    ("complex", lambda t: torch.view_as_real(torch.exp(-torch.view_as_complex(t(6, 2))))),
    ("complex", lambda t: torch.view_as_complex(t(6, 2)).imag + torch.view_as_complex(t(6, 2)).real),
    *[("complex", lambda t, f=f: torch.view_as_real(f(torch.view_as_complex(t(3, 4, 2)))))
      for f in [lambda z: 1j * z + (2 - 1j), lambda z: z**3, lambda z: z.sqrt() + z.log(), lambda z: z.sin() * z.cos(), lambda z: z.tanh() - z.sigmoid(), torch.sgn,
                lambda z: z.masked_fill(z.real > 0, 2), lambda z: torch.where(z.imag > 0, z, z.real), torch.tril]],
]  # fmt: skip
