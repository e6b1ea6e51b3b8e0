"""Writes the samples that the operators are tested on: what torch gave for a few calls of each.

    .venv/bin/python internal/replay/testdata/generate.py [TABLE…]

A table is a file samples_NAME.py with a list `samples` of rows (label, function). The function gets `t`, which makes operands
(see Operands), and returns a tensor or several. The recorder of the torch runner writes what torch runs meanwhile as a program,
NAME/program.json and program.safetensors, each row a module whose outputs are ports; results.safetensors has these outputs by
label. Views that a function takes of its operands are operators of the program: so there are operands with strides. A row is seeded
by its table, label and number alone.
"""

import importlib
import math
import pathlib
import re
import sys
import warnings
import zlib

import torch
from safetensors.torch import save
from torch.utils._python_dispatch import _disable_current_modes

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "engine" / "runner"))

from goparity.program import Recorder  # noqa: E402


class Operands:
    """t(3, 4) is a float32 matrix of normal numbers; t(3, dtype=torch.int64, low=0, high=5) of whole ones; t.of([1, 2]) these numbers."""

    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)

    def __call__(self, *shape, dtype=torch.float32, low=-9, high=10, scale=1.0, strange=False):
        with _disable_current_modes():
            if dtype == torch.bool:
                return torch.rand(shape, generator=self.random) < 0.5
            if not dtype.is_floating_point:
                return torch.randint(0 if dtype == torch.uint8 and low < 0 else low, high, shape, generator=self.random).to(dtype)
            x = (torch.randn(shape, generator=self.random, dtype=torch.float64) * scale).to(dtype)
            if strange:  # NaN, infinities and both zeros in front
                flat = x.view(-1)
                flat[:5] = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0]).to(dtype)[: flat.numel()]
            return x

    def of(self, values, dtype=torch.float32):
        with _disable_current_modes():
            return torch.tensor(values, dtype=dtype)


class Sample(torch.nn.Module):
    def __init__(self, function, operands):
        super().__init__()
        self.function, self.operands = function, operands

    def forward(self):
        self.results = self.function(self.operands)
        return self.results


class Table(torch.nn.Module):
    def __init__(self, name, rows):
        super().__init__()
        for i, (label, function) in enumerate(rows):
            self.add_module(f"{label}-{i}".replace(".", "_"), Sample(function, Operands(zlib.crc32(f"{name} {label} {i}".encode()))))

    def forward(self):
        for sample in self.children():
            sample()

    def results(self):
        out = {}
        for name, sample in self.named_children():
            several = isinstance(sample.results, (tuple, list))
            for i, t in enumerate(sample.results if several else [sample.results]):
                t = torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
                out[f"model.{name}-output_{i}" if several else f"model.{name}-output"] = t.clone(memory_format=torch.contiguous_format)
        return out


def write(name):
    table, folder = Table(name, importlib.import_module(f"samples_{name}").samples), HERE / name
    with torch.no_grad(), Recorder(table, case=name, frames=None) as recorder:
        table()
    folder.mkdir(exist_ok=True)
    recorder.save(folder)
    file = folder / "program.json"
    file.write_text(re.sub(r'"modules":\{.*\}', '"modules":{}', file.read_text()))
    (folder / "results.safetensors").write_bytes(save(table.results()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for table in sys.argv[1:] or sorted(f.stem.removeprefix("samples_") for f in HERE.glob("samples_*.py")):
        write(table)
