"""Float32 islands, as real engines have them in a model of 16 bits, and numbers of fewer bits.

Each is a function of a model whose weights were cast already. Products cast what they are given to the type of their
weight, as engines do.
"""

import re
import types

import torch

import kernels

PRODUCTS = ("Linear", "Conv1D", "Conv1d", "Conv2d", "FalconLinear", "Qwen3NextLinear")
NORM = re.compile(r"(norm|ln_\w+|layer_norm\w*|layernorm\w*|LayerNorm)$")


def patch(module, make):
    """Replaces a module's forward by make(forward)."""
    module.forward = make(module.forward)


def each(model, match):
    return [(n, m) for n, m in model.named_modules() if match(n, m)]


def is_product(name, m):
    return type(m).__name__ in PRODUCTS


def is_norm(name, m):
    return bool(NORM.search(name)) and not list(m.children()) and "embed" not in name


def weight_type(m):
    return next((p.dtype for p in m.parameters() if p.is_floating_point()), None)


def cast_inputs(model):
    """Products take any type: they cast to that of their weight. So do experts and routers."""
    if getattr(model, "casts", False):
        return
    model.casts = True
    for n, m in each(model, lambda n, m: is_product(n, m) or (weight_type(m) is not None and re.search(r"(experts|gate|router)$", n))):
        to = weight_type(m)
        if to is None:
            continue

        def make(forward, to=to, router=not is_product(n, m)):
            def f(*args, **kwargs):
                # the weights of chosen experts may stay float32; their numbers are integers
                args = [a.to(to) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
                return forward(*args, **kwargs)

            return f

        patch(m, make)


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
        patch(m, lambda forward: lambda *a, **k: wide(forward(*a, **k)))
    return len(found)


def in32(model, match):
    """Some modules have float32 weights and compute in float32, from inputs of 16 bits; their outputs stay float32."""
    found = each(model, match)
    for _, m in found:
        m.float()
        patch(m, lambda forward: lambda *a, **k: forward(*[wide(x) for x in a], **{n: wide(x) for n, x in k.items()}))
    return len(found)


def head(name, m):
    return bool(re.search(r"(^|\.)(lm_head|embed_out)$", name))


def logits32(model):
    """The head's product is rounded to 16 bits, its output a float32."""
    return outputs32(model, head)


def head32(model):
    """The head's sums are not rounded: float32 weights and logits."""
    found = each(model, head)
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

    patch(model, make)
    return 1


def norms32(model):
    """Norms compute and return float32."""
    cast_inputs(model)
    to = next(p.dtype for p in model.parameters())
    n = in32(model, is_norm)
    kernels_in(model, to)
    return n


def residual32(model):
    """The residual stream is float32 from the embedding on; norms return 16 bits."""
    cast_inputs(model)
    to = next(p.dtype for p in model.parameters())
    n = outputs32(model, lambda n, m: re.search(r"(embed_tokens|wte|wpe|word_embeddings|embed_positions|embeddings|embed_in)$", n) and not list(m.children()))
    for _, m in each(model, is_norm):

        def make(forward):
            return lambda *a, **k: forward(*[wide(x) for x in a], **k).to(to)

        m.float()
        patch(m, make)
    for _, m in each(model, lambda n, m: n.endswith("rotary_emb")):  # which takes its type from the stream
        patch(m, lambda forward: lambda x, *a, **k: forward(x.to(to), *a, **k))
    return n


def sums32(model):
    """What is added to the stream is float32 (the accumulators of the last products), and so is the stream."""
    return residual32(model) and outputs32(model, lambda n, m: re.search(r"(down_proj|o_proj|c_proj|out_proj|fc2|dense_4h_to_h|\.wo|\.o)$", n) and is_product(n, m))


def router32(model):
    """What experts are chosen by is computed in float32: weights, logits and shares."""
    cast_inputs(model)
    found = each(model, lambda n, m: bool(re.search(r"(\.gate|\.router)$", n)) and weight_type(m) is not None)
    for _, m in found:
        m.float()
        inner = type(m).forward

        def f(*a, m=m, inner=inner, **k):
            return inner(m, *[wide(x) for x in a], **k)

        m.forward = f
    return len(found)


def attention32(model):
    """Attention computes in float32 and casts its output."""
    kernels.use(model, "exam")
    return len(kernels.attentions(model))


def context32(model):
    """Attention returns float32, the next product casts it."""
    cast_inputs(model)
    kernels.use(model, "exam")
    for n in kernels.attentions(model):
        model.get_submodule(n).exam = {"out32": True}
    return len(kernels.attentions(model))


def rope32(model):
    """Rotary tables are float32, q and k are rotated in float32."""
    kernels.use(model, "exam")
    kernels_in(model, next(p.dtype for p in model.parameters()))
    n = outputs32_tables(model)
    return n


def outputs32_tables(model):
    """The tables are not rounded: cos and sin of float32 angles."""
    found = each(model, lambda n, m: n.endswith("rotary_emb"))
    for _, m in found:
        patch(m, lambda forward: lambda x, *a, **k: forward(x.float(), *a, **k))
    return len(found)


def kernels_in(model, to):
    """Attention takes q, k and v of mixed types."""
    kernels.use(model, "exam")
    cast_inputs(model)
    for n in kernels.attentions(model):
        m = model.get_submodule(n)
        m.exam = {**getattr(m, "exam", {})}


def activations32(model):
    """Activations return float32."""
    cast_inputs(model)
    return outputs32(model, lambda n, m: re.search(r"(act_fn|activation_fn|\.act|intermediate_act_fn|activation)$", n) and not list(m.children()))


def state32(model):
    """The state space's products by token are float32: dt, B and C, and the convolution."""
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
