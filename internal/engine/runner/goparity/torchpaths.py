"""Execution paths in torch: the forward passes of a job, with caches, batches and padding."""

import copy
import inspect

import torch

from . import tokens, torchimages, torchsanity
from .errors import ModelError, UsageError


def run(model, images, given, state, device, job, case, dump, save):
    """Runs the passes of a case, and keeps what was fed in run.json's path and passes.

    Sequences with images that are fed in parts are given to the language model as one pass was: given, of torchimages.
    """
    machine = Machine(model, images, given, state, device, job, case, case["token_ids"], lambda: save(None))
    dump.along(*machine.run(case["passes"], save))


def steps(model, images, state, device, job, case, ids, dump, known, save):
    """Prefill, then decode with the cache. Returns the sequences.

    Each step is fed the forced token, or the model's own greedy one among those that the tokenizer
    knows.
    """
    n = case.get("steps") or 1
    forced, rows = tokens.forced(case, len(ids)), [list(s) for s in ids]
    machine = Machine(model, images, {}, state, device, job, case, rows, lambda: save(None))

    def follow(k, result):
        if not machine.generates or job.programs_only and k == n - 1:
            return  # there are no logits to choose by
        if known:
            dump.info["known_tokens"] = known
        tokens.follow(forced, k, rows, lambda: result.logits[:, -1, :known].argmax(-1).tolist())

    dump.padded(machine.run(tokens.steps(ids, n), save, follow)[1])
    return rows


class _Batch:
    """Sequences that run together: their cache, and which of its slots are tokens."""

    def __init__(self, sequences, past, slots, lengths):
        self.sequences, self.past = sequences, past
        self.slots = slots  # [batch, slot], 1 for a token
        self.lengths = lengths  # tokens of each sequence


