"""What engines do wrong along execution paths."""

import torch

from machine import Fault


class Positions(Fault):
    """Positions of later passes: off by one, or from 0 again."""

    def __init__(self, shift=None):
        self.shift = shift

    def prepare(self, p, machine):
        for b, i in enumerate(p.items):
            if i.start and self.shift is not None:
                p.positions[b][p.real[b].bool()] += self.shift
            elif i.start:
                p.positions[b][p.real[b].bool()] -= i.start


class Tokens(Fault):
    """Later passes are fed other tokens than the run says."""

    def prepare(self, p, machine):
        for b, i in enumerate(p.items):
            if i.start:
                p.ids[b] = 99 - p.ids[b] % 60


class PaddedPositions(Fault):
    """Positions count padding."""

    def prepare(self, p, machine):
        longest = p.keys.shape[1] - p.ids.shape[1]
        p.positions = (torch.arange(p.ids.shape[1]) + longest).expand(p.ids.shape).clone()


class Late(Fault):
    """The keys of a layer lie a slot late: the first is twice there, the last is lost."""

    def __init__(self, layer, values=True):
        self.layer, self.values = layer, values

    def prepare(self, p, machine):
        if p.past:
            for which in {True: (0, 1), False: (0,), "values": (1,)}[self.values]:
                t = p.past[self.layer][which]
                t[:, :, 1:] = t[:, :, :-1].clone()


class Masked(Fault):
    """Some layers look at other keys in later passes."""

    def __init__(self, how, layers=None, first=False, by=1):
        self.how, self.layers, self.first, self.by = how, layers, first, by

    def mask(self, p, allowed, window):
        n = p.ids.shape[1]
        past = allowed.shape[-1] - n
        for b, i in enumerate(p.items):
            if i.start == 0 and not self.first:
                continue
            if self.how == "drop":  # the last key of the pass before
                allowed[b, :, past - 1] = False
            elif self.how == "blind":  # what came before
                allowed[b, :, :past] = False
            elif self.how == "ahead":
                allowed[b, :, past:] = (p.keys[b, past:] >= 0)[None]
            elif self.how == "window" and window:
                q, k = p.queries()[b][:, None], p.keys[b][None]
                allowed[b] = (k >= 0) & (k <= q) & (k > q - window - self.by)
            elif self.how == "padding":
                row = torch.arange(allowed.shape[-1])
                allowed[b] = row[None] <= torch.arange(n)[:, None] + past if p.causal else True
                if window:
                    allowed[b] &= row[None] > torch.arange(n)[:, None] + past - window
        return allowed


class Swapped(Fault):
    """In later passes a layer reads the cache of another sequence."""

    def __init__(self, layer):
        self.layer = layer

    def prepare(self, p, machine):
        for b, i in enumerate(p.items):
            others = [s for s in machine.past if s != i.sequence and machine.past[s]]
            if not (p.past and i.start and others):
                continue
            for which in (0, 1):
                other = machine.past[others[0]][self.layer][which]
                n = min(i.start, other.shape[1])
                at = p.keys[b, : p.past[self.layer][which].shape[2]] >= 0
                slots = at.nonzero()[:n, 0]
                p.past[self.layer][which][b][:, slots] = other[:, :n]


class Exchanged(Fault):
    """In later passes a layer gives each sequence of a batch the rows of the next one."""

    def __init__(self, layer):
        self.layer = layer

    def hook(self, p, machine):
        if not all(i.start for i in p.items):
            return []
        ends = (f".{self.layer}.self_attn", f".{self.layer}.attn")
        attention = next(m for name, m in machine.model.named_modules() if name.endswith(ends))
        return [attention.register_forward_hook(lambda m, args, out: (out[0].flip(0), *out[1:]), prepend=True)]


class Overwritten(Fault):
    """The first slot of a layer is written over by the last one in front of the pass."""

    def __init__(self, layer):
        self.layer = layer

    def prepare(self, p, machine):
        if p.past:
            for which in (0, 1):
                t = p.past[self.layer][which]
                t[:, :, 0] = t[:, :, -1].clone()


class Cache(Fault):
    """In later passes the keys of a layer are changed: those that it reads, or only what is recorded of them."""

    def __init__(self, layer, how, read):
        self.layer, self.read = layer, read
        self.change = {"rolled": lambda t, axis: t.roll(1, axis), "negated": lambda t, axis: -t, "scaled": lambda t, axis: t * 1.25}[how]

    def prepare(self, p, machine):
        if self.read and p.past:
            p.past[self.layer][0] = self.change(p.past[self.layer][0], 2)

    def recorded(self, k, cache):
        if self.read or k == 0:
            return cache
        return [(layer, port, self.change(t, 1) if f".{self.layer}." in layer and port == "key_cache" else t) for layer, port, t in cache]


class Stale(Fault):
    """The cache of a layer is not cleared when a sequence begins again: old values stay in the first slots."""

    def __init__(self, layer):
        self.layer, self.old = layer, None

    def prepare(self, p, machine):
        if any(i.start for i in p.items) and self.old is None:
            self.old = [t.clone() for t in p.past[self.layer]]
        elif self.old is not None and p.past:
            for which in (0, 1):
                n = min(2, self.old[which].shape[2], p.past[self.layer][which].shape[2])
                p.past[self.layer][which][:, :, :n] = self.old[which][: len(p.items), :, :n]


class Unsteady(Fault):
    """A later run of the same tokens has other weights: a buffer was reused."""

    def __init__(self, name, scale):
        self.name, self.scale, self.seen = name, scale, set()

    def prepare(self, p, machine):
        for i in p.items:
            if i.start == 0 and i.sequence in self.seen:
                with torch.no_grad():
                    machine.model.get_parameter(self.name)[0] *= self.scale
            self.seen.add(i.sequence)
