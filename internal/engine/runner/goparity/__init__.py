"""The runners of goparity: they run a model in torch or MAX and write each layer's tensors as a dump.

`python RUNNER JOB.json`, with the folder that holds this package, runs one job. In model code,
`from goparity import parity_tap` records a value by hand.
"""

from .tap import parity_tap

__all__ = ["parity_tap"]
