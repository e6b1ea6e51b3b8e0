"""The keys and values that MAX's paged cache holds, as ports of the attention layers."""

import os
import re

import numpy as np

from . import safetensors
from .progress import warn

_ATTENTION = re.compile(r"(?:.*\.)?(\d+)\.[^.]*(?:attn|attention)", re.I)
_PAGES = "full_group"  # what MAX calls the pages of layers without a window


class Reader:
    """Reads the rows that a forward pass has written: items are (context, from, to)."""

    def __init__(self, cache, labels, wants):
        self.cache, self.wants, self.warned = cache, wants, False
        self.layers = {}
        for layer, _, _ in labels:
            if (m := _ATTENTION.fullmatch(layer)) and int(m[1]) not in self.layers:
                self.layers[int(m[1])] = layer

    def rows(self, items):
        """Keys and values, [rows, heads, width], by layer; none where MAX keeps them in another way."""
        try:
            parts = [self._of(*item) for item in items]
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as e:
            if not self.warned:
                warn(f"the keys and values of MAX's cache are not recorded: {type(e).__name__}: {e}")
                self.warned = True
            return {}
        joined = np.concatenate(parts, axis=2)
        return {i: (joined[0, i], joined[1, i]) for i in range(joined.shape[1]) if i in self.layers}

    def _of(self, context, begin, end):
        pages = self.cache.get_req_blocks_per_leaf(context)
        if list(pages) != [_PAGES]:
            raise ValueError(f"its pages are of {sorted(pages)}")
        buffers = self.cache.get_device_buffer(0).all_buffers
        if len(buffers) != 1 or len(buffers[0].shape) != 6:  # [pages, 2, layers, slots, heads, width]
            raise ValueError(f"it has {len(buffers)} buffers, the first of {list(buffers[0].shape)}")
        held = buffers[0].to_numpy()
        size = held.shape[3]
        return np.concatenate([held[pages[_PAGES][p], :, :, max(begin - p * size, 0) : end - p * size]
                               for p in range(begin // size, (end - 1) // size + 1)], axis=2)  # fmt: skip

    def keep(self, dump, step, folder, rows):
        """Writes the rows, and lists them after what each attention has recorded."""
        if not rows:
            return
        file, tensors, order = "cache.safetensors", [], dump.order
        for index, pair in rows.items():
            layer = self.layers[index]
            at = max((i for i, e in enumerate(order) if e[0] == str(step) and e[1] == layer), default=None)
            if at is None:
                continue
            wanted = [(port, t) for port, t in zip(("key_cache", "value_cache"), pair) if self.wants(layer, port)]
            for k, (port, t) in enumerate(wanted):
                name = f"{layer}-{port}"
                tensors.append((name, "F32", t.shape, np.ascontiguousarray(t, np.float32).tobytes()))
                order.insert(at + 1 + k, [str(step), layer, port, file, name])
        safetensors.write(os.path.join(folder, file), tensors)
