"""Operators that make one number of many, and norms."""

import torch

F32, BF16, F16, F64, I64, BOOL = torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool
a = torch.ops.aten
N = torch.nn.functional


def fused_rms_norm(*args):
    with torch.inference_mode():  # else a composite, which a mode does not see
        return a._fused_rms_norm(*args)


samples = [
    *[("sum", lambda t, d=d: a.sum.dim_IntList(t(3, 5, dtype=d), [1])) for d in [F32, BF16, F16, F64, I64, BOOL]],
    ("sum", lambda t: t(3, 5).sum()),
    ("sum", lambda t: t(2, 3, 4).sum((0, -1))),
    ("sum", lambda t: t(2, 3, 4).sum((0, 2), keepdim=True)),
    ("sum", lambda t: t(3, 5).t().sum(0)),
    ("sum", lambda t: t(3, 5, dtype=BF16).sum(0, dtype=F32)),
    ("sum", lambda t: t(3, 0).sum(1)),
    ("sum", lambda t: t(3, 4, strange=True).sum(-1)),
    ("sum", lambda t: t.of(2.5).sum()),
    *[("mean", lambda t, d=d: t(3, 5, dtype=d).mean(-1, keepdim=True)) for d in [F32, BF16, F16, F64]],
    ("mean", lambda t: t(3, 5).mean()),
    ("mean", lambda t: t(2, 3, 4).mean((1, 2))),
    *[(n, lambda t, n=n, d=d: getattr(a, n)(t(3, 5, dtype=d, strange=d == F32), [1])) for n in ["amax", "amin"] for d in [F32, BF16, I64]],
    *[(n, lambda t, n=n: getattr(a, n)(t(3, 5))) for n in ["max", "min", "argmax", "argmin"]],
    *[(n, lambda t, n=n, s=s: getattr(torch, n)(t(3, 6, strange=s), 1)) for n in ["max", "min"] for s in [True, False]],
    *[(n, lambda t, n=n: getattr(torch, n)(t(3, 6, dtype=I64), 0, keepdim=True)) for n in ["max", "min"]],
    ("max", lambda t: torch.max(t(5), t(5))),
    *[(n, lambda t, n=n: getattr(torch, n)(t(3, 6), -1, keepdim=True)) for n in ["argmax", "argmin"]],
    ("argmax", lambda t: torch.argmax(t(2, 6, strange=True), 1)),
    *[("prod", lambda t, d=d: t(3, 4, dtype=d).prod(1)) for d in [F32, I64]],
    ("prod", lambda t: t(4).prod()),
    *[(n, lambda t, n=n, d=d: getattr(a, n).dim(t(3, 4, dtype=d, low=0, high=2), 1)) for n in ["any", "all"] for d in [BOOL, I64]],
    *[(n, lambda t, n=n: getattr(a, n)(t(3, dtype=BOOL))) for n in ["any", "all"]],
    ("all", lambda t: a.all.dims(t(2, 3, 2, dtype=BOOL), [0, 2], True)),
    ("_is_any_true", lambda t: a._is_any_true(t(3, dtype=BOOL))),
    ("_is_all_true", lambda t: a._is_all_true(t(3, dtype=BOOL))),
    ("count_nonzero", lambda t: torch.count_nonzero(t(3, 4, dtype=I64, low=0, high=3), 1)),
    ("logsumexp", lambda t: torch.logsumexp(t(3, 4, scale=9.0), 1)),
    ("logsumexp", lambda t: torch.logsumexp(t.of([[-float("inf"), -float("inf")], [1.0, float("inf")]]), 1, keepdim=True)),
    *[("var", lambda t, c=c: torch.var(t(3, 5), 1, correction=c)) for c in [0, 1]],
    ("var", lambda t: torch.var(t(6, dtype=BF16))),
    ("std", lambda t: torch.std(t(3, 5), -1, keepdim=True)),
    ("var_mean", lambda t: torch.var_mean(t(3, 5), 1, unbiased=False)),
    *[("linalg_vector_norm", lambda t, p=p: torch.linalg.vector_norm(t(3, 5), p, -1)) for p in [2, 1, 3.5, 0, float("inf"), -float("inf")]],
    ("linalg_vector_norm", lambda t: t(3, 5, dtype=BF16).norm(dim=-1, keepdim=True)),
    ("linalg_vector_norm", lambda t: torch.linalg.vector_norm(t(3, 5, dtype=BF16), dim=-1, dtype=F32)),
    # norms
    *[("_softmax", lambda t, d=d: torch.softmax(t(3, 6, dtype=d, scale=5.0), -1)) for d in [F32, BF16, F16, F64]],
    ("_softmax", lambda t: torch.softmax(t(3, 6, strange=True), 0)),
    ("_softmax", lambda t: torch.softmax(t(2, 3, 4), 1)),
    ("_softmax", lambda t: torch.softmax(t.of([[-float("inf")] * 3, [0.0, -float("inf"), 1.0]]), -1)),
    ("_softmax", lambda t: torch.softmax(t(3, 4, dtype=BF16), -1, dtype=F32)),
    ("_softmax", lambda t: torch.softmax(t.of(2.0), -1)),
    *[("_log_softmax", lambda t, d=d: torch.log_softmax(t(3, 6, dtype=d, scale=5.0), -1)) for d in [F32, BF16]],
    *[("native_layer_norm", lambda t, d=d: N.layer_norm(t(3, 8, dtype=d), [8], t(8, dtype=d), t(8, dtype=d), 1e-6)) for d in [F32, BF16, F64]],
    ("native_layer_norm", lambda t: N.layer_norm(t(8, 3).t(), [8])),
    ("native_layer_norm", lambda t: N.layer_norm(t(2, 3, 4), [3, 4], t(3, 4))),
    ("native_layer_norm", lambda t: a.native_layer_norm(t(3, 8), [8], None, None, 1e-5)),
    *[("native_group_norm", lambda t, d=d: N.group_norm(t(2, 6, 4, dtype=d), 3, t(6, dtype=d), t(6, dtype=d))) for d in [F32, BF16]],
    ("native_group_norm", lambda t: N.group_norm(t(2, 4, 3, 2), 2)),
    ("native_group_norm", lambda t: N.group_norm(t(2, 12), 2, t(12))),
    ("native_batch_norm", lambda t: N.batch_norm(t(3, 4, 5), t(4), t(4).abs(), t(4), t(4))),
    ("native_batch_norm", lambda t: N.batch_norm(t(3, 4, 2, 2), t(4), t(4).abs(), eps=1e-3)),
    ("native_batch_norm", lambda t: N.batch_norm(t(3, 4, 5), None, None, t(4), t(4), training=True)),
    ("native_batch_norm", lambda t: N.instance_norm(t(3, 4, 5), weight=t(4))),
    *[("_fused_rms_norm", lambda t, d=d: fused_rms_norm(t(3, 8, dtype=d), [8], t(8, dtype=d), 1e-6)) for d in [F32, BF16]],
    *[("_cdist_forward", lambda t, p=p: a._cdist_forward(t(2, 3, 5), t(4, 5), p, None)) for p in [2.0, 1.0, 3.0, float("inf")]],
    *[("complex", lambda t, f=f: torch.view_as_real(f(torch.view_as_complex(t(3, 4, 2)))))
      for f in [lambda z: z.sum(-1), lambda z: z.mean((0, 1)), lambda z: z.cumsum(0)]],
]
