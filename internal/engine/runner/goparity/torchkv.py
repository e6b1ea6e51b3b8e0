"""A cache that rounds the keys and values which it keeps, as engines do whose caches have 8 or 4 bits.

The numbers of a token and head are rounded in groups along the head. What is recorded of the model stays as it was.
"""

from contextlib import contextmanager

import torch

from .errors import UsageError
from .torchrounding import float8

_LEAST = 1e-7  # the least step of mlx


@contextmanager
def rounding(how):
    """Has the caches of transformers round while it is open; how is kv_type of a job, or None.

    With exact_prefill the first forward pass reads what it was given, and all later ones what was made of that.
    """
    if not how:
        yield
        return
    from transformers import cache_utils

    kinds = [k for k in vars(cache_utils).values() if isinstance(k, type) and issubclass(k, cache_utils.CacheLayerMixin) and "update" in vars(k)]
    before, done = {k: k.update for k in kinds}, []
    try:
        for k in kinds:
            k.update = _update(k.update, how, done)
        yield
    finally:
        for k, update in before.items():
            k.update = update
    if not done:
        raise UsageError("kv_cache: the model put no keys and values into a cache of transformers", "take kv_cache out of references")


def _update(update, how, done):
    def rounded(self, keys, values, *args, **kwargs):
        if getattr(self, "goparity_rounds", False):  # of its base class
            return update(self, keys, values, *args, **kwargs)
        first = how.get("exact_prefill") and not self.get_seq_length()
        if not first:
            keys, values = of(keys, how), of(values, how)
            if getattr(self, "goparity_exact", False):
                self.keys, self.values = of(self.keys, how), of(self.values, how)
        self.goparity_rounds, self.goparity_exact = True, first
        done[:] = [True]
        try:
            return update(self, keys, values, *args, **kwargs)
        finally:
            self.goparity_rounds = False

    return rounded


def of(x, how):
    """What a cache makes of keys or values, […, width of a head]."""
    if how["type"] == "float8_e4m3fn":
        return float8(x)
    group = how["group"]
    if x.shape[-1] % group:
        raise UsageError(f"kv_cache: a head of {x.shape[-1]} numbers is no whole number of groups of {group}", "write group in references")
    of_group = {"affine": _affine, "symmetric": _symmetric, "mlx": _mlx}[how["scheme"]]
    return of_group(x.unflatten(-1, (-1, group)), {"int8": 8, "int4": 4}[how["type"]]).flatten(-2)


def _symmetric(x, bits):
    """max|x| becomes 2^(bits-1) - 1."""
    most = 2 ** (bits - 1) - 1
    step = x.abs().amax(-1, keepdim=True) / most
    return torch.round(x / torch.where(step == 0, 1.0, step)) * step


def _affine(x, bits):
    """The least number becomes 0, the largest 2^bits - 1."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    step = (high - low) / (2**bits - 1)
    return torch.round((x - low) / torch.where(step == 0, 1.0, step)) * step + low


def _mlx(x, bits):
    """As mlx.core.quantize: what is furthest from 0 is kept, and 0 is."""
    most, t = 2**bits - 1, x.dtype
    x = x.float()
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    below = low.abs() > high.abs()
    step = ((high - low) / most).clamp(min=_LEAST)
    step, edge = torch.where(below, step, -step), torch.where(below, low, high)
    zero = torch.round(edge / step)
    step, bias = torch.where(zero == 0, step, edge / zero), torch.where(zero == 0, 0.0, edge)
    return torch.round((x - bias) / step).clamp(0, most).to(t) * step.to(t) + bias.to(t)
