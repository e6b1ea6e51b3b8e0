import torch

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def z(t, *shape):
    return torch.view_as_complex(t(*shape, 2))


def grouped(t, dtype, columns=False):
    """Rows sorted by group, one of which has none."""
    b = t(4, 16, 16, dtype=dtype)
    return torch._grouped_mm(t(12, 16, dtype=dtype), b.transpose(1, 2) if columns else b, offs=t.of([3, 3, 8, 12], torch.int32))


samples = [
    *[("mm", lambda t, d=d: torch.mm(t(5, 7, dtype=d), t(7, 6, dtype=d))) for d in FLOATS],
    *[("mm", lambda t, d=d: torch.mm(t(7, 5, dtype=d).t(), t(6, 7, dtype=d).t())) for d in FLOATS],
    ("mm", lambda t: torch.mm(t(5, 14)[:, ::2], t(3, 7, 4)[1])),
    ("mm", lambda t: torch.mm(t(2, 3, strange=True), t(3, 4))),
    ("mm", lambda t: torch.mm(t(3, 0), t(0, 4))),
    ("mm", lambda t: torch.mm(t(1, 1), t(1, 1))),
    ("mm", lambda t: torch.mm(t(0, 3), t(3, 4))),
    ("mm", lambda t: torch.mm(t(3, 4, dtype=torch.int64), t(4, 5, dtype=torch.int64))),
    ("mm", lambda t: torch.mm(t(1, 33), t(33, 19))),
    ("mm", lambda t: torch.mm(t(19, 1).expand(19, 3), t(3, 17))),
    *[("addmm", lambda t, d=d: torch.addmm(t(6, dtype=d), t(5, 7, dtype=d), t(6, 7, dtype=d).t())) for d in FLOATS],
    ("addmm", lambda t: torch.addmm(t(5, 6), t(5, 7), t(7, 6), beta=0.5, alpha=-2)),
    ("addmm", lambda t: torch.addmm(t(1, 6, strange=True), t(5, 7), t(7, 6), beta=0)),
    ("linear", lambda t: torch.nn.functional.linear(t(2, 3, 7), t(6, 7), t(6))),
    *[("bmm", lambda t, d=d: torch.bmm(t(3, 4, 5, dtype=d), t(3, 5, 2, dtype=d))) for d in FLOATS],
    ("bmm", lambda t: torch.bmm(t(3, 5, 4).transpose(1, 2), t(3, 2, 5).transpose(1, 2))),
    ("bmm", lambda t: torch.bmm(t(2, 3, 4, 5)[:, 1], t(1, 5, 6).expand(2, 5, 6))),
    ("matmul", lambda t: torch.matmul(t(2, 3, 4, 5), t(3, 5, 2))),
    *[("baddbmm", lambda t, d=d: torch.baddbmm(t(3, 4, 2, dtype=d), t(3, 4, 5, dtype=d), t(3, 5, 2, dtype=d))) for d in FLOATS],
    ("baddbmm", lambda t: torch.baddbmm(t(4, 1), t(3, 4, 5), t(3, 5, 2), beta=0, alpha=0.125)),
    ("mv", lambda t: torch.mv(t(4, 5), t(5))),
    ("dot", lambda t: torch.dot(t(5), t(5))),
    ("addmv", lambda t: torch.addmv(t(4), t(4, 5), t(5), beta=2)),
    *[("grouped_mm", lambda t, d=d: grouped(t, d)) for d in [torch.bfloat16, torch.float32]],
    ("grouped_mm", lambda t: grouped(t, torch.bfloat16, columns=True)),
    ("complex", lambda t: torch.view_as_real(torch.einsum("bij,bjk->bik", z(t, 3, 4, 5), z(t, 3, 5, 2).conj()))),
    ("complex", lambda t: torch.view_as_real(torch.addmm(z(t, 6), z(t, 5, 7), z(t, 6, 7).t(), alpha=2, beta=0.5))),
    ("complex", lambda t: torch.view_as_real(torch.mv(z(t, 4, 5), z(t, 5)))),
    *[("linalg", lambda t, f=f: f(t(2, 5, 5) + torch.eye(5))) for f in [torch.linalg.slogdet, torch.linalg.det, torch.linalg.inv]],
    ("linalg", lambda t: torch.linalg.slogdet(t(4, 4, dtype=torch.float64))),
]
