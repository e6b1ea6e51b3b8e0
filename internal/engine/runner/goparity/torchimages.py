"""Sequences with images in several forward passes: the images are seen once, and what the language model is given of them is cut.

So engines do it: a chunk may end inside of an image. Masks, positions and what else the model makes of a whole sequence are those of
its one pass.
"""

import torch

from .errors import UsageError


def given(model, images, state, device, case):
    """By sequence, what the language model is given in one pass, of those with images that are fed in parts."""
    whole = case.get("images") or []
    parts = {i["sequence"] for items in case["passes"] for i in items if _part(i, case)}
    out = {}
    for s in sorted(parts):
        if s >= len(whole) or not whole[s]:
            continue
        state.restore()
        seen = {}

        def keep(module, args, kwargs, seen=seen):
            seen.update(kwargs)

        decoder = _decoder(model, case)
        handle = decoder.register_forward_pre_hook(keep, with_kwargs=True)
        try:
            ids = case["token_ids"][s]
            model(input_ids=torch.tensor([ids], device=device), use_cache=False, **to(model, images.inputs([ids], [whole[s]]), device))
        finally:
            handle.remove()
        out[s] = _Given(decoder, len(ids), seen)
    return out


def to(model, inputs, device):
    """Inputs on the device; floats in the model's type."""
    return {k: v.to(device, model.dtype if v.is_floating_point() else v.dtype) for k, v in inputs.items()}


def _part(item, case):
    return item["from"] > 0 or item["to"] < len(case["token_ids"][item["sequence"]]) or case["path"] == "prefix"


def _decoder(model, case):
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    if decoder is None or decoder is model:
        raise UsageError(f"case {case['name']}: {type(model).__name__} has no language model of its own, whose inputs could be cut", "take its path out of paths")
    return decoder


class _Given:
    """What the language model was given of a whole sequence."""

    def __init__(self, decoder, length, kwargs):
        self.decoder, self.length, self.kwargs = decoder, length, kwargs
        self.images = next((v for v in kwargs.values() if isinstance(v, torch.Tensor) and v.dtype == torch.bool and v.shape == (1, length)), None)

    def run(self, model, start, end, **kwargs):
        """Runs the model on the tokens start ≤ i < end."""
        cut = {k: self._cut(k, v, start, end) for k, v in self.kwargs.items() if k not in ("past_key_values", "use_cache", "attention_mask")}

        def replace(module, args, kwargs):
            mask = _masks(self.kwargs.get("attention_mask"), kwargs.get("attention_mask"), start, end)
            return args, {**kwargs, **{k: v for k, v in {**cut, "attention_mask": mask}.items() if v is not None}}

        handle = self.decoder.register_forward_pre_hook(replace, with_kwargs=True, prepend=True)
        try:
            return model(inputs_embeds=cut["inputs_embeds"], position_ids=cut.get("position_ids"), **kwargs)
        finally:
            handle.remove()

    def _cut(self, name, value, start, end):
        if isinstance(value, (list, tuple)):
            return [self._cut(name, v, start, end) for v in value]
        if not isinstance(value, torch.Tensor):
            return None  # the call has its own
        if name == "inputs_embeds" or value.dim() >= 2 and value.shape[:2] == (1, self.length):
            return value[:, start:end]
        if value.shape[-1] == self.length:
            return value[..., start:end]
        if self.images is not None and len(value) == int(self.images.sum()):  # a row for each token of an image
            before, until = (int(self.images[0, :n].sum()) for n in (start, end))
            return value[before:until]
        return value


def _masks(whole, own, start, end):
    """The rows of a whole sequence's masks, for as many keys as the call's own masks have: a window's cache keeps the last."""
    if isinstance(whole, dict):
        return {k: _masks(v, own.get(k) if isinstance(own, dict) else None, start, end) for k, v in whole.items()}
    if not isinstance(whole, torch.Tensor):
        return None
    keys = own.shape[-1] if isinstance(own, torch.Tensor) else end
    return whole[..., start:end, end - keys : end] if whole.dim() == 4 else whole[..., :end]
