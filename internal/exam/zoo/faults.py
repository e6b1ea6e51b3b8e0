"""What can be wrong in a port: each function returns a Bug, which plants itself in a candidate.

A Bug knows the honest answer. Its kind and place follow from how the fault is planted, never from
running parity: a wrong function of one leaf is local to it; wrong code between recorded layers is
between, its place the innermost container, and the child that gets the wrong tensor is as good an
answer.
"""

import dataclasses
import math
import typing

import torch


@dataclasses.dataclass
class Bug:
    plant: typing.Callable  # of the candidate
    kind: str
    layer: str
    cause: str
    text: str
    also: tuple = ()
    where: str = "all"
    also_cause: tuple = ()  # ids that say the same
    also_bad: tuple = ()  # layers with the same fault
    seen: str = "both"
    note: str = None


class At:
    """The labels of block i of a family."""

    def __init__(self, family, i):
        self.family, self.i = family, i
        if family == "bert":
            b = self.block = f"model.encoder.layer.{i}"
            self.attn, self.q, self.k, self.v = (f"{b}.attention.self{n}" for n in ("", ".query", ".key", ".value"))
            self.context, self.o = (), f"{b}.attention.output.dense"
            self.norm1, self.norm2 = f"{b}.attention.output.LayerNorm", f"{b}.output.LayerNorm"
            self.act, self.mlp = f"{b}.intermediate.intermediate_act_fn", f"{b}.intermediate"
            self.up, self.down = f"{b}.intermediate.dense", f"{b}.output.dense"
        elif family == "llama":
            b = self.block = f"model.model.layers.{i}"
            self.attn, self.q, self.k, self.v, self.o = (
                f"{b}.self_attn{n}" for n in ("", ".q_proj", ".k_proj", ".v_proj", ".o_proj")
            )
            self.context = (self.o,)
            self.norm1, self.norm2 = f"{b}.input_layernorm", f"{b}.post_attention_layernorm"
            self.mlp = f"{b}.mlp"
            self.act, self.gate, self.up, self.down = (
                f"{b}.mlp.{n}" for n in ("act_fn", "gate_proj", "up_proj", "down_proj")
            )
        else:
            b = self.block = f"model.blocks.{i}"
            self.attn, self.q, self.o = f"{b}.attn", f"{b}.attn.qkv", f"{b}.attn.proj"
            self.k = self.v = self.q
            self.context = (self.o,)
            self.norm1, self.norm2 = f"{b}.norm1", f"{b}.norm2"
            self.mlp, self.up, self.act, self.down = f"{b}.mlp", f"{b}.mlp.fc1", f"{b}.mlp.act", f"{b}.mlp.fc2"


def key(label, name="weight"):
    return label.removeprefix("model.") + "." + name


# How bugs are planted


def leaf(label, after, cause, text, **more):
    """after(out, *inputs) replaces the output of a leaf, in all runs."""
    return Bug(lambda c: c.wrap(label, after), "local", label, cause, text, **more)


def glue(label, options, cause, text, also=(), **more):
    """Options of the code between the children of a container."""

    def plant(c):
        for name, value in options.items():
            c.options[label, name] = value

    return Bug(plant, "between", label, cause, text, tuple(also), **more)


def weights(label, change, cause, text, name="weight", **more):
    """change(w, all weights) replaces the weight of a leaf."""

    def plant(c):
        c.w[key(label, name)] = change(c.w[key(label, name)], c.w).contiguous()

    return Bug(plant, "local", label, cause, text, **more)


def everywhere(bugs):
    """One fault in many layers, of which the first is the answer."""
    first = bugs[0]

    def plant(c):
        for b in bugs:
            b.plant(c)

    return dataclasses.replace(first, plant=plant, also_bad=tuple(b.layer for b in bugs[1:]))


# Leaves


def activation(at, name, cause):
    def plant(c):
        c.options[at.act, "act"] = name

    return Bug(plant, "local", at.act, f"activation/{cause}", f"{cause} instead of the config's activation")


def norm_eps(label, eps):
    def plant(c):
        c.options[label, "eps"] = eps

    return Bug(plant, "local", label, "norm/eps", f"epsilon {eps} instead of the config's")


def norm_kind(label):
    """RMS norm instead of layer norm, or the other way round."""

    def plant(c):
        w, b = c.weight(label), c.weight(label, "bias")

        def run(x):
            x = x.float()
            y = x - x.mean(-1, keepdim=True) if "rms_norm_eps" in c.c else x
            y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + 1e-6)
            y = y if w is None else y * w.float()
            return (y if b is None else y + b.float()).to(c.dtype)

        c.layers[label] = run

    return Bug(plant, "local", label, "norm/kind", "mean subtracted, or not, against the reference")


