"""Rounds the inputs of products to int8, as engines do whose products have quantised weights."""

import torch

from .errors import UsageError


def install(model, activations):
    """Makes the linear layers with some weights round what they are given.

    The recorded inputs stay as they were: the rounding is a part of the layer. Returns what run.json
    says of it.
    """
    block, names = activations["block"], set(activations["weights"])
    of = {id(p): name for name, p in model.named_parameters(remove_duplicate=False) if name in names}
    if unknown := sorted(names - {n for n, _ in model.named_parameters(remove_duplicate=False)}):
        raise UsageError(f"activations: the model has no weight {unknown[0]}")
    done, layers = set(), []
    for name, module in model.named_modules():
        w = getattr(module, "weight", None)
        if id(w) not in of:
            continue
        if isinstance(module, torch.nn.Embedding):
            done.add(id(w))  # a row is read as it is
        elif isinstance(module, torch.nn.Linear):
            if w.shape[1] % block:
                raise UsageError(f"activations: {name} has {w.shape[1]} inputs, no whole number of blocks of {block}")
            module.forward = _rounded(module, block)
            done.add(id(w))
            layers.append(f"model.{name}")
    if left := sorted(n for i, n in of.items() if i not in done):
        raise UsageError(f"activations: {left[0]} is the weight of no linear layer of torch: what it is given cannot be rounded",
                         "take activations out of references")  # fmt: skip
    return {"block": block, "layers": layers}


def _rounded(module, block):
    rule = {32: q8_0, 256: q8_k}[block]

    def forward(x):
        return torch.nn.functional.linear(rule(x), module.weight, module.bias)

    return forward


def q8_k(x):
    """Blocks of 256: the number furthest from 0 becomes -127. ggml's q8_K, whose scale is a float32."""
    blocks = x.float().reshape(-1, 256)
    most = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    inverse = torch.where(most == 0, 0.0, torch.full_like(most, -127) / most)  # -127 / most multiplies by 1 / most
    q = torch.round(inverse * blocks).clamp(max=127)  # halves to even
    return (q * torch.where(most == 0, 0.0, 1 / inverse)).reshape(x.shape).to(x.dtype)


def q8_0(x):
    """Blocks of 32: max|x| becomes 127. ggml's q8_0, whose scale is kept as a float16."""
    blocks = x.float().reshape(-1, 32)
    scale = blocks.abs().amax(1, keepdim=True) / 127
    q = torch.round(torch.where(scale == 0, 0.0, 1 / scale) * blocks)
    return (q * scale.half().float()).reshape(x.shape).to(x.dtype)
