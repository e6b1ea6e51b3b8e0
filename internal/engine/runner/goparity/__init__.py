"""goparity's recorder and runners: what a model computes, layer by layer, as a dump that `parity compare` judges.

    with goparity.record(model, "dump"):  # torch.nn.Module, mlx.nn.Module
        model(ids)
    goparity.dump("dump", {"layers.0": array})  # any engine

In model code, `goparity.parity_tap(x, "name")` records a value by hand. `python RUNNER JOB.json`, with the
folder that holds this package, runs one job of the command parity.
"""

from .recording import dump, record
from .tap import parity_tap

__all__ = ["dump", "parity_tap", "record"]