def norm_weight(label, name="weight", value=1.0):
    return weights(label, lambda w, _: torch.full_like(w, value), "norm/weight", f"the norm's {name} is ignored", name)


def transposed(label):
    return weights(label, lambda w, _: w.T, "linear/transposed", "weight matrix transposed")


def bias(label, times):
    cause = "linear/bias-missing" if times == 0 else "linear/bias-twice"
    return weights(label, lambda b, _: b * times, cause, f"bias added {times} times", "bias")


def other_layer(label, other):
    def plant(c):
        for name in ("weight", "bias"):
            if key(label, name) in c.w:
                c.w[key(label, name)] = c.w[key(other, name)].clone()

    return Bug(plant, "local", label, "linear/other-layer", f"weights of {other}")


def exchanged(a, b, cause, text, **more):
    def plant(c):
        for name in ("weight", "bias"):
            x, y = key(a, name), key(b, name)
            if x in c.w:
                c.w[x], c.w[y] = c.w[y], c.w[x]

    return Bug(plant, "local", a, cause, text, also=(b,), also_bad=(b,), **more)


def corrupt(label, rows, columns, value):
    def change(w, _):
        w = w.clone()
        w[rows, columns] = value(w[rows, columns])
        return w

    return weights(label, change, "linear/corrupt", "a block of the weight is damaged")


def fused_order(label):
    def change(w, _):
        q, k, v = w.chunk(3, 0)
        return torch.cat([k, q, v], 0)

    def plant(c):
        for name in ("weight", "bias"):
            c.w[key(label, name)] = change(c.w[key(label, name)], None)

    return Bug(plant, "local", label, "linear/qkv-order", "the fused weight holds k, q, v instead of q, k, v")


def quantise(w, bits, group):
    """Codes and scales [rows, groups] of a symmetric quantisation in groups of the inner axis."""
    top = 2 ** (bits - 1) - 1
    x = w.unflatten(1, (-1, group))
    scale = x.abs().amax(-1) / top
    return torch.round(x / scale[..., None]).clamp(-top, top), scale


def dequantise(codes, scale):
    return (codes * scale[..., None]).flatten(1)


def quant(label, bits, group, wrong, cause, text, **more):
    def change(w, _):
        codes, scale = quantise(w.float(), bits, group)
        return wrong(codes, scale).to(w.dtype)

    return weights(label, change, cause, text, **more)


def downcast(label, dtype):
    """The layer computed in another type: inputs, weights and output are rounded."""

    def plant(c):
        run = c.layers[label]
        for name in ("weight", "bias"):
            if key(label, name) in c.w:
                c.w[key(label, name)] = c.w[key(label, name)].to(dtype).to(c.dtype)
        c.layers[label] = lambda x: run(x.to(dtype).to(c.dtype)).to(dtype).to(c.dtype)

    return Bug(plant, "local", label, "dtype/downcast", f"computed in {dtype}".replace("torch.", ""))


def only_rows(rows, garbage):
    def after(out, *_):
        out = out.clone()
        out[:, rows] = garbage(out[:, rows])
        return out

    return after


def only_columns(columns, garbage):
    def after(out, *_):
        out = out.clone()
        out[..., columns] = garbage(out[..., columns])
        return out

    return after


def noise(seed, size=1.0):
    """Other values of the same size."""

    def f(x):
        g = torch.Generator().manual_seed(seed)
        return (torch.randn(x.shape, generator=g) * x.float().std() * size).to(x.dtype)

    return f


def perturb(seed, size):
    """The output with noise of this relative size, drawn again on every call."""
    g = torch.Generator().manual_seed(seed)

    def after(out, *_):
        n = torch.randn(out.shape, generator=g)
        return (out.float() + n * size * out.float().norm(dim=-1, keepdim=True) / math.sqrt(out.shape[-1])).to(
            out.dtype
        )

    return after


def drop(seed, p):
    def after(out, *_):
        keep = torch.rand(out.shape, generator=torch.Generator().manual_seed(seed)) >= p
        return (out.float() * keep / (1 - p)).to(out.dtype)

    return after


def read_transposed(out, *_):
    return out.transpose(-1, -2).contiguous().view(out.shape)


def read_strided(out, *_):
    return out.repeat(*[1] * (out.dim() - 1), 2)[..., ::2].contiguous()


