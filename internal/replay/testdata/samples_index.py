import torch
from torch.nn import functional as F

aten = torch.ops.aten
FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
ALL = [*FLOATS, torch.int64, torch.int32, torch.bool]
LONG = torch.int64


def ids(t, *shape, to, low=0):
    return t(*shape, dtype=LONG, low=low, high=to)


def put(t, indices, values, accumulate=False, dtype=torch.float32, self=(4, 5)):
    return aten.index_put(t(*self, dtype=dtype), indices, values, accumulate)


def distinct(t, *shape, to):
    """An index along the last axis without one twice."""
    with torch.utils._python_dispatch._disable_current_modes():
        return torch.rand(*shape[:-1], to, generator=t.random).argsort(-1)[..., : shape[-1]]


def scattered(t, function, dtype=torch.float32, self=(3, 5), index=(2, 4), to=5, dim=1, **kw):
    with torch.utils._python_dispatch._disable_current_modes():
        at = distinct(t, *index, to=to)
    return function(t(*self, dtype=dtype), dim, at, t(*self, dtype=dtype), **kw)


samples = [
    *[("embedding", lambda t, d=d: F.embedding(ids(t, 2, 3, to=7), t(7, 4, dtype=d))) for d in FLOATS],
    ("embedding", lambda t: F.embedding(ids(t, 3, to=7).to(torch.int32), t(4, 7).t(), padding_idx=0)),
    *[("index", lambda t, d=d: t(5, 4, dtype=d)[ids(t, 3, to=5, low=-5)]) for d in ALL],
    ("index", lambda t: t(5, 4, 3)[:, ids(t, 2, 2, to=4)]),
    ("index", lambda t: t(5, 4, 3)[ids(t, 3, to=5), :, ids(t, 3, to=3)]),
    ("index", lambda t: t(5, 4, 3)[:, ids(t, 3, 1, to=4), ids(t, 2, to=3)]),
    ("index", lambda t: t(5, 4, 3).transpose(0, 2)[ids(t, 3, 1, to=3), ids(t, 2, to=4)]),
    ("index", lambda t: t(5, 4)[t.of([True, False, True, True, False], torch.bool)]),
    ("index", lambda t: t(2, 3, 4)[:, t.of([True, False, True], torch.bool)]),
    ("index", lambda t: t(2, 3, 4)[t(2, 3, dtype=torch.bool)]),
    ("index", lambda t: t(2, 3)[None, ids(t, 2, to=2), None]),
    ("index", lambda t: t(5, 4)[t.of([], LONG)]),
    ("index", lambda t: t(6)[ids(t, to=6)]),
    *[("index_put", lambda t, d=d: put(t, (ids(t, 1, to=4),), t(5, dtype=d), dtype=d)) for d in ALL],
    ("index_put", lambda t: put(t, (t.of([1, 3, 1], LONG), t.of([0, 2, 0], LONG)), t(3), accumulate=True)),
    ("index_put", lambda t: put(t, (None, t.of([1, 3], LONG)), t(4, 2))),
    ("index_put", lambda t: put(t, (t(4, 5, dtype=torch.bool),), t.of(2.5))),
    ("index_put", lambda t: put(t, (t.of([1, 0], LONG), None, t.of([3, 2], LONG)), t(2, 3), self=(2, 3, 4))),
    ("index_put", lambda t: put(t, (None, t.of([[1], [0]], LONG), t.of([3, 2], LONG)), t(2, 2), self=(2, 3, 4))),
    ("index_put", lambda t: put(t, torch.zeros(0, 2, dtype=LONG).unbind(1), t(0))),
    *[("index_select", lambda t, d=d: torch.index_select(t(4, 5, dtype=d), 1, ids(t, 3, to=5))) for d in ALL],
    ("index_select", lambda t: torch.index_select(t(4, 5).t(), -1, ids(t, 3, to=4).to(torch.int32))),
    ("index_select", lambda t: torch.index_select(t(), 0, t.of([0], LONG))),
    *[("index_add", lambda t, d=d: torch.index_add(t(4, 5, dtype=d), 0, t.of([1, 3, 0], LONG), t(3, 5, dtype=d))) for d in [*FLOATS, LONG]],
    ("index_add", lambda t: torch.index_add(t(4, 5), -1, t.of([1, 1, 4], LONG), t(4, 3), alpha=-0.5)),
    *[("index_copy", lambda t, d=d: torch.index_copy(t(4, 5, dtype=d), 1, t.of([1, 3], LONG), t(4, 2, dtype=d))) for d in ALL],
    *[("gather", lambda t, d=d: torch.gather(t(4, 5, dtype=d), 1, ids(t, 4, 3, to=5))) for d in ALL],
    ("gather", lambda t: torch.gather(t(5, 4, 3).transpose(0, 1), -2, ids(t, 2, 6, 3, to=5))),
    ("gather", lambda t: torch.take_along_dim(t(4, 5), ids(t, 1, 3, to=5), 1)),
    ("gather", lambda t: torch.gather(t(), 0, t.of(0, LONG))),
    *[("scatter", lambda t, d=d: scattered(t, torch.scatter, dtype=d)) for d in ALL],
    *[("scatter_value", lambda t, d=d: torch.scatter(t(3, 5, dtype=d), -1, ids(t, 3, 2, to=5), 1)) for d in ALL],
    ("scatter_value", lambda t: torch.scatter(t(3, 5).t(), 0, ids(t, 2, 3, to=5), -0.3)),
    ("scatter_reduce", lambda t: scattered(t, torch.scatter, reduce="add")),
    ("scatter_reduce", lambda t: scattered(t, torch.scatter, reduce="multiply")),
    *[("scatter_add", lambda t, d=d: scattered(t, torch.scatter_add, dtype=d)) for d in [*FLOATS, LONG]],
    ("scatter_add", lambda t: torch.scatter_add(t(3, 5), 0, ids(t, 4, 5, to=3), t(4, 5))),
    *[
        ("scatter_reduce", lambda t, how=how, inside=inside: torch.scatter_reduce(t(3, 5), 0, ids(t, 4, 5, to=3), t(4, 5), how, include_self=inside))
        for how in ["sum", "prod", "mean", "amax", "amin"]
        for inside in [True, False]
    ],
    ("scatter_reduce", lambda t: torch.scatter_reduce(t(3, 5, dtype=LONG), 0, ids(t, 4, 5, to=3), t(4, 5, dtype=LONG), "mean")),
    ("masked_scatter", lambda t: torch.masked_scatter(t(3, 4), t(3, 4, dtype=torch.bool), t(3, 4))),
    ("masked_scatter", lambda t: torch.masked_scatter(t(2, 3, 4), t(3, 1, dtype=torch.bool), t(24))),
    ("masked_select", lambda t: torch.masked_select(t(3, 4), t(4, dtype=torch.bool))),
    ("nonzero", lambda t: torch.nonzero(t(3, 4, dtype=torch.bool))),
    ("nonzero", lambda t: torch.nonzero(t(7, dtype=LONG, low=-1, high=2))),
    ("one_hot", lambda t: F.one_hot(ids(t, 2, 3, to=5), 5)),
    *[("bucketize", lambda t, r=r: torch.bucketize(t.of([[-3, 0, 0.5], [1, 2, 9]]), t.of([0, 0.5, 0.5, 2.0]), right=r)) for r in [False, True]],
    ("searchsorted", lambda t: torch.searchsorted(t.of([[0, 1, 2.0], [-1, 5, 6]]), t.of([[1, 1.5], [0, 7]]), side="right")),
    ("histc", lambda t: torch.histc(t.of([0, 2, 2, 3, 1, 0, 3.0]), 4, 0, 3)),
    ("histc", lambda t: torch.histc(t(9), 5)),
    ("repeat_interleave", lambda t: torch.repeat_interleave(t.of([2, 0, 3], LONG))),
    ("repeat_interleave", lambda t: torch.repeat_interleave(t(3, 2), t.of([1, 2, 1], LONG), 0)),
    ("repeat_interleave", lambda t: torch.repeat_interleave(t(3, 2), 2, 1)),
    ("complex", lambda t: torch.view_as_real(torch.view_as_complex(t(4, 3, 2))[t.of([2, 0], LONG)])),
    ("complex", lambda t: torch.view_as_real(torch.view_as_complex(t(3, 2)).index_add(0, t.of([2, 0], LONG), torch.view_as_complex(t(2, 2))))),
]
