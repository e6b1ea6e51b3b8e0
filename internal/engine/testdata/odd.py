"""A model whose layers get and give everything that a layer may: named arguments, tuples, dicts, dataclasses, in-place changes, two calls."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Pair:
    left: torch.Tensor
    right: tuple


class Inner(nn.Module):
    def forward(self, x, *, scale, flags=None):
        return x * scale, {"half-of-it": x / 2}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.inner = Inner()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x, mask=None):
        x = self.norm(x)
        y, more = self.inner(x, scale=torch.tensor(-2.0, dtype=x.dtype), flags=[mask])
        z = self.relu(y)
        return Pair(self.norm(z), (more["half-of-it"], None))


def reference(spec):
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    model = Model()
    if spec.case == "nan":
        model.norm.bias.data[1] = torch.nan
    if spec.case == "zero":
        model.norm.weight.data.zero_()
    return model, {"x": x, "mask": torch.tensor([True, False])}