def evens_first(out, *_):
    return torch.cat([out[..., 0::2], out[..., 1::2]], -1)


def stale(label, source):
    """The layer's buffer still holds what another layer wrote into it."""

    def plant(c):
        c.wrap(source, lambda out, *_: c.saved.setdefault((label, c.isolated), out))
        run = c.layers[label]

        def again(*inputs):
            run(*inputs)
            return c.saved.get((label, c.isolated), c.saved.get((label, False)))

        c.layers[label] = again

    return Bug(plant, "local", label, "state/stale", f"holds the output of {source}")


def assembled(label, after, text, where):
    """Right alone, wrong in the assembled graph."""

    def plant(c):
        c.wrap(label, lambda out, *x: out if c.isolated else after(out, *x))

    return Bug(plant, "interaction", label, "interaction", text, where=where, seen="standard")


# Attention


def attention(at, cause, text, **options):
    more = {n: options.pop(n) for n in ("where", "also_cause", "note") if n in options}
    return glue(at.attn, options, cause, text, at.context, **more)


def stale_keys(at, before):
    """The previous block's keys are used again."""

    def plant(c):
        def keep(q, k, v):
            c.saved["k"] = k
            return q, k, v

        c.options[before.attn, "qkv"] = keep
        c.options[at.attn, "qkv"] = lambda q, k, v: (q, c.saved["k"], v)

    return Bug(plant, "between", at.attn, "state/stale", f"keys of {before.attn}", tuple(at.context))


def one_head(head, garbage):
    def change(x):
        x = x.clone()
        x[:, :, head] = garbage(x[:, :, head])
        return x

    return change


def own_tables(theta):
    """The candidate has tables of its own with another theta, whatever rotary_emb says."""

    def plant(c, label):
        def tables(cos, sin):
            n = torch.arange(cos.shape[1]).repeat(cos.shape[0], 1)
            t = c.tables(theta, n)
            return {"q": t, "k": t}

        c.options[label, "tables"] = tables

    return plant


def rope_theta(at, theta):
    plant = own_tables(theta)
    return Bug(
        lambda c: plant(c, at.attn),
        "between",
        at.attn,
        "rope/theta",
        f"theta {theta:g}",
        tuple(at.context),
        "rows>=1",
        also_cause=("config/rope_theta",),
    )


# Captures: the model is right, the dump is not


def capture(change, layer, cause, text, also_bad=(), where="the dump only"):
    return Bug(lambda c: c.captures.append(change), "capture", layer, cause, text, where=where, also_bad=also_bad)


def wrong_tensor(layer, source):
    """layer-output holds source, a label with its port. Nothing changes if source was not recorded."""

    def change(records):
        if source in records and f"{layer}-output" in records:
            records[f"{layer}-output"] = records[source].clone()

    return capture(change, layer, "capture/wrong-tensor", f"the dump's {layer}-output holds {source}")


def neighbours(layers, before=None, after=None):
    """Each layer's file holds what the one before it put out, or the one after it."""

    def change(records):
        ends = [f"{before}-output"] if before else []
        names = ends + [f"{x}-output" for x in layers] + ([f"{after}-output"] if after else [])
        held = [records[n].clone() for n in names if n in records]
        if len(held) == len(names):
            for layer, tensor in zip(layers, held[len(names) - len(layers) :] if after else held):
                records[f"{layer}-output"] = tensor

    return capture(change, layers[0], "capture/neighbour", "names that are off by one", tuple(layers[1:]))


def normed(layer, norm):
    """The last state is that after the final norm."""

    def change(records):
        if f"{norm}-output" in records and f"{layer}-output" in records:
            records[f"{layer}-output"] = records[f"{norm}-output"].clone()

    return capture(change, layer, "capture/normed", f"the dump's {layer}-output is normed")


def same_file(layers):
    """One file for several layers: all of them hold what the last one wrote."""

    def change(records):
        for layer in layers[:-1]:
            records[f"{layer}-output"] = records[f"{layers[-1]}-output"].clone()

    return capture(
        change, layers[0], "capture/same-file", "one file was written for several layers", tuple(layers[1:-1])
    )


# Inputs


def feed(index, change, layer, cause, text, also=()):
    def plant(c):
        def f(inputs):
            inputs = list(inputs)
            inputs[index] = change(inputs[index])
            return tuple(inputs)

        c.feeds.append(f)

    return Bug(plant, "input", layer, cause, text, tuple(also), seen="standard")