class Machine:
    """Runs forward passes. Sequences of one pass run as one batch; later passes go on with the cache of just that batch.

    A batch begins with the model's state as it was when it was loaded. It is padded in front for
    generation, else at the end.
    """

    def __init__(self, model, images, given, state, device, job, case, tokens, forget):
        self.forget = forget  # what was recorded since the last pass
        self.model, self.images, self.given, self.state, self.device, self.job, self.case = model, images, given, state, device, job, case
        self.generates, self.keeps = job.task == "text-generation", job.kv_cache or job.kv_type is not None
        self.tokens = tokens
        self.pictures = case.get("images") or [[] for _ in tokens]
        self.path = case.get("path") or ""
        kind, _, side = self.path.partition(":")
        self.left = side == "left" if kind == "padding" else self.generates
        self.prefix = kind == "prefix"
        self.width = 0  # of the last pass, in tokens
        self.batches = {}  # by sequence, the batch that it ran in last
        accepts = inspect.signature(model.forward).parameters
        self.accepts_positions = "position_ids" in accepts and (
            self.generates or not any(hasattr(m, "create_position_ids_from_input_ids") for m in model.modules()))  # fmt: skip

    def run(self, passes, save, follow=None):
        """Returns what was fed, and the masks of padding by pass. follow(k, result) is called after each."""
        self.caches = self.prefix or any(i["from"] > 0 for p in passes for i in p)
        if self.caches and not self.generates:
            raise UsageError(f"case {self.case['name']}: path {self.path} needs a cache, which task {self.job.task} has not got",
                             "it takes batch, padding, mask, lengths and repeat")  # fmt: skip
        fed, masks = [], {}
        for k, items in enumerate(passes):
            items, mask, result = self.forward(k, items)
            if not self.job.programs_only:
                last = result.logits[:, -1] if getattr(result, "logits", None) is not None and result.logits.dim() == 3 else result
                torchsanity.check_output(self.job, self.case, last)
            save(k, result, self.width)
            fed.append(items)
            if mask is not None:
                masks[k] = mask
            if follow:
                follow(k, result)
        return fed, masks

    def forward(self, k, items):
        """Returns the items as they were fed, the mask of the padding or None, and what the model returned."""
        begins = [i["from"] == 0 or i.get("fresh") for i in items]
        if all(begins):
            batch = self._begin(items)
            if self.prefix and (hit := self._hit(items)):
                batch, items = hit
        else:
            batch = self._continued(k, items)
        rows = [self.tokens[i["sequence"]][i["from"] : i["to"]] for i in items]
        hidden = [i.get("hidden") or [] for i in items]
        self.width = width = max(len(r) + len(h) for r, h in zip(rows, hidden))
        pad = getattr(self.model.config, "pad_token_id", None) or 0
        x, real = [], []
        for r, h in zip(rows, hidden):
            fill = width - len(r) - len(h)
            x.append([pad] * fill + r + h if self.left else r + h + [pad] * fill)
            real.append([0] * fill + [1] * len(r) + [0] * len(h) if self.left else [1] * len(r) + [0] * (len(h) + fill))
        padded = any(0 in r for r in real)
        if padded and batch.past is not None:
            raise UsageError(f"case {self.case['name']}: forward pass {k} feeds its sequences {[len(r) for r in rows]} tokens after a cache",
                             "the reference goes on with a batch by equally many tokens of each sequence")  # fmt: skip
        real = torch.tensor(real, device=self.device)
        slots = real if batch.slots is None else torch.cat([batch.slots, real], 1)
        args = {"input_ids": torch.tensor(x, device=self.device)}
        if not self.generates or bool((slots == 0).any()):
            args["attention_mask"] = slots
        seen = any(self.pictures[s] and (i["from"] == 0 or s in self.given) for i in items for s in [i["sequence"]])
        positions = self.accepts_positions and (self.path or self.generates and bool((slots == 0).any()))
        if positions and not (seen and any(hasattr(m, "get_rope_index") for m in self.model.modules())):
            first = torch.tensor([[i["from"]] for i in items], device=self.device)
            args["position_ids"] = (real.cumsum(-1) - 1).clamp(min=0) + first
        if self.caches or self.keeps:
            args.update(use_cache=True, past_key_values=batch.past)
        result = self._run(k, items, x, args) if seen else self.model(**args)
        past = getattr(result, "past_key_values", None)
        if self.caches and past is None:
            raise ModelError(f"{type(self.model).__name__} keeps no cache", f"take {self.path} out of paths" if self.path else "set steps: 1")
        batch = _Batch([i["sequence"] for i in items], past, slots, [i["to"] for i in items])
        for s in batch.sequences:
            self.batches[s] = batch
        return items, real.tolist() if padded else None, result

    def _run(self, k, items, x, args):
        """A forward pass of sequences with images."""
        first = items[0]
        if first["sequence"] in self.given:
            if len(items) > 1:
                raise UsageError(f"case {self.case['name']}: forward pass {k} feeds parts of several sequences with images")
            given = self.given[first["sequence"]]
            return given.run(self.model, first["from"], first["to"], use_cache=True, past_key_values=args["past_key_values"])
        return self.model(**args, **torchimages.to(self.model, self.images.inputs(x, [self.pictures[i["sequence"]] for i in items]), self.device))

    def _begin(self, items):
        self.state.restore()
        return _Batch([i["sequence"] for i in items], None, None, [0] * len(items))

    def _continued(self, k, items):
        sequences, froms = [i["sequence"] for i in items], [i["from"] for i in items]
        batch = self.batches.get(sequences[0])
        if batch is None or batch.sequences != sequences or batch.lengths != froms:
            raise UsageError(f"case {self.case['name']}: forward pass {k} feeds sequences {sequences} from {froms}, which no earlier pass ran as one batch",
                             "the reference goes on with just the sequences that began together")  # fmt: skip
        return batch

    def _cut(self, past, sequence, n):
        """A copy of a cache, cut after n tokens. One that holds a window's last alone is filled again."""
        copied = copy.deepcopy(past)
        try:
            copied.crop(n)
            return copied
        except (AttributeError, ValueError, NotImplementedError, RuntimeError):
            pass
        if given := self.given.get(sequence):
            result = given.run(self.model, 0, n, use_cache=True)
        else:
            result = self.model(input_ids=torch.tensor([self.tokens[sequence][:n]], device=self.device), use_cache=True)
        self.forget()
        return result.past_key_values

    def _hit(self, items):
        """The cache of a sequence that began alike, cut after what both share; None where none did.

        Torch has no prefix cache: what one would return is a copy.
        """
        if len(items) != 1:
            return None
        item = items[0]
        tokens = self.tokens[item["sequence"]]
        for other, batch in self.batches.items():
            if len(batch.sequences) != 1 or other == item["sequence"] or self.pictures[other] != self.pictures[item["sequence"]]:
                continue
            n = min(item["to"] - 1, batch.lengths[0])
            if n < 1 or self.tokens[other][:n] != tokens[:n]:
                continue
            past = self._cut(batch.past, item["sequence"], n)
            item = {"sequence": item["sequence"], "from": n, "to": item["to"], "cached_tokens": n}
            return _Batch([item["sequence"]], past, batch.slots[:, :n], [n]), [item]
        return None
