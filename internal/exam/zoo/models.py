"""The reference models: small torch modules with the names and config keys of BERT, Llama and DiT."""

import collections
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine" / "runner"))
from goparity import program  # noqa: E402

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
}


class Activation(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.run = ACTIVATIONS[name]

    def forward(self, x):
        return self.run(x)


def attend(q, k, v, scale, mask=None, sinks=None):
    """Softmax attention over [batch, heads, tokens, head_dim], as Hugging Face's eager form computes it."""
    scores = q @ k.transpose(-1, -2) * scale
    if mask is not None:
        scores = scores + mask
    if sinks is not None:
        scores = torch.cat([scores, sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)], -1)
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    weights = torch.softmax(scores, -1, dtype=wide).to(q.dtype)[..., : k.shape[-2]]
    return weights @ v


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(-2)


# BERT


class BertEmbeddings(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.word_embeddings = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.position_embeddings = nn.Embedding(40, c["hidden_size"])
        self.token_type_embeddings = nn.Embedding(2, c["hidden_size"])
        self.LayerNorm = nn.LayerNorm(c["hidden_size"], c["layer_norm_eps"])

    def forward(self, ids, types):
        x = self.word_embeddings(ids) + self.token_type_embeddings(types)
        positions = torch.arange(ids.shape[1]).expand_as(ids)
        return self.LayerNorm(x + self.position_embeddings(positions))


class BertSelf(nn.Module):
    def __init__(self, c):
        super().__init__()
        h = c["hidden_size"]
        self.heads = c["num_attention_heads"]
        self.query, self.key, self.value = nn.Linear(h, h), nn.Linear(h, h), nn.Linear(h, h)

    def forward(self, x, mask):
        q, k, v = (split_heads(f(x), self.heads) for f in (self.query, self.key, self.value))
        return merge_heads(attend(q, k, v, q.shape[-1] ** -0.5, mask))


class BertOutput(nn.Module):
    def __init__(self, c, size):
        super().__init__()
        self.dense = nn.Linear(size, c["hidden_size"])
        self.LayerNorm = nn.LayerNorm(c["hidden_size"], c["layer_norm_eps"])

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class BertAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self = BertSelf(c)
        self.output = BertOutput(c, c["hidden_size"])

    def forward(self, x, mask):
        return self.output(self.self(x, mask), x)


class BertIntermediate(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dense = nn.Linear(c["hidden_size"], c["intermediate_size"])
        self.intermediate_act_fn = Activation(c["hidden_act"])

    def forward(self, x):
        return self.intermediate_act_fn(self.dense(x))


class BertLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention = BertAttention(c)
        self.intermediate = BertIntermediate(c)
        self.output = BertOutput(c, c["intermediate_size"])

    def forward(self, x, mask):
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(c) for _ in range(c["num_hidden_layers"]))

    def forward(self, x, mask):
        for layer in self.layer:
            x = layer(x, mask)
        return x


class BertPooler(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dense = nn.Linear(c["hidden_size"], c["hidden_size"])
        self.activation = nn.Tanh()

    def forward(self, x):
        return self.activation(self.dense(x[:, 0]))


class Bert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embeddings, self.encoder, self.pooler = BertEmbeddings(c), BertEncoder(c), BertPooler(c)

    def forward(self, ids, mask, types):
        x = self.embeddings(ids, types)
        x = self.encoder(x, (1 - mask.to(x.dtype))[:, None, None] * torch.finfo(x.dtype).min)
        self.pooler(x)
        return x


# Llama and its relatives, which change biases, 1 + w in the norms, multipliers, sinks, a window


class RMSNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c["hidden_size"]))
        self.eps, self.plus = c["rms_norm_eps"], 1.0 if c["model_type"] == "gemma" else 0.0

    def forward(self, x):
        wide = x.to(torch.float64 if x.dtype == torch.float64 else torch.float32)
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (self.weight + self.plus) * wide.to(x.dtype)


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def causal_mask(n, dtype, window=None):
    i, j = torch.arange(n)[:, None], torch.arange(n)[None]
    allowed = (j <= i) & (j > i - (window or n + 1))
    return torch.zeros(n, n, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)


