"""The candidates: the same forward passes as functions, with places to plant faults.

They run in other orders of operation. Every layer is a function of its inputs under the reference's
label, so that it can also be called alone. A fault changes weights (w), sets an option of the code
between layers (options), replaces or follows a layer's function (layers, wrap), changes what is fed
in (feed) or what the dump holds (captures).
"""

import collections
import functools
import math

import torch

from models import outputs, rotate_half


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_pytorch_tanh": gelu_tanh,
    "quick_gelu": lambda x: x / (1 + torch.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "relu": lambda x: x * (x > 0),
    "relu2": lambda x: x * x * (x > 0),
    "identity": lambda x: x,
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "leaky_relu": lambda x: torch.where(x > 0, x, 0.01 * x),
    "tanh": torch.tanh,
}


def softmax(x, axis=-1):
    e = torch.exp(x - x.amax(axis, keepdim=True))
    return e / e.sum(axis, keepdim=True)


def rotate_pairs(x):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([-b, a], -1).flatten(-2)


class Candidate:
    def __init__(self, weights, c, dtype):
        self.w = {k: v.clone() for k, v in weights.items()}
        self.c, self.dtype = c, dtype
        self.layers, self.wraps, self.options, self.captures, self.feeds = {}, collections.defaultdict(list), {}, [], []
        self.isolated, self.records, self.saved = False, None, {}
        self.build()

    # planting

    def wrap(self, label, after):
        """Replaces the output of a layer by after(output, *inputs)."""
        self.wraps[label].append(after)

    def option(self, label, name, default=None):
        return self.options.get((label, name), default)

    # running

    def call(self, label, *inputs):
        out = self.layers[label](*inputs)
        for after in self.wraps[label]:
            out = after(out, *inputs)
        if self.records is not None:
            for i, x in enumerate(inputs):
                self.records[f"{label}-input_{i}"] = x.clone()
            for port, x in outputs(out):
                self.records[f"{label}-{port}"] = x.clone()
        return out

    def standard(self, inputs):
        """The whole model on its own inputs: tensors by label, children before their parent."""
        for feed in self.feeds:
            inputs = feed(inputs)
        self.records = collections.OrderedDict()
        self.call("model", *inputs)
        records, self.records = self.records, None
        for capture in self.captures:
            capture(records)
        return records

    def alone(self, reference, standard):
        """Each layer of the standard run alone on the reference's inputs, with nothing replaced inside it."""
        self.isolated = True
        records = collections.OrderedDict()
        for label in [k.rsplit("-", 1)[0] for k in reference if k.endswith(("-output", "-output_0"))]:
            if label in self.layers and f"{label}-input_0" in standard:
                inputs = [reference[k] for k in (f"{label}-input_{i}" for i in range(9)) if k in reference]
                for port, x in outputs(self.call(label, *inputs)):
                    records[f"{label}-{port}"] = x
        self.isolated = False
        for capture in self.captures:
            capture(records)
        return records

    # layers that all families have

    def weight(self, label, name="weight"):
        return self.w.get(label.removeprefix("model.") + "." + name)

    def wide(self, x):
        return x.float()

    def define(self, label, f, *args):
        self.layers[label] = functools.partial(f, label, *args)

    def embedding(self, label, ids):
        return self.weight(label)[ids]

    def linear(self, label, x):
        """The product in two halves of the inner axis, added in float32."""
        w, b = self.wide(self.weight(label)), self.weight(label, "bias")
        x, half = self.wide(x), w.shape[1] // 2
        y = torch.einsum("...i,oi->...o", x[..., :half], w[:, :half]) + torch.einsum(
            "...i,oi->...o", x[..., half:], w[:, half:]
        )
        return (y if b is None else y + self.wide(b)).to(self.dtype)

    def layer_norm(self, label, eps, x):
        x = self.wide(x)
        mean = x.mean(-1, keepdim=True)
        var = (
            (x * x).mean(-1, keepdim=True) - mean * mean
            if self.option(label, "one_pass")
            else (x - mean).square().mean(-1, keepdim=True)
        )
        y = (x - mean) / torch.sqrt(var + self.option(label, "eps", eps))
        w, b = self.weight(label), self.weight(label, "bias")
        return (y if w is None else y * self.wide(w) + self.wide(b)).to(self.dtype)

    def rms_norm(self, label, eps, plus, x):
        x = self.wide(x)
        y = x / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + self.option(label, "eps", eps))
        return (y * (self.wide(self.weight(label)) + plus)).to(self.dtype)

    def activation(self, label, name, x):
        return ACTIVATIONS[self.option(label, "act", name)](self.wide(x)).to(self.dtype)

    def attend(self, label, q, k, v, allowed=None, sinks=None):
        """Attention over [batch, tokens, heads, head_dim] in float32, q scaled first. allowed is a mask to add."""
        q, k, v = (self.wide(x) for x in (q, k, v))
        q = q * self.option(label, "scale", q.shape[-1] ** -0.5)
        scores = torch.einsum("bihd,bjhd->bhij", q, k)
        if allowed is not None:
            scores = scores + allowed
        if sinks is not None:
            scores = torch.cat([scores, sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)], -1)
        weights = softmax(scores, self.option(label, "axis", -1))[..., : k.shape[1]]
        after = self.option(label, "weights")
        if after:
            weights = after(weights)
        return torch.einsum("bhij,bjhd->bihd", weights, v).to(self.dtype)

    def heads(self, label, x, n):
        n = self.option(label, "heads", lambda n: n)(n)
        if self.option(label, "heads_last"):  # [head_dim, heads] instead of [heads, head_dim]
            return x.unflatten(-1, (-1, n)).transpose(-1, -2)
        return x.unflatten(-1, (n, -1))

    def merge(self, label, x):
        x = self.option(label, "context", lambda x: x)(x)
        if self.option(label, "unmerged"):  # the transposition before the heads are joined is missing
            return x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[1], -1)
        return x.flatten(-2)


