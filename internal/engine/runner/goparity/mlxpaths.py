"""Execution paths in mlx-lm: the forward passes of a job, with its caches, batches and padding."""

import copy

import mlx.core as mx

from . import mlxcache, tokens
from .errors import UsageError


def run(model, settings, case, dump, save):
    """Runs the passes of a case, and keeps what was fed in run.json's path and passes."""
    dump.along(*Machine(model, settings, case, case["token_ids"]).run(case["passes"], save))


def steps(model, settings, case, ids, dump, save):
    """Prefill, then decode with the caches. Returns the sequences.

    Each step is fed the forced token, or the model's own greedy one.
    """
    n = case.get("steps") or 1
    forced, rows = tokens.forced(case, len(ids)), [list(s) for s in ids]

    def follow(k, result):
        tokens.follow(forced, k, rows, lambda: mx.argmax(result[:, -1], axis=-1).tolist())

    dump.padded(Machine(model, settings, case, rows).run(tokens.steps(ids, n), save, follow)[1])
    return rows


def padded(rows):
    """Sequences as one array, padded in front, and how much of each row is padding."""
    width = max(map(len, rows))
    left = [width - len(r) for r in rows]
    return mx.array([[0] * n + r for n, r in zip(left, rows)]), left


class Machine:
    """Runs forward passes. Sequences of one pass run as one batch; later passes go on with the caches of just that batch."""

    def __init__(self, model, settings, case, tokens):
        self.model, self.settings, self.case, self.tokens = model, settings, case, tokens
        self.prefix = case.get("path") == "prefix"
        self.batches = {}  # by sequence, (sequences, caches, lengths) of the batch that it ran in last

    def run(self, passes, save, follow=None):
        """Returns what was fed, and the masks of padding by pass. follow(k, result) is called after each."""
        fed, masks = [], {}
        for k, items in enumerate(passes):
            items, mask, result, held, width = self.forward(k, items)
            save(k, result, held, width)
            mlxcache.quantise(held, self.settings)
            fed.append(items)
            if mask is not None:
                masks[k] = mask
            if follow:
                follow(k, result)
        return fed, masks

    def forward(self, k, items):
        """Returns the items as they were fed, the mask of the padding or None, what the model returned, the caches, the width."""
        if all(i["from"] == 0 or i.get("fresh") for i in items):
            items, held = self._hit(items) if self.prefix else (items, None)
        else:
            held = self._continued(k, items)
        rows = [self.tokens[i["sequence"]][i["from"] : i["to"]] for i in items]
        x, left = padded(rows)
        if held is None:
            held = mlxcache.make(self.model, self.settings, left)
        elif any(left):
            raise UsageError(f"case {self.case['name']}: forward pass {k} feeds its sequences {[len(r) for r in rows]} tokens after a cache",
                             "mlx-lm goes on with a batch by equally many tokens of each sequence")  # fmt: skip
        result = self.model(x, cache=held)
        sequences = [i["sequence"] for i in items]
        for s in sequences:
            self.batches[s] = (sequences, held, [i["to"] for i in items])
        mask = [[0] * n + [1] * len(r) for n, r in zip(left, rows)] if any(left) else None
        return items, mask, result, held, x.shape[1]

    def _continued(self, k, items):
        sequences, froms = [i["sequence"] for i in items], [i["from"] for i in items]
        began, held, lengths = self.batches.get(sequences[0], (None, None, None))
        if began != sequences or lengths != froms:
            raise UsageError(f"case {self.case['name']}: forward pass {k} feeds sequences {sequences} from {froms}, which no earlier pass ran as one batch",
                             "mlx-lm goes on with just the sequences that began together")  # fmt: skip
        return held

    def _hit(self, items):
        """The caches of a sequence that began alike, cut after what both share, as mlx-lm's server does."""
        from mlx_lm.models import cache as caches

        if len(items) != 1:
            return items, None
        item = items[0]
        tokens = self.tokens[item["sequence"]]
        for other, (sequences, held, lengths) in self.batches.items():
            n = min(item["to"] - 1, lengths[0])
            while n and self.tokens[other][:n] != tokens[:n]:
                n -= 1
            if len(sequences) != 1 or other == item["sequence"] or n < 1:
                continue
            if lengths[0] > n and not caches.can_trim_prompt_cache(held):
                continue  # of a window or a state: the server begins anew
            held = copy.deepcopy(held)
            caches.trim_prompt_cache(held, lengths[0] - n)
            return [{"sequence": item["sequence"], "from": n, "to": item["to"], "cached_tokens": n}], held
        return items, None
