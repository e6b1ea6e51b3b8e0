"""Prints tensors as a hook on torch modules does: torch.log; want_torch.json has their content.

Needs torch and numpy; version of the last run: 2.15.0.
"""

import json

import numpy as np
import torch

torch.manual_seed(1)
items = [
    ("scalar", torch.tensor(0.5)), ("int scalar", torch.tensor(7)), ("bool scalar", torch.tensor(True)),
    ("vector", torch.arange(5.0)), ("wrapped", torch.arange(40.0) / 8), ("matrix", torch.randn(3, 4)), ("cube", torch.randn(2, 3, 2)),
    ("five axes", torch.randn(1, 2, 1, 2, 2)), ("wide range", torch.tensor([1e-6, 1.0, -123456.0])),
    ("special", torch.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0])), ("ints", torch.tensor([[1, -2], [300, 4]])),
    ("bools", torch.tensor([[True, False], [False, False]])), ("int32", torch.tensor([1, 2], dtype=torch.int32)),
    ("bfloat16", torch.randn(2, 3).to(torch.bfloat16)), ("float64", torch.randn(3, dtype=torch.float64)),
    ("empty", torch.zeros(0)), ("empty matrix", torch.zeros(0, 3)), ("empty rows", torch.zeros(2, 0)), ("empty ints", torch.zeros(0, dtype=torch.int64)),
    ("grad", torch.randn(2, 2, requires_grad=True)), ("grad_fn", torch.randn(2, 2, requires_grad=True) * 2),
]
with open("torch.log", "w") as f:
    for label, t in items:
        print(f"{label} = {t!r}", file=f)
want = []
for label, t in items:
    t = t.detach()
    b = (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()
    want.append({"label": label, "dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "hex": b.hex()})
json.dump(want, open("want_torch.json", "w"), separators=(",", ":"))
with open("summary.log", "w") as f:
    print(f"before = {torch.tensor([1.0])}\nlarge = {torch.randn(40, 40)}\nafter = {torch.tensor([2.0])}", file=f)
