"""Rounds the inputs of products, as engines do whose products have quantised weights."""

import torch

from .errors import UsageError

_E4M3 = 448  # the largest number of float8_e4m3fn


def install(model, activations):
    """Makes the linear layers with some weights round what they are given.

    The recorded inputs stay as they were: the rounding is a part of the layer. Returns what run.json
    says of it.
    """
    rule, block, about = _RULES[activations["rule"]]
    names = set(activations["weights"])
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
            module.forward = _rounded(module, rule)
            done.add(id(w))
            layers.append(f"model.{name}")
    if left := sorted(n for i, n in of.items() if i not in done):
        raise UsageError(f"activations: {left[0]} is the weight of no linear layer of torch: what it is given cannot be rounded",
                         "take activations out of references")  # fmt: skip
    return {**about, "layers": layers}


def _rounded(module, rule):
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


def e4m3(x):
    """max|x| of a token becomes 448."""
    scale = (x.float().abs().amax(-1, keepdim=True) / _E4M3).clamp(min=torch.finfo(torch.float32).tiny)
    return (float8(x.float() / scale) * scale).to(x.dtype)


def float8(x):
    """The nearest number of float8_e4m3fn; what is beyond the largest becomes that."""
    return x.clamp(-_E4M3, _E4M3).to(torch.float8_e4m3fn).to(x.dtype)


_RULES = {"int8/32": (q8_0, 32, {"block": 32}), "int8/256": (q8_k, 256, {"block": 256}), "float8_e4m3fn": (e4m3, 1, {"type": "float8_e4m3fn"})}
