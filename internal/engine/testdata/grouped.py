"""A model of a product that torch does not have in float64."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.Parameter(torch.ones(2, 16, 16))

    def forward(self, x):
        return nn.functional.grouped_mm(x, self.experts, offs=torch.tensor([4, 8], dtype=torch.int32))


def reference(spec):
    return Model(), (torch.ones(8, 16),)
