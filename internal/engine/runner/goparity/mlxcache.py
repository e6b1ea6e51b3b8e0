"""The caches of mlx-lm: which are made, and the keys and values that they hold, as ports of the attention layers."""

import mlx.core as mx

from .errors import UsageError
from .progress import warn

# Settings of a run, by the names that mlx_lm.generate gives them.
SETTINGS = {"max_kv_size": None, "kv_bits": None, "kv_group_size": 64, "quantized_kv_start": 0}


def make(model, settings, left=None):
    """The caches of a model, as mlx-lm makes them; left has the padding in front of each sequence of a batch."""
    from mlx_lm.models import cache as caches

    made = caches.make_prompt_cache(model, max_kv_size=settings["max_kv_size"])
    if settings["max_kv_size"] and not any(isinstance(c, caches.RotatingKVCache) and c.max_size == settings["max_kv_size"] for c in made):
        warn(f"max_kv_size has no effect: {type(model).__name__} makes its own caches")
    if not left or not any(left):
        return made
    if settings["kv_bits"]:
        raise UsageError("mlx-lm rounds no cache of sequences of several lengths", "take batch and padding out of paths, or kv_bits out of the engine's settings")
    return [_padded(c, left, caches) for c in made]


def _padded(c, left, caches):
    """The cache of a padded batch in place of that of one sequence."""
    if type(c) is caches.KVCache:
        return caches.BatchKVCache(left)
    if type(c) is caches.RotatingKVCache and not c.keep:
        return caches.BatchRotatingKVCache(c.max_size, left)
    if type(c) is caches.ArraysCache:
        c.left_padding = mx.array(left)
        return c
    if type(c) is caches.CacheList:
        return caches.CacheList(*(_padded(e, left, caches) for e in c.caches))
    raise UsageError(f"{type(c).__name__} takes no sequences of several lengths", "run them one by one, or cut them to one length")


def quantise(held, settings):
    """Quantises what is held, as mlx_lm.generate does after each forward pass."""
    from mlx_lm.generate import maybe_quantize_kv_cache

    maybe_quantize_kv_cache(held, quantized_kv_start=settings["quantized_kv_start"], kv_group_size=settings["kv_group_size"], kv_bits=settings["kv_bits"])


def bits(held):
    """The least bits in which caches hold keys and values; None where none is quantised."""
    return min((c.bits for c in held or [] if hasattr(c, "bits")), default=None)


def state(held):
    """All arrays that caches hold."""
    return [a for c in held for a in _arrays(c.state)] if held else []


def _arrays(value):
    if isinstance(value, mx.array):
        return [value]
    return [a for v in value for a in _arrays(v)] if isinstance(value, (tuple, list)) else []


def ports(held, taken, n, wants):
    """key_cache and value_cache of each attention layer: [(layer, port, array)]. taken has its label by the id of its cache.

    They have the rows of the last n tokens of each sequence, [batch, n, heads, width]. A layer whose cache holds fewer,
    as of a sliding window, is left out.
    """
    found = []
    for c in held or []:
        layer, pair = taken.get(id(c)), _rows(c)
        if layer is None or pair is None or pair[0].ndim != 4 or pair[0].shape[2] < n:
            continue
        found += [(layer, port, mx.contiguous(t[:, :, -n:].swapaxes(1, 2))) for port, t in zip(("key_cache", "value_cache"), pair) if wants(layer, port)]
    return found


def place(found, records):
    """Puts the ports after what their layers have recorded. One that is not captured is left out."""
    for layer in dict.fromkeys(layer for layer, *_ in found):
        at = max((i for i, r in enumerate(records) if r[0] == layer), default=None)
        if at is not None:
            records[at + 1 : at + 1] = [f for f in found if f[0] == layer]


def _rows(c):
    """Keys and values [batch, heads, tokens, width] in the order of the tokens; None of a cache that has none."""
    if getattr(c, "keys", None) is None or not hasattr(c, "keys_and_values"):
        return None
    if hasattr(c, "bits"):
        return [mx.dequantize(*t, group_size=c.group_size, bits=c.bits) for t in c.keys_and_values()]
    return [in_order(c, t) for t in c.keys_and_values()]


def in_order(c, t):
    """Puts axis 2 of an array, the slots of a cache, in the order of the tokens: a cache that rotates begins anywhere."""
    if not rotates(c):
        return t
    if hasattr(c, "rotated"):  # of a batch
        return mx.roll(t, -c._idx, axis=2) if c.rotated else t
    return c._temporal_order(t)


def rotates(c):
    return hasattr(c, "_temporal_order") and hasattr(c, "_idx")
