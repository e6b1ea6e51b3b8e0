"""The runners of goparity: they run a model in torch or in MAX and write every layer's tensors as a dump folder.

`python -m goparity JOB.json` does one job and ends. In model code, `from goparity import parity_tap` records a value by hand.
"""

from .tap import parity_tap

__all__ = ["parity_tap"]
