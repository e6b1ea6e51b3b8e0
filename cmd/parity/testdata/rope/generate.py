"""Writes a reference and two ports of one tiny Llama: port/ is right, lost/ lost rope_theta and rotates with 10000.

    .venv/bin/python cmd/parity/testdata/rope/generate.py

Needs torch, transformers and safetensors; versions of the last run: 2.15.0, 5.12.1, 0.8.0.

The reference is transformers' own Llama, recorded by goparity's recorder. The ports are one forward pass written by
hand, with the names of the reference (run.json) and with names of its own (own.json, over the same tensors). As in a
trained model one next token is likely at each place: the head has the embedding of the token before it. So nearly all
of the most likely tokens stay what they are, whatever the theta.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[3] / "internal" / "engine" / "runner"))
from goparity import program  # noqa: E402
from goparity.torchhooks import Recorder  # noqa: E402

LOST = 10000.0  # what Llama's config has where it says nothing
TOKENS = torch.tensor([[1, 27, 3, 41, 9, 60, 14, 33, 52, 7, 45, 20, 38, 11, 58, 25]])
CONFIG = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                     rms_norm_eps=1e-5, max_position_embeddings=64, tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 500000.0})
OWN = {"embed_tokens": "net.table", "layers.0": "net.b0", "layers.0.input_layernorm": "net.b0.pre", "layers.0.self_attn": "net.b0.mix",
       "layers.0.self_attn.q_proj": "net.b0.mix.wq", "layers.0.self_attn.k_proj": "net.b0.mix.wk", "layers.0.self_attn.v_proj": "net.b0.mix.wv",
       "layers.0.self_attn.o_proj": "net.b0.mix.wo", "layers.0.post_attention_layernorm": "net.b0.mid", "layers.0.mlp": "net.b0.ffn",
       "layers.0.mlp.gate_proj": "net.b0.ffn.w1", "layers.0.mlp.up_proj": "net.b0.ffn.w3", "layers.0.mlp.down_proj": "net.b0.ffn.w2", "norm": "net.last",
       "lm_head": "net.logits"}


def weights(model):
    torch.manual_seed(0)
    for name, p in model.named_parameters():
        p.data = 1 + 0.1 * torch.randn_like(p) if "norm" in name else torch.randn_like(p) / p.shape[-1] ** 0.5
    table = model.model.embed_tokens.weight.data
    table.copy_(1.5 * torch.randn_like(table))
    for name in "q_proj", "k_proj":
        getattr(model.model.layers[0].self_attn, name).weight.data.mul_(2)
    model.lm_head.weight.data.copy_(0.65 * table.roll(1, 0))  # token t makes t + 1 likely


def reference(model):
    recorder = Recorder(model)
    with torch.no_grad():
        model(TOKENS, use_cache=False)
    records = recorder.take()
    recorder.remove()
    return records


def record_program(model):
    """Writes the reference's program: the operators that the model runs."""
    with program.Recorder(model, "run") as p, torch.no_grad():
        model(TOKENS, use_cache=False)
    p.save(HERE / "ref")


def rotate(x, theta):
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), theta ** (-torch.arange(half, dtype=torch.float32) / half))
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def port(w, theta):
    """The same model, written by hand: what each layer was given, and what it returns."""
    records, n = [], TOKENS.shape[1]

    def layer(name, x, y):
        records.extend([(f"model.{name}", "input_0", x), (f"model.{name}", "output", y)])
        return y

    def linear(name, x):
        return layer(name, x, F.linear(x, w[name + ".weight"]))

    def norm(name, x):
        return layer(name, x, x * torch.rsqrt(x.square().mean(-1, keepdim=True) + CONFIG.rms_norm_eps) * w[name + ".weight"])

    b = "model.layers.0"
    x = layer("model.embed_tokens", TOKENS, w["model.embed_tokens.weight"][TOKENS])
    h = norm(b + ".input_layernorm", x)
    q, k, v = (linear(f"{b}.self_attn.{p}_proj", h).view(n, -1, CONFIG.head_dim).transpose(0, 1) for p in "qkv")
    scores = rotate(q, theta) @ rotate(k, theta).transpose(1, 2) * CONFIG.head_dim**-0.5
    scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
    y = linear(b + ".self_attn.o_proj", (scores.softmax(-1) @ v).transpose(0, 1).reshape(1, n, -1))
    r = x + layer(b + ".self_attn", h, y)
    h = norm(b + ".post_attention_layernorm", r)
    m = linear(b + ".mlp.down_proj", F.silu(linear(b + ".mlp.gate_proj", h)) * linear(b + ".mlp.up_proj", h))
    layer(b + ".mlp", h, m)
    r = layer(b, x, r + m)
    linear("lm_head", norm("model.norm", r))
    return records


def write(folder, engine, records, own=None):
    """A safetensors file in which equal tensors are stored once, and run.json, which says what they are."""
    folder.mkdir(exist_ok=True)
    seen, tensors, order = {}, {}, []
    for layer, where, t in records:
        t = t.contiguous()
        name = seen.setdefault((t.dtype, t.shape, t.numpy().tobytes()), f"t{len(seen)}")
        tensors[name] = t
        order.append(["0", layer, where, "0.safetensors", name])
    save_file(tensors, folder / "0.safetensors")
    about = {"schema": 2, "engine": engine, "encoding": "float32", "case": "run", "token_ids": TOKENS.tolist()}
    (folder / "run.json").write_text(json.dumps(about | {"order": order}) + "\n")
    if own:
        order = [["0", own[layer.removeprefix("model.").removeprefix("model.")], *rest] for _, layer, *rest in order]
        (folder / "own.json").write_text(json.dumps(about | {"order": order}) + "\n")


def main():
    model = LlamaForCausalLM(CONFIG).eval()
    weights(model)
    records = reference(model)
    write(HERE / "ref", "torch", records)
    record_program(model)
    config = {k: v for k, v in CONFIG.to_dict().items() if k in ("model_type", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps", "rope_parameters")}
    (HERE / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    golden = records_of(records, "model.lm_head", "output")
    for name, theta in ("port", CONFIG.rope_parameters["rope_theta"]), ("lost", LOST):
        mine = port(model.state_dict(), theta)
        write(HERE / name, "home", mine, OWN)
        logits = records_of(mine, "model.lm_head", "output")
        same = (logits.argmax(-1) == golden.argmax(-1)).sum()
        print(f"{name}: logits up to {golden.abs().max():.1f}, largest difference {(logits - golden).abs().max():.3g}, the same token at {same} of {TOKENS.numel()} places, "
              f"cosine {F.cosine_similarity(logits.flatten(), golden.flatten(), 0):.4f}")


def records_of(records, layer, where):
    return next(t for n, p, t in records if (n, p) == (layer, where))


main()
