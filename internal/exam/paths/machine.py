"""An inference engine in small: runs the forward passes of an execution path, with caches and masks of its own, right or wrong."""

import dataclasses
import pathlib
import sys

import torch
from transformers import DynamicCache

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine" / "runner"))
from goparity import torchcache  # noqa: E402
from goparity.torchhooks import Recorder  # noqa: E402


@dataclasses.dataclass
class Item:
    sequence: int
    start: int
    end: int
    fresh: bool = False
    cached: int = 0

    def json(self):
        out = {"sequence": self.sequence, "from": self.start, "to": self.end}
        return out | ({"fresh": True} if self.fresh else {}) | ({"cached_tokens": self.cached} if self.cached else {})


@dataclasses.dataclass
class Pass:
    """What a forward pass of a batch [b, n] is given. A fault changes it."""

    number: int
    items: list
    ids: torch.Tensor  # [b, n]
    positions: torch.Tensor  # [b, n]
    keys: torch.Tensor  # [b, p + n]: the position of the token of each key, −1 for none
    past: list  # of each layer, (k, v) [b, h, p, d]
    real: torch.Tensor  # [b, n]: no padding
    causal: bool
    window: int  # of layers that have one; 0 for none

    def allowed(self, window=0):
        """Which keys each row may look at, [b, n, p + n]."""
        q, k = self.queries()[:, :, None], self.keys[:, None, :]
        ok = (k >= 0) & (k <= q) if self.causal else (k >= 0).expand(-1, q.shape[1], -1).clone()
        if window:
            ok = ok & (k > q - window)
        return ok

    def queries(self):
        return self.keys[:, -self.ids.shape[1] :].clamp_min(0)


class Fault:
    """Nothing is wrong."""

    layers = None  # those whose mask or cache is wrong; None for all

    def prepare(self, p, machine):
        """Changes positions and the cache."""

    def mask(self, p, allowed, window):
        return allowed

    def hook(self, p, machine):
        """Hooks for this pass."""
        return []

    def recorded(self, k, cache):
        """Changes what is recorded of the cache in a pass: (layer, port, tensor)."""
        return cache


class Machine:
    def __init__(self, model, causal=True, fault=None, padding=None, side="right", program=None, caches=False):
        """program is told of the caches that are recorded."""
        self.model, self.causal, self.fault, self.padding, self.side = model, causal, fault or Fault(), padding, side
        c = model.config
        self.layers = getattr(c, "num_hidden_layers", None) or c.n_layer
        self.kinds = getattr(c, "layer_types", None)
        self.window = getattr(c, "sliding_window", None) or 0
        self.program, self.caches = program, caches
        self.past = {}  # of each sequence, (k, v) of each layer: [h, tokens, d]
        self.dtype = next(p.dtype for p in model.parameters() if p.is_floating_point())

    def run(self, tokens, passes):
        """The records of each pass, and its padding mask or None."""
        recorder, steps = Recorder(self.model), []
        for k, items in enumerate(passes):
            for i in items:
                if i.fresh or i.start == 0:
                    self.begin(i.sequence)
            batches = [items] if self.padding else [[i] for i in items]
            parts, mask = [], None
            for batch in batches:
                mask = self.forward(k, tokens, batch)
                records = recorder.take()
                torchcache.place(self.fault.recorded(k, self.held), records)
                parts.append((batch, records))
            steps.append((items, parts, mask))
        recorder.remove()
        return steps

    def begin(self, sequence):
        self.past[sequence] = None

    def forward(self, k, tokens, items):
        width = max(i.end - i.start for i in items)
        left = self.padding == "left"

        def place(n, w):
            return slice(w - n, w) if left else slice(0, n)

        ids = torch.zeros(len(items), width, dtype=torch.int64)
        real = torch.zeros_like(ids)
        positions = torch.zeros_like(ids)
        had = [self.past[i.sequence] for i in items]
        before = [p[0][0].shape[1] if p else 0 for p in had]
        longest = max(before)
        keys = torch.full((len(items), longest + width), -1)
        for b, i in enumerate(items):
            at = place(i.end - i.start, width)
            ids[b, at] = torch.tensor(tokens[i.sequence][i.start : i.end])
            real[b, at] = 1
            positions[b, at] = torch.arange(i.start, i.end)
            keys[b, longest:][at] = torch.arange(i.start, i.end)
            keys[b, :longest][place(before[b], longest)] = torch.arange(before[b])
        past = []
        for layer in range(self.layers if longest else 0):
            kv = []
            for which in (0, 1):
                shape = next(p for p in had if p)[layer][which].shape
                t = torch.zeros(len(items), shape[0], longest, shape[2], dtype=self.dtype)
                for b in range(len(items)):
                    if had[b]:
                        t[b, :, place(before[b], longest)] = had[b][layer][which]
                kv.append(t)
            past.append(kv)
        p = Pass(k, items, ids, positions, keys, past, real, self.causal, self.window)
        self.fault.prepare(p, self)
        self.call(p)
        return real.tolist() if self.padding and (real == 0).any() else None

    def call(self, p):
        masks = {"full_attention": self.mask(p, 0), "sliding_attention": self.mask(p, self.window)}
        mask = masks if self.kinds and len(set(self.kinds)) > 1 else masks[self.kinds[0] if self.kinds else "full_attention"]
        kwargs = {"input_ids": p.ids, "position_ids": p.positions, "attention_mask": mask}
        cache = None
        if self.causal:
            cache = DynamicCache()
            for layer, (k, v) in enumerate(p.past):
                cache.update(k, v, layer)
            kwargs |= {"past_key_values": cache, "use_cache": True}
        hooks = self.wrong_layers(p) + self.fault.hook(p, self)
        with torch.no_grad():
            self.model(**kwargs)
            self.held = torchcache.ports(self.model, cache, p.ids.shape[1], lambda layer, port: True) if self.caches else []
        if self.program:
            for port in self.held:
                self.program.port(*port)
        for h in hooks:
            h.remove()
        if cache is None:
            return
        longest = p.keys.shape[1] - p.ids.shape[1]
        for b, i in enumerate(p.items):
            keep = torch.cat([p.keys[b, :longest] >= 0, p.real[b].bool()])
            self.past[i.sequence] = [(layer.keys[b][:, keep].clone(), layer.values[b][:, keep].clone()) for layer in cache.layers]

    def mask(self, p, window, faulty=None):
        allowed = p.allowed(window)
        if faulty if faulty is not None else self.fault.layers is None:
            allowed = self.fault.mask(p, allowed, window)
        allowed = allowed | ~allowed.any(-1, keepdim=True)  # a row of padding sees anything
        return torch.zeros(allowed.shape, dtype=self.dtype).masked_fill(~allowed, torch.finfo(self.dtype).min)[:, None]

    def wrong_layers(self, p):
        """Gives the layers of the fault another mask."""
        hooks = []
        for layer in self.fault.layers or []:
            window = self.window if self.kinds and self.kinds[layer] == "sliding_attention" else 0
            mask = self.mask(p, window, True)
            attention = next(m for name, m in self.model.named_modules()
                             if name.endswith((f".{layer}.self_attn", f".{layer}.attn", f".{layer}.attention.self")))  # fmt: skip

            def swap(module, args, kwargs, mask=mask):
                return args, kwargs | {"attention_mask": mask}

            hooks.append(attention.register_forward_pre_hook(swap, with_kwargs=True, prepend=False))
        return hooks
