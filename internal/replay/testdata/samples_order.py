import math

import torch

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
WHOLE = [torch.int64, torch.int32]
LONG = torch.int64


def apart(t, *shape, dtype=torch.float32):
    """Numbers of which no two are equal."""
    n = math.prod(shape)
    with torch.utils._python_dispatch._disable_current_modes():
        return (t.of(torch.randperm(n, generator=t.random).tolist()) - n // 2).reshape(shape).to(dtype)


samples = [
    *[("sort", lambda t, d=d: torch.sort(apart(t, 3, 5, dtype=d))) for d in [*FLOATS, *WHOLE]],
    ("sort", lambda t: torch.sort(t(9, dtype=LONG, low=0, high=4), stable=True)),
    ("sort", lambda t: torch.sort(t(9, dtype=LONG, low=0, high=4), stable=True, descending=True)),
    ("sort", lambda t: torch.sort(t(3, 4), dim=0, descending=True)),
    ("sort", lambda t: torch.sort(t.of([1, math.nan, -math.inf, 2, math.inf]))),
    ("sort", lambda t: torch.sort(t.of([1, math.nan, -math.inf, 2, math.inf]), descending=True)),
    ("sort", lambda t: torch.sort(t())),
    ("argsort", lambda t: torch.argsort(t(3, 4), -1, descending=True)),
    *[("topk", lambda t, d=d: torch.topk(apart(t, 3, 6, dtype=d), 2)) for d in [*FLOATS, *WHOLE]],
    ("topk", lambda t: torch.topk(t(5, 3), 3, dim=0, largest=False)),
    ("topk", lambda t: torch.topk(t.of([1, math.nan, 3, 2]), 2)),
    ("topk", lambda t: torch.topk(t(4), 4)),
    ("topk", lambda t: torch.topk(t(2, 3), 0)),
    ("kthvalue", lambda t: torch.kthvalue(apart(t, 3, 5), 2)),
    ("kthvalue", lambda t: torch.kthvalue(apart(t, 3, 5), 3, dim=0, keepdim=True)),
    ("median", lambda t: torch.median(apart(t, 3, 6), 1)),
    ("median", lambda t: torch.median(apart(t, 3, 5), 0, keepdim=True)),
    ("median", lambda t: torch.median(t.of([3, math.nan, 1]), 0)),
    ("median", lambda t: torch.median(apart(t, 2, 4))),
    ("mode", lambda t: torch.mode(t.of([[1, 3, 3, 2, 2], [4, 4, 4, 1, 0]]))),
    *[("cumsum", lambda t, d=d: torch.cumsum(t(3, 5, dtype=d), 1)) for d in [*FLOATS, *WHOLE, torch.bool]],
    ("cumsum", lambda t: torch.cumsum(t(3, 4).t(), -2)),
    ("cumsum", lambda t: torch.cumsum(t(5, strange=True)[1:], 0)),
    ("cumsum", lambda t: torch.cumsum(t(3, dtype=torch.bool), 0, dtype=torch.float32)),
    ("cumsum", lambda t: torch.cumsum(t(), 0)),
    ("cumsum", lambda t: torch.cumsum(t(0, 3), 0)),
    *[("cumprod", lambda t, d=d: torch.cumprod(t(3, 5, dtype=d), 0)) for d in [*FLOATS, LONG]],
    ("logcumsumexp", lambda t: torch.logcumsumexp(t(3, 5), 1)),
    ("logcumsumexp", lambda t: torch.logcumsumexp(t.of([-math.inf, 1, -math.inf, 2]), 0)),
    ("cummax", lambda t: torch.cummax(t.of([[1, 3, 3, 2], [0, -1, math.nan, 5]]), 1)),
    ("cummin", lambda t: torch.cummin(t(4, 3), 0)),
    ("unique_consecutive", lambda t: torch.unique_consecutive(t.of([3, 3, 1, 1, 1, 3, 2], dtype=torch.int64))),
    ("unique_consecutive", lambda t: torch.unique_consecutive(t.of([[3, 3], [1, 3]]), return_inverse=True, return_counts=True)),
    ("unique", lambda t: torch.unique(t.of([3, 3, 1, 1, 1, 3, 2], dtype=torch.int64), return_inverse=True)),
    ("unique", lambda t: torch.unique(t(2, 6, dtype=torch.int64, low=0, high=4), return_inverse=True, return_counts=True)),
]
