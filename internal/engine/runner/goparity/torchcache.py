"""The keys and values that torch's cache holds, as ports of the attention layers."""

import re

from .progress import warn

_ATTENTION = re.compile(r"attn|attention", re.I)


def ports(model, past, n, wants):
    """key_cache and value_cache of each attention layer: [(layer, port, tensor on the model's device)].

    They have the rows of the last n tokens of each sequence, [batch, n, heads, width]. A layer whose
    cache does not hold that many, as of a sliding window, is left out.
    """
    held, found = _held(past), []
    for index, layer in sorted(_layers(model).items()):
        keys, values = held.get(index, (None, None))
        if keys is None or keys.dim() != 4 or keys.shape[2] < n:
            continue
        found += [(layer, port, t[:, :, -n:].transpose(1, 2).detach()) for port, t in (("key_cache", keys), ("value_cache", values)) if wants(layer, port)]
    if past is not None and not held:
        warn(f"the keys and values of {type(past).__name__} are not recorded: it has no layers with keys and values")
    return found


def place(found, records):
    """Puts the ports after what their layers have recorded. One that is not captured is left out."""
    for layer in dict.fromkeys(layer for layer, *_ in found):
        at = max((i for i, r in enumerate(records) if r[0] == layer), default=None)
        if at is not None:
            records[at + 1 : at + 1] = [(name, port, t.to("cpu", copy=True).contiguous()) for name, port, t in found if name == layer]


def _held(past):
    """Keys and values, [batch, heads, slots, width], by layer."""
    held = {}
    for i, layer in enumerate(getattr(past, "layers", None) or []):
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if keys is not None and values is not None:
            held[i] = (keys, values)
    return held


def _layers(model):
    """The attention that fills each layer of the cache, by its number."""
    found = {}
    for name, module in model.named_modules():
        index = getattr(module, "layer_idx", None)
        if isinstance(index, int) and index not in found and _ATTENTION.search(name.rsplit(".", 1)[-1]):
            found[index] = f"model.{name}"
    return found
