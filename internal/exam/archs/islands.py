"""Float32 islands, as real engines have them in a model of 16 bits, and numbers of fewer bits.

Each is a function of a model whose weights were cast already. Products cast what they are given to the type of their
weight, as engines do.
"""

import re

import torch

import kernels
from surgery import wrap

PRODUCTS = ("Linear", "Conv1D", "Conv1d", "Conv2d", "FalconLinear")
EMBEDDING = re.compile(r"(embed_tokens|wte|wpe|word_embeddings|embed_positions|embeddings|embed_in)$")
LAST = re.compile(r"(down_proj|o_proj|c_proj|out_proj|fc2|dense_4h_to_h|\.wo|\.o)$")  # what is made is added to the stream
CHOOSER = re.compile(r"\.(gate|router)$")
ACTIVATION = re.compile(r"(act_fn|activation_fn|\.act|intermediate_act_fn|activation)$")
NORM = re.compile(r"(norm|ln_\w+|layer_norm\w*|layernorm\w*|LayerNorm)$")


def each(model, match):
    return [(n, m) for n, m in model.named_modules() if match(n, m)]


def leaf(pattern):
    """Matches modules without modules inside whose name fits."""
    return lambda name, m: pattern.search(name) and not list(m.children())


def is_product(name, m):
    return type(m).__name__ in PRODUCTS


def is_norm(name, m):
    return leaf(NORM)(name, m) and "embed" not in name


def is_head(name, m):
    return name in ("lm_head", "embed_out")


def chooses(name, m):
    return CHOOSER.search(name) and weight_type(m)


def weight_type(m):
    return next((p.dtype for p in m.parameters() if p.is_floating_point()), None)


def cast_inputs(model):
    """Products, experts and routers take any type: they cast to that of their weight."""
    if getattr(model, "casts", False):
        return
    model.casts = True
    for n, m in each(model, lambda n, m: is_product(n, m) or chooses(n, m) or n.endswith("experts") and weight_type(m)):

        def make(forward, to=weight_type(m)):
            return lambda *a, **k: forward(*[narrow(x, to) for x in a], **k)

        wrap(m, make)


def narrow(x, to):
    return x.to(to) if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def wide(value):
    if isinstance(value, torch.Tensor):
        return value.float() if value.is_floating_point() else value
    if isinstance(value, tuple):
        return tuple(wide(v) for v in value)
    return value


def outputs32(model, match):
    """The outputs of some modules are float32, of the same numbers."""
    found = each(model, match)
    for _, m in found:
        wrap(m, lambda forward: lambda *a, **k: wide(forward(*a, **k)))
    return len(found)


def in32(model, match):
    """Some modules have float32 weights and compute in float32, from inputs of 16 bits; their outputs stay float32."""
    found = each(model, match)
    for _, m in found:
        m.float()
        wrap(m, lambda forward: lambda *a, **k: forward(*[wide(x) for x in a], **{n: wide(x) for n, x in k.items()}))
    return len(found)


def logits32(model):
    """The head's product is rounded to 16 bits, its output a float32."""
    return outputs32(model, is_head)


def head32(model):
    """The head's sums are not rounded: float32 weights and logits."""
    found = each(model, is_head)
    for _, m in found:
        w = torch.nn.Parameter(m.weight.detach().float(), requires_grad=False)  # tied ones stay as they are
        b = m.bias.detach().float() if getattr(m, "bias", None) is not None else None
        m.forward = lambda x, w=w, b=b: torch.nn.functional.linear(x.float(), w, b)
    return len(found)


def root32(model):
    """The model's own code casts the logits; the head returns 16 bits."""

    def make(forward):
        def f(*a, **k):
            out = forward(*a, **k)
            for key in ("logits", "last_hidden_state"):
                if getattr(out, key, None) is not None:
                    out[key] = out[key].float()
            return out

        return f

    wrap(model, make)
    return 1


def norms32(model):
    """Norms compute and return float32."""
    cast_inputs(model)
    kernels.use(model, "exam")  # takes q, k and v of several types
    return in32(model, is_norm)


def residual32(model):
    """The residual stream is float32 from the embedding on; norms and rotary tables stay in 16 bits."""
    cast_inputs(model)
    to = next(p.dtype for p in model.parameters())
    n = outputs32(model, leaf(EMBEDDING))
    for _, m in each(model, is_norm):
        m.float()
        wrap(m, lambda forward: lambda *a, **k: forward(*[wide(x) for x in a], **k).to(to))
    for _, m in each(model, lambda n, m: n.endswith("rotary_emb")):  # takes its type from the stream
        wrap(m, lambda forward: lambda x, *a, **k: forward(x.to(to), *a, **k))
    return n


def sums32(model):
    """Also what is added to a float32 stream is float32: the accumulators of the last products."""
    return residual32(model) and outputs32(model, lambda n, m: LAST.search(n) and is_product(n, m))


def router32(model):
    """What experts are chosen by is computed in float32: weights, logits and shares."""
    cast_inputs(model)
    found = each(model, chooses)
    for _, m in found:
        m.float()
        m.forward = lambda *a, m=m, **k: type(m).forward(m, *[wide(x) for x in a], **k)  # without the cast
    return len(found)


def attention32(model):
    """Attention computes in float32 and casts its output."""
    kernels.use(model, "exam")
    return len(kernels.attentions(model))


def context32(model):
    """Attention returns float32, the next product casts it."""
    cast_inputs(model)
    kernels.use(model, "exam")
    names = kernels.attentions(model)
    for n in names:
        model.get_submodule(n).exam = {"out32": True}
    return len(names)


def rope32(model):
    """Rotary tables are float32, q and k are rotated in float32."""
    cast_inputs(model)
    kernels.use(model, "exam")
    found = each(model, lambda n, m: n.endswith("rotary_emb"))
    for _, m in found:
        wrap(m, lambda forward: lambda x, *a, **k: forward(x.float(), *a, **k))
    return len(found)


def activations32(model):
    """Activations return float32."""
    cast_inputs(model)
    return outputs32(model, leaf(ACTIVATION))


def state32(model):
    """What a state space works with is float32: dt, B and C, and its norm."""
    cast_inputs(model)
    return outputs32(model, lambda n, m: re.search(r"(x_proj|dt_proj|mixer\.norm|mixer\.act)$", n))


def tf32(model):
    """Products round what they are given to ten bits of mantissa, as TF32 does: float32 alone."""

    def short(x):
        bits = x.contiguous().view(torch.int32)
        bits = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
        return bits.view(torch.float32)

    found = each(model, lambda n, m: type(m).__name__ in ("Linear", "Conv1D"))
    for _, m in found:
        w = short(m.weight.detach())
        b = m.bias.detach() if m.bias is not None else None
        if type(m).__name__ == "Conv1D":
            w = w.T
        m.forward = lambda x, w=w, b=b: torch.nn.functional.linear(short(x), w, b)
    return len(found)


def sdpa(model):
    kernels.use(model, "sdpa")
    return 1


ISLANDS = {
    "logits32": logits32, "head32": head32, "root32": root32, "norms32": norms32, "residual32": residual32, "sums32": sums32,
    "router32": router32, "attention32": attention32, "context32": context32, "rope32": rope32, "activations32": activations32,
    "state32": state32, "tf32": tf32, "sdpa": sdpa,
}  # fmt: skip