class Bert(Candidate):
    def build(self):
        e, eps = "model.embeddings", self.c["layer_norm_eps"]
        for name in ("word", "position", "token_type"):
            self.define(f"{e}.{name}_embeddings", self.embedding)
        self.define(f"{e}.LayerNorm", self.layer_norm, eps)
        self.define(e, self.embeddings)
        for i in range(self.c["num_hidden_layers"]):
            p = f"model.encoder.layer.{i}"
            for name in ("query", "key", "value"):
                self.define(f"{p}.attention.self.{name}", self.linear)
            self.define(f"{p}.attention.self", self.attention_self)
            for q in (f"{p}.attention.output", f"{p}.output"):
                self.define(f"{q}.dense", self.linear)
                self.define(f"{q}.LayerNorm", self.layer_norm, eps)
                self.define(q, self.output)
            self.define(f"{p}.attention", self.attention)
            self.define(f"{p}.intermediate.dense", self.linear)
            self.define(f"{p}.intermediate.intermediate_act_fn", self.activation, self.c["hidden_act"])
            self.define(f"{p}.intermediate", self.intermediate)
            self.define(p, self.layer)
        self.define("model.encoder", self.encoder)
        self.define("model.pooler.dense", self.linear)
        self.define("model.pooler.activation", self.activation, "tanh")
        self.define("model.pooler", self.pooler)
        self.define("model", self.model)

    def embeddings(self, p, ids, types):
        types = self.option(p, "types", lambda t: t)(types)
        x = self.call(f"{p}.word_embeddings", ids)
        kinds = self.call(f"{p}.token_type_embeddings", types)
        positions = self.option(p, "positions", lambda x: x)(torch.arange(ids.shape[1]).repeat(ids.shape[0], 1))
        return self.call(f"{p}.LayerNorm", (kinds + self.call(f"{p}.position_embeddings", positions)) + x)

    def attention_self(self, p, x, mask):
        mask = self.option(p, "mask", lambda m: m)(mask)
        q, k, v = (
            self.heads(p, self.call(f"{p}.{n}", x), self.c["num_attention_heads"]) for n in ("query", "key", "value")
        )
        q, k, v = self.option(p, "qkv", lambda q, k, v: (q, k, v))(q, k, v)
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
        return self.merge(p, self.attend(p, q, k, v, mask))

    def output(self, p, x, residual):
        x = self.call(f"{p}.dense", x)
        residual = self.option(p, "residual", lambda r: r)(residual)
        if self.option(p, "norm_first"):
            return self.call(f"{p}.LayerNorm", x) + residual
        return self.call(f"{p}.LayerNorm", residual + x)

    def attention(self, p, x, mask):
        return self.call(f"{p}.output", self.call(f"{p}.self", x, mask), x)

    def intermediate(self, p, x):
        return self.call(f"{p}.intermediate_act_fn", self.call(f"{p}.dense", x))

    def layer(self, p, x, mask):
        h = self.call(f"{p}.attention", x, mask)
        y = self.call(f"{p}.intermediate", h)
        return self.call(f"{p}.output", y, self.option(p, "residual2", lambda h, x: h)(h, x))

    def encoder(self, p, x, mask):
        for i in range(self.c["num_hidden_layers"]):
            x = self.option(p, "between", lambda i, x: x)(i, x)
            x = self.call(f"{p}.layer.{i}", x, mask)
        return x

    def pooler(self, p, x):
        return self.call(f"{p}.activation", self.call(f"{p}.dense", x[:, 0]))

    def model(self, p, ids, mask, types):
        x = self.call("model.embeddings", ids, types)
        shut = torch.finfo(self.dtype).min
        form = self.option(p, "mask_form", lambda allow: (1 - allow) * shut)
        x = self.call("model.encoder", x, form(mask.to(self.dtype)[:, None, None]))
        self.call("model.pooler", x)
        return x


