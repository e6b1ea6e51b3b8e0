import math

import torch

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
sdpa = torch.nn.functional.scaled_dot_product_attention
aten = torch.ops.aten


def mask(t, *rows):
    return t.of(rows, torch.bool)


def denied(t, value):
    return t.of([[0, 1, 0, -1, 0], [value] * 5, [0, 0, 0, value, 0]])


samples = [
    *[("attention", lambda t, d=d: sdpa(t(2, 2, 3, 8, dtype=d), t(2, 2, 5, 8, dtype=d), t(2, 2, 5, 8, dtype=d))) for d in FLOATS],
    ("attention", lambda t: sdpa(t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8), is_causal=True)),
    ("attention", lambda t: sdpa(t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 6), is_causal=True)),
    ("attention", lambda t: sdpa(t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8), scale=0.5)),
    ("attention", lambda t: sdpa(t(1, 2, 3, 8), t(1, 2, 5, 8), t(1, 2, 5, 8), attn_mask=t(1, 1, 3, 5))),
    ("attention", lambda t: sdpa(t(2, 2, 3, 8), t(2, 2, 5, 8), t(2, 2, 5, 8), attn_mask=t(2, 1, 3, 5, dtype=torch.bool))),
    ("attention", lambda t: sdpa(t(1, 4, 3, 8), t(1, 2, 3, 8), t(1, 2, 3, 8), enable_gqa=True)),
    ("attention", lambda t: sdpa(t(1, 3, 2, 8).transpose(1, 2), t(1, 5, 2, 8).transpose(1, 2), t(1, 5, 2, 8).transpose(1, 2))),
    ("attention", lambda t: sdpa(t(2, 3, 8), t(2, 5, 8), t(2, 5, 8))),
    ("attention", lambda t: sdpa(t(1, 1, 1, 8), t(1, 1, 9, 8), t(1, 1, 9, 8))),
    *[
        ("attention", lambda t, m=m: sdpa(t(1, 2, 3, 8), t(1, 2, 5, 8), t(1, 2, 5, 8), attn_mask=m(t)))
        for m in [
            lambda t: mask(t, [1, 0, 1, 0, 0], [0] * 5, [1] * 5),
            lambda t: denied(t, -math.inf),
            lambda t: denied(t, torch.finfo(torch.float32).min),
            lambda t: denied(t, -1e9),
        ]
    ],
    *[
        ("attention", lambda t, d=d: aten.scaled_dot_product_attention(t(1, 4, 3, 8, dtype=d), t(1, 2, 3, 8, dtype=d), t(1, 2, 3, 8, dtype=d), enable_gqa=True))
        for d in FLOATS
    ],
]