class Rotary(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.theta, self.dim, self.dtype = c["rope_theta"], c["head_dim"], dtype

    def forward(self, positions):
        wide = torch.float64 if self.dtype() == torch.float64 else torch.float32
        inverse = self.theta ** -(torch.arange(0, self.dim, 2, dtype=wide) / self.dim)
        angles = (positions[..., None].to(wide) * inverse).repeat(1, 1, 2)
        return angles.cos().to(self.dtype()), angles.sin().to(self.dtype())


class LlamaAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, d, bias = c["hidden_size"], c["head_dim"], c["attention_bias"]
        self.heads, self.kv, self.window = c["num_attention_heads"], c["num_key_value_heads"], c.get("sliding_window")
        self.q_proj = nn.Linear(h, self.heads * d, bias=bias)
        self.k_proj = nn.Linear(h, self.kv * d, bias=bias)
        self.v_proj = nn.Linear(h, self.kv * d, bias=bias)
        self.o_proj = nn.Linear(self.heads * d, h, bias=False)
        self.sinks = nn.Parameter(torch.zeros(self.heads)) if c["model_type"] == "gpt_oss" else None

    def forward(self, x, cos, sin):
        q = split_heads(self.q_proj(x), self.heads)
        k, v = split_heads(self.k_proj(x), self.kv), split_heads(self.v_proj(x), self.kv)
        cos, sin = cos[:, None], sin[:, None]
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
        mask = causal_mask(x.shape[1], x.dtype, self.window)
        return self.o_proj(merge_heads(attend(q, k, v, q.shape[-1] ** -0.5, mask, self.sinks)))


class LlamaMLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, n = c["hidden_size"], c["intermediate_size"]
        self.gate_proj, self.up_proj, self.down_proj = (
            nn.Linear(a, b, bias=False) for a, b in ((h, n), (h, n), (n, h))
        )
        self.act_fn = Activation(c["hidden_act"])

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(c), RMSNorm(c)
        self.self_attn, self.mlp = LlamaAttention(c), LlamaMLP(c)
        self.multiplier = c.get("residual_multiplier", 1.0)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin) * self.multiplier
        return x + self.mlp(self.post_attention_layernorm(x)) * self.multiplier


class LlamaModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.rotary_emb = Rotary(c, lambda: self.embed_tokens.weight.dtype)
        self.layers = nn.ModuleList(LlamaLayer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c)
        self.multiplier = c.get("embedding_multiplier", 1.0)

    def forward(self, ids):
        x = self.embed_tokens(ids) * self.multiplier
        cos, sin = self.rotary_emb(torch.arange(ids.shape[1]).expand_as(ids))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = LlamaModel(c)
        self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c["tie_word_embeddings"]:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, ids):
        return self.lm_head(self.model(ids))


# DiT


class PatchEmbed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.proj = nn.Conv2d(c["in_channels"], c["hidden_size"], c["patch_size"], c["patch_size"])

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class TimestepEmbed(nn.Module):
    SIZE = 32

    def __init__(self, c):
        super().__init__()
        h = c["hidden_size"]
        self.mlp = nn.Sequential(nn.Linear(self.SIZE, h), nn.SiLU(), nn.Linear(h, h))

    def forward(self, t):
        wide = torch.float64 if t.dtype == torch.float64 else torch.float32
        half = self.SIZE // 2
        angles = t[:, None].to(wide) * torch.exp(-math.log(10000) * torch.arange(half, dtype=wide) / half)
        return self.mlp(torch.cat([angles.cos(), angles.sin()], -1).to(t.dtype))


class Modulation(nn.Module):
    def __init__(self, c, n):
        super().__init__()
        self.linear = nn.Linear(c["hidden_size"], n * c["hidden_size"])

    def forward(self, t):
        return self.linear(F.silu(t))


class DiTAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        h = c["hidden_size"]
        self.heads, self.qkv, self.proj = c["num_attention_heads"], nn.Linear(h, 3 * h), nn.Linear(h, h)

    def forward(self, x):
        q, k, v = (split_heads(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        return self.proj(merge_heads(attend(q, k, v, q.shape[-1] ** -0.5)))


class DiTMLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.fc1 = nn.Linear(c["hidden_size"], c["mlp_hidden_size"])
        self.act = Activation("gelu_pytorch_tanh")
        self.fc2 = nn.Linear(c["mlp_hidden_size"], c["hidden_size"])

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class DiTBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.adaLN_modulation = Modulation(c, 6)
        self.norm1 = nn.LayerNorm(c["hidden_size"], 1e-6, elementwise_affine=False)
        self.attn = DiTAttention(c)
        self.norm2 = nn.LayerNorm(c["hidden_size"], 1e-6, elementwise_affine=False)
        self.mlp = DiTMLP(c)

    def forward(self, x, t):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN_modulation(t)[:, None].chunk(6, -1)
        x = x + gate1 * self.attn(self.norm1(x) * (1 + scale1) + shift1)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiTFinal(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.adaLN_modulation = Modulation(c, 2)
        self.norm_final = nn.LayerNorm(c["hidden_size"], 1e-6, elementwise_affine=False)
        self.linear = nn.Linear(c["hidden_size"], c["patch_size"] ** 2 * c["in_channels"])

    def forward(self, x, t):
        shift, scale = self.adaLN_modulation(t)[:, None].chunk(2, -1)
        return self.linear(self.norm_final(x) * (1 + scale) + shift)


class DiT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.side, self.patch = c["sample_size"] // c["patch_size"], c["patch_size"]
        self.x_embedder, self.t_embedder = PatchEmbed(c), TimestepEmbed(c)
        self.pos_embed = nn.Parameter(torch.zeros(1, self.side**2, c["hidden_size"]))
        self.blocks = nn.ModuleList(DiTBlock(c) for _ in range(c["num_layers"]))
        self.final_layer = DiTFinal(c)

    def forward(self, x, t):
        x, t = self.x_embedder(x) + self.pos_embed, self.t_embedder(t)
        for block in self.blocks:
            x = block(x, t)
        x = self.final_layer(x, t).view(x.shape[0], self.side, self.side, self.patch, self.patch, -1)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(x.shape[0], -1, self.side * self.patch, self.side * self.patch)


FAMILIES = {"bert": Bert, "llama": Llama, "dit": DiT}


def config(family, layers, **changes):
    """The config of a model, in Hugging Face's keys."""
    common = {"hidden_size": 64, "num_attention_heads": 4}
    c = {
        "bert": {
            "model_type": "bert",
            "hidden_act": "gelu",
            **common,
            "num_hidden_layers": layers,
            "intermediate_size": 96,
            "layer_norm_eps": 1e-12,
            "vocab_size": 128,
        },
        "llama": {
            "model_type": "llama",
            "hidden_act": "silu",
            **common,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "num_hidden_layers": layers,
            "intermediate_size": 96,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "vocab_size": 128,
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
        "dit": {
            "model_type": "dit",
            **common,
            "num_layers": layers,
            "sample_size": 6,
            "patch_size": 2,
            "in_channels": 4,
            "mlp_hidden_size": 96,
        },
    }[family]
    return {**c, **changes}


def build(family, c, seed):
    """The model with random weights that keep the activations near 1, and attention neither flat nor one-hot."""
    model, g = FAMILIES[family](c), torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=g)
        if "embeddings.weight" in name or "embed_tokens" in name:
            x *= 0.04
        elif "norm" in name.lower():
            x = (
                x * 0.12
                if name.endswith("bias")
                else torch.rand(p.shape, generator=g) * 1.4 + (-0.7 if c["model_type"] == "gemma" else 0.3)
            )
        elif name.endswith("sinks"):
            x = x * 0.5 + 1
        elif name == "pos_embed":
            x *= 0.2
        elif p.dim() == 1:
            x *= 0.12
        else:
            gain = (
                1.5
                if any(k in name for k in ("query", "key", "q_proj", "k_proj", "qkv"))
                else 0.5
                if "adaLN" in name
                else 0.8
            )
            x *= gain / math.sqrt(p[0].numel())
        p.data = x
    return model.eval()


def record(model, inputs):
    """One forward pass: tensors by label, in the order in which hooks after the modules see them."""
    records = collections.OrderedDict()

    def hook(label):
        def after(_, args, out):
            for i, x in enumerate(args):
                records[f"{label}-input_{i}"] = x.detach().clone()
            for port, x in outputs(out):
                records[f"{label}-{port}"] = x.detach().clone()

        return after

    handles = [
        m.register_forward_hook(hook(f"model.{name}" if name else "model"))
        for name, m in model.named_modules()
        if not isinstance(m, nn.ModuleList)
    ]
    with torch.no_grad():
        model(*inputs)
    for h in handles:
        h.remove()
    return records


def write_program(folder, model, inputs):
    """Writes the program of one forward pass: the operators that the model runs."""
    with program.Recorder(model) as p, torch.no_grad():
        model(*inputs)
    p.save(folder)


def outputs(out):
    """The ports of a module's output: output, or output_0, output_1 of a tuple."""
    return [("output", out)] if torch.is_tensor(out) else [(f"output_{i}", x) for i, x in enumerate(out)]