class Llama(Candidate):
    def build(self):
        norm = (self.rms_norm, self.c["rms_norm_eps"], 1.0 if self.c["model_type"] == "gemma" else 0.0)
        self.define("model.model.embed_tokens", self.embedding)
        self.define("model.model.rotary_emb", self.rotary)
        for i in range(self.c["num_hidden_layers"]):
            p = f"model.model.layers.{i}"
            for name in (
                "self_attn.q_proj",
                "self_attn.k_proj",
                "self_attn.v_proj",
                "self_attn.o_proj",
                "mlp.gate_proj",
                "mlp.up_proj",
                "mlp.down_proj",
            ):
                self.define(f"{p}.{name}", self.linear)
            self.define(f"{p}.input_layernorm", *norm)
            self.define(f"{p}.post_attention_layernorm", *norm)
            self.define(f"{p}.self_attn", self.attention)
            self.define(f"{p}.mlp.act_fn", self.activation, self.c["hidden_act"])
            self.define(f"{p}.mlp", self.mlp)
            self.define(p, self.layer)
        self.define("model.model.norm", *norm)
        self.define("model.model", self.decoder)
        self.define("model.lm_head", self.head)
        self.define("model", self.model)

    def tables(self, theta, positions):
        d = self.c["head_dim"]
        inverse = torch.exp(torch.arange(0, d, 2) * (-math.log(theta) / d))
        angles = torch.einsum("bt,d->btd", positions.float(), inverse)
        angles = torch.cat([angles, angles], -1)
        return torch.cos(angles).to(self.dtype), torch.sin(angles).to(self.dtype)

    def rotary(self, p, positions):
        return self.tables(self.option(p, "theta", self.c["rope_theta"]), positions)

    def rope(self, p, x, cos, sin):
        if self.option(p, "layout") == "interleaved":
            cos, sin = (t[..., : t.shape[-1] // 2].repeat_interleave(2, -1) for t in (cos, sin))
            return x * cos[:, :, None] + rotate_pairs(x) * sin[:, :, None]
        return x * cos[:, :, None] + rotate_half(x) * sin[:, :, None]

    def projections(self, p, x):
        if self.option(p, "fused"):
            sizes = [self.weight(f"{p}.{n}_proj").shape[0] for n in "qkv"]
            return self.call(f"{p}.qkv_proj", x).split(sizes, -1)
        return [self.call(f"{p}.{n}_proj", x) for n in "qkv"]

    def allowed(self, p, n):
        i, j = torch.arange(n)[:, None], torch.arange(n)[None]
        allow = (j <= i) & (j > i - (self.c.get("sliding_window") or n + 1))
        return self.option(p, "allow", lambda allow, i, j: allow)(allow, i, j)

    def attention(self, p, x, cos, sin):
        kv = self.c["num_key_value_heads"]
        q, k, v = self.projections(p, x)
        q, k, v = self.heads(p, q, self.c["num_attention_heads"]), self.heads(p, k, kv), self.heads(p, v, kv)
        q, k, v = self.option(p, "qkv", lambda q, k, v: (q, k, v))(q, k, v)
        tables = self.option(p, "tables", lambda cos, sin: {"q": (cos, sin), "k": (cos, sin)})(cos, sin)
        q, k, v = (self.rope(p, t, *tables[n]) if n in tables else t for n, t in (("q", q), ("k", k), ("v", v)))
        repeat = q.shape[2] // k.shape[2]
        if self.option(p, "tiled"):  # head h reads key h mod kv instead of h div repeat
            k, v = (t.repeat(1, 1, repeat, 1) for t in (k, v))
        else:
            k, v = (t.repeat_interleave(repeat, 2) for t in (k, v))
        allow = self.allowed(p, x.shape[1])
        mask = torch.zeros(allow.shape).masked_fill(~allow, -math.inf)
        sinks = None if self.option(p, "no_sinks") else self.weight(p, "sinks")
        return self.call(f"{p}.o_proj", self.merge(p, self.attend(p, q, k, v, mask, sinks)))

    def mlp(self, p, x):
        gate, up = self.call(f"{p}.gate_proj", x), self.call(f"{p}.up_proj", x)
        if self.option(p, "swapped"):
            gate, up = up, gate
        return self.call(f"{p}.down_proj", up * self.call(f"{p}.act_fn", gate))

    def layer(self, p, x, cos, sin):
        m = self.option(p, "multiplier", self.c.get("residual_multiplier", 1.0))
        normed = self.call(f"{p}.input_layernorm", x)
        a = self.call(f"{p}.self_attn", self.option(p, "normed", lambda n, x: n)(normed, x), cos, sin)
        h = a * m + self.option(p, "residual1", lambda x, normed: x)(x, normed)
        f = self.call(f"{p}.mlp", self.call(f"{p}.post_attention_layernorm", h))
        return f * m + self.option(p, "residual2", lambda h, x: h)(h, x)

    def decoder(self, p, ids):
        x = self.call(f"{p}.embed_tokens", ids)
        x = x * self.option(p, "embedding_multiplier", self.c.get("embedding_multiplier", 1.0))
        positions = torch.arange(ids.shape[1]).repeat(ids.shape[0], 1)
        cos, sin = self.call(f"{p}.rotary_emb", self.option(p, "positions", lambda t: t)(positions))
        for i in range(self.option(p, "layers", self.c["num_hidden_layers"])):
            x = self.option(p, "between", lambda i, x: x)(i, x)
            x = self.call(f"{p}.layers.{i}", x, cos, sin)
        return self.call(f"{p}.norm", x)

    def head(self, label, x):
        w = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        return torch.einsum("bth,vh->btv", self.wide(x), self.wide(w)).to(self.dtype)

    def model(self, p, ids):
        x = self.call("model.model", ids)
        return self.call("model.lm_head", self.option(p, "head_rows", lambda x: x)(x))


class DiT(Candidate):
    def build(self):
        self.define("model.x_embedder", self.patches)
        for name, f in (("0", (self.linear,)), ("1", (self.activation, "silu")), ("2", (self.linear,))):
            self.define(f"model.t_embedder.mlp.{name}", *f)
        self.define("model.t_embedder.mlp", self.time_mlp)
        self.define("model.t_embedder", self.time)
        for i in range(self.c["num_layers"]):
            p = f"model.blocks.{i}"
            for name in ("adaLN_modulation.linear", "attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"):
                self.define(f"{p}.{name}", self.linear)
            for name in ("norm1", "norm2"):
                self.define(f"{p}.{name}", self.layer_norm, 1e-6)
            self.define(f"{p}.adaLN_modulation", self.modulation)
            self.define(f"{p}.attn", self.attention)
            self.define(f"{p}.mlp.act", self.activation, "gelu_pytorch_tanh")
            self.define(f"{p}.mlp", self.mlp)
            self.define(p, self.block)
        p = "model.final_layer"
        self.define(f"{p}.adaLN_modulation.linear", self.linear)
        self.define(f"{p}.adaLN_modulation", self.modulation)
        self.define(f"{p}.norm_final", self.layer_norm, 1e-6)
        self.define(f"{p}.linear", self.linear)
        self.define(p, self.final)
        self.define("model", self.model)

    def patches(self, p, x):
        n, ch, s, _ = x.shape
        k = self.c["patch_size"]
        x = x.view(n, ch, s // k, k, s // k, k).permute(0, 2, 4, 1, 3, 5).reshape(n, (s // k) ** 2, -1)
        w, b = self.weight(f"{p}.proj"), self.weight(f"{p}.proj", "bias")
        return (torch.einsum("nti,oi->nto", self.wide(x), self.wide(w.flatten(1))) + self.wide(b)).to(self.dtype)

    def time(self, p, t):
        half = self.weight(f"{p}.mlp.0").shape[1] // 2
        angles = t.float()[:, None] * torch.tensor([10000 ** (-i / half) for i in range(half)])
        parts = [torch.cos(angles), torch.sin(angles)]
        return self.call(
            f"{p}.mlp", torch.cat(parts[::-1] if self.option(p, "sin_first") else parts, -1).to(self.dtype)
        )

    def time_mlp(self, p, x):
        for n in "012":
            x = self.call(f"{p}.{n}", x)
        return x

    def modulation(self, p, t):
        x = self.wide(t)
        return self.call(f"{p}.linear", (x / (1 + torch.exp(-x))).to(self.dtype))

    def attention(self, p, x):
        q, k, v = (self.heads(p, t, self.c["num_attention_heads"]) for t in self.call(f"{p}.qkv", x).chunk(3, -1))
        q, k, v = self.option(p, "qkv", lambda q, k, v: (q, k, v))(q, k, v)
        return self.call(f"{p}.proj", self.merge(p, self.attend(p, q, k, v)))

    def mlp(self, p, x):
        return self.call(f"{p}.fc2", self.call(f"{p}.act", self.call(f"{p}.fc1", x)))

    def modulate(self, p, x, shift, scale):
        return torch.addcmul(shift, x, scale + self.option(p, "one", 1.0))

    def block(self, p, x, t):
        m = self.option(p, "order", lambda m: m)(list(self.call(f"{p}.adaLN_modulation", t).unsqueeze(1).chunk(6, -1)))
        y = self.call(f"{p}.attn", self.modulate(p, self.call(f"{p}.norm1", x), m[0], m[1]))
        h = torch.addcmul(self.option(p, "residual1", lambda x: x)(x), m[2], y)
        y = self.call(f"{p}.mlp", self.modulate(p, self.call(f"{p}.norm2", h), m[3], m[4]))
        return torch.addcmul(self.option(p, "residual2", lambda h, x: h)(h, x), m[5], y)

    def final(self, p, x, t):
        m = self.option(p, "order", lambda m: m)(list(self.call(f"{p}.adaLN_modulation", t).unsqueeze(1).chunk(2, -1)))
        return self.call(f"{p}.linear", self.modulate(p, self.call(f"{p}.norm_final", x), *m))

    def model(self, p, x, t):
        x = self.call("model.x_embedder", x)
        x = self.option(p, "pos_embed", lambda x, e: x + e)(x, self.w["pos_embed"])
        t = self.call("model.t_embedder", t)
        for i in range(self.c["num_layers"]):
            x = self.option(p, "between", lambda i, x: x)(i, x)
            x = self.call(f"model.blocks.{i}", x, t)
        x = self.call("model.final_layer", x, t)
        k, side = self.c["patch_size"], self.c["sample_size"] // self.c["patch_size"]
        x = x.view(x.shape[0], side, side, k, k, -1).permute(*self.option(p, "unpatchify", (0, 5, 1, 3, 2, 4)))
        return x.reshape(x.shape[0], -1, side * k, side * k)


FAMILIES = {"bert": Bert, "llama": Llama, "dit": DiT}
