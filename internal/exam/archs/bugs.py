"""What can be wrong in a candidate of 16 bits. Each bug changes a model that was cast already, and knows its answer."""

import dataclasses

import torch

import kernels
from surgery import at, replace, set_, wrap


@dataclasses.dataclass
class Bug:
    plant: object
    kind: str
    layer: str  # the first layer that is wrong
    cause: str
    regex: str  # matches the ids that are right
    text: str
    also: tuple = ()  # places that are as good
    also_kind: tuple = ()
    second: str | None = None
    seen: str = "both"  # injected: in the assembled model the rounding of all layers before it is as large

    def shows(self, layer):
        return layer == self.layer or layer in self.also

    def truth(self):
        return {
            "kind": self.kind, "also_kind": list(self.also_kind), "first_bad_layer": self.layer, "also_right": list(self.also),
            "second_bad_layer": self.second, "seen_in": self.seen, "cause_id": self.cause, "cause_regex": self.regex, "cause": self.text,
        }  # fmt: skip


def attention(layer, **do):
    """What attention does otherwise in a layer, see kernels.py."""

    def plant(model):
        kernels.use(model, "exam")
        at(model, layer).exam = do

    return plant


def every_attention(**do):
    def plant(model):
        kernels.use(model, "exam")
        for n in kernels.attentions(model):
            model.get_submodule(n).exam = do

    return plant


def on(layer, change):
    return lambda model: change(at(model, layer))


def weight(change, leaf="weight"):
    return lambda m: set_(getattr(m, leaf), change(getattr(m, leaf)))


def setting(name, value):
    return lambda m: setattr(m, name, value)


def causal(scores):
    """The mask without a window: true where a key may be seen."""
    q, k = scores.shape[-2:]
    return torch.ones(q, k, dtype=torch.bool).tril(k - q)


def everything(scores):
    return torch.ones(scores.shape[-2:], dtype=torch.bool)


def fp8(w):
    return w.float().to(torch.float8_e4m3fn).to(w.dtype)


def theta(base):
    def plant(model):
        r = model.model.rotary_emb
        n = r.inv_freq.shape[0]
        r.inv_freq = base ** -(torch.arange(n).float() / n)

    return plant


def later(model):
    """Positions of decode steps are one too far."""
    wrap(model.model.rotary_emb, lambda f: lambda x, position_ids: f(x, position_ids + (x.shape[1] == 1)))


def late_slot(k, v):
    """The newest slot is read before it is written: it holds what the one before has."""
    k, v = k.clone(), v.clone()
    k[:, :, -1], v[:, :, -1] = k[:, :, -2], v[:, :, -2]
    return k, v


def other_sequence(k, v):
    return k.roll(1, 0), v.roll(1, 0)


def no_residual(layer):
    """A block whose last sum lacks the stream."""

    def plant(model):
        b = at(model, layer)

        def forward(hidden_states, **kwargs):
            h, _ = b.self_attn(hidden_states=b.input_layernorm(hidden_states), **kwargs)
            return b.mlp(b.post_attention_layernorm(hidden_states + h))

        b.forward = forward

    return plant


def normed_residual(layer):
    """The normed stream is added for the stream."""

    def plant(model):
        b = at(model, layer)

        def forward(hidden_states, **kwargs):
            normed = b.input_layernorm(hidden_states)
            h, _ = b.self_attn(hidden_states=normed, **kwargs)
            h = normed + h
            return h + b.mlp(b.post_attention_layernorm(h))

        b.forward = forward

    return plant


def rotary(rotate):
    def plant(model):
        for b in model.model.layers:
            replace(b.self_attn, apply_rotary_pos_emb=rotate)

    return plant


def half(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def q_alone(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + half(q) * sin, k


def pairs(q, k, cos, sin, unsqueeze_dim=1):
    d = q.shape[-1]
    cos, sin = (t[..., : d // 2].repeat_interleave(2, -1).unsqueeze(unsqueeze_dim) for t in (cos, sin))
    return tuple(x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin for x in (q, k))


def activation(function):
    def change(m):
        m.forward = function

    return change


def experts_exchanged(e):
    p = torch.tensor([1, 0, *range(2, len(e.down_proj))])
    for w in (e.gate_up_proj, e.down_proj):
        set_(w, w[p])


def no_shared_expert(m):
    def forward(x):
        flat = x.view(-1, x.shape[-1])
        _, shares, chosen = m.gate(flat)
        m.shared_expert(flat), m.shared_expert_gate(flat)
        return m.experts(flat, chosen, shares).reshape(x.shape)

    m.forward = forward


def rms(m):
    def forward(x):
        y = x.float()
        return (y * (y.square().mean(-1, keepdim=True) + m.eps).rsqrt()).to(x.dtype) * m.weight + m.bias

    m.forward = forward


def garbage(w):
    w = w.clone()
    w[5, 3] = 40.0
    return w


def two(model):
    """Rows of up shifted in block 0, the scale of attention in block 1."""
    weight(lambda w: w.roll(1, 0))(at(model, f"{L}.0.mlp.up_proj"))
    attention(f"{L}.1.self_attn", scale=0.25)(model)


L = "model.model.layers"
TABLE = {}  # name: what a case is made of


def bug(name, arch, plant, kind, layer, cause, regex, text, also=(), also_kind=(), second=None, seen="both", **case):
    TABLE[name] = {"arch": arch, "bug": Bug(plant, kind, layer, cause, regex, text, also, also_kind, second, seen), **case}


A0, A1, NOROPE = f"{L}.0.self_attn", f"{L}.1.self_attn", {"keep": "norope"}
bug("llama_theta_norope", "llama", theta(500.0), "between", A0, "rope/theta", "rope/theta|config/rope", "theta 500 for 10000", **NOROPE)
bug("llama_theta", "llama", theta(500.0), "local", "model.model.rotary_emb", "rope/theta", "rope/theta|config/rope", "theta 500 for 10000",
    also=(A0,), also_kind=("between",))  # fmt: skip
bug("qwen3_decode_position", "qwen3", later, "between", A0, "rope/offset", "rope/offset", "decode steps count positions one too far",
    steps=3, **NOROPE)  # fmt: skip
bug("llama_k_not_rotated", "llama", rotary(q_alone), "between", A0, "rope/applied", "rope/applied", "k is not rotated", **NOROPE)
bug("qwen2_pairs_for_halves", "qwen2", rotary(pairs), "between", A0, "rope/layout", "rope/layout", "pairs rotated for halves")
bug("llama_attention_scale", "llama", attention(A1, scale=0.25), "between", A1, "attention/scale", "attention/scale", "1/d for 1/√d")
bug("qwen2_not_causal", "qwen2", attention(A1, mask=everything), "between", A1, "attention/causal", "attention/(causal|mask)", "no causal mask")
bug("mistral_no_window", "mistral", every_attention(mask=causal), "between", A0, "attention/mask", "attention/(mask|causal)|config/sliding",
    "the window is ignored")  # fmt: skip
bug("bert_padding_ignored", "bert", every_attention(mask=everything), "between", "model.encoder.layer.0.attention.self", "attention/mask",
    "attention/mask", "padding is seen", pad=(0, 5))  # fmt: skip
bug("llama_gqa_tiled", "llama", attention(A1, groups="tile"), "between", A1, "attention/gqa", "attention/(gqa|heads)",
    "groups of k and v tiled where each is repeated")  # fmt: skip
bug("qwen3_heads_order", "qwen3", attention(A1, heads=[1, 0, 2, 3]), "local", f"{A1}.o_proj", "attention/heads", "attention/heads|layout/",
    "two heads exchanged before o", also=(A1,), also_kind=("between", "input"))  # fmt: skip
bug("gemma2_no_softcap", "gemma2", attention(A1, softcap=False), "between", A1, "config/attn_logit_softcapping",
    "config/attn_logit_softcapping|attention/scale", "scores are not capped")  # fmt: skip
bug("gptoss_no_sinks", "gptoss", attention(A1, sinks=False), "between", A1, "attention/anchor-missing", "attention/anchor-missing",
    "the learned sinks are left out")  # fmt: skip
bug("llama_cache_slot_late", "llama", attention(A1, keys=late_slot), "between", A1, "state/stale", "state/stale|layout/shifted|attention/",
    "the newest slot of the cache is read before it is written", steps=3)  # fmt: skip
bug("qwen3_other_sequence", "qwen3", attention(A1, keys=other_sequence), "between", A1, "attention/batch", "attention/batch|state/",
    "sequences of the batch read each other's keys and values", batch=2)  # fmt: skip
bug("olmo2_scale_f32_norms", "olmo2", attention(A1, scale=2.0), "between", A1, "attention/scale", "attention/scale", "the scale of half the head",
    islands=("norms32",))  # fmt: skip
bug("qwen3_no_q_norm", "qwen3", on(f"{A1}.q_norm", activation(lambda x: x)), "local", f"{A1}.q_norm", "norm/missing", "norm/",
    "q is not normed")  # fmt: skip
bug("llama_eps", "llama", on(f"{L}.1.input_layernorm", setting("variance_epsilon", 0.5)), "local", f"{L}.1.input_layernorm", "norm/eps",
    "norm/eps|value/scale", "eps 0.5 for 1e-6")  # fmt: skip
bug("gemma2_no_one_plus", "gemma2", on(f"{L}.1.pre_feedforward_layernorm", weight(lambda w: w - 1)), "local",
    f"{L}.1.pre_feedforward_layernorm", "norm/weight", "norm/weight", "w for 1 + w")  # fmt: skip
bug("neox_norm_weight_lost", "neox", on("model.gpt_neox.layers.1.input_layernorm", weight(torch.ones_like)), "local",
    "model.gpt_neox.layers.1.input_layernorm", "norm/weight", "norm/weight", "a norm whose weight was not loaded")  # fmt: skip
bug("gpt2_rms", "gpt2", on("model.transformer.h.1.ln_2", rms), "local", "model.transformer.h.1.ln_2", "norm/kind", "norm/kind|value/offset",
    "RMS norm for layer norm")  # fmt: skip
bug("llama_gelu_f32_residual", "llama", on(f"{L}.1.mlp.act_fn", activation(torch.nn.functional.gelu)), "local", f"{L}.1.mlp.act_fn",
    "activation/gelu", "activation/gelu", "GELU for SiLU", islands=("residual32",))  # fmt: skip
bug("gemma3_silu", "gemma3", on(f"{L}.1.mlp.act_fn", activation(torch.nn.functional.silu)), "local", f"{L}.1.mlp.act_fn", "activation/silu",
    "activation/silu", "SiLU for GELU")  # fmt: skip
bug("bert_relu", "bert", on("model.encoder.layer.1.intermediate.intermediate_act_fn", activation(torch.relu)), "local",
    "model.encoder.layer.1.intermediate.intermediate_act_fn", "activation/relu", "activation/relu$", "ReLU for GELU")  # fmt: skip
bug("whisper_quick_gelu_f16", "whisper", on("model.encoder.layers.1.activation_fn", activation(lambda x: x * torch.sigmoid(1.702 * x))), "local",
    "model.encoder.layers.1.activation_fn", "activation/quick-gelu", "activation/quick-gelu", "quick GELU for GELU", dtype="f16")  # fmt: skip
bug("clip_gelu_f16", "clipv", on("model.encoder.layers.1.mlp.activation_fn", activation(torch.nn.functional.gelu)), "local",
    "model.encoder.layers.1.mlp.activation_fn", "activation/gelu", "activation/gelu$", "GELU for quick GELU", dtype="f16")  # fmt: skip
bug("vit_no_attention_bias", "vit", on("model.layers.1.attention.q_proj", weight(torch.zeros_like, "bias")), "local",
    "model.layers.1.attention.q_proj", "linear/bias-missing", "linear/bias-missing", "q has no bias")  # fmt: skip
bug("llama_no_residual", "llama", no_residual(f"{L}.1"), "between", f"{L}.1", "residual/missing", "residual/", "the last sum lacks the stream",
    also_kind=("local",))  # fmt: skip
bug("qwen2_normed_residual", "qwen2", normed_residual(f"{L}.1"), "input", f"{L}.1.post_attention_layernorm", "residual/source",
    "residual/|norm/order", "the normed stream is added", also=(f"{L}.1",), also_kind=("between", "local"))  # fmt: skip
bug("granite_residual_multiplier", "granite", on(f"{L}.1", setting("residual_multiplier", 1.0)), "input", f"{L}.1.post_attention_layernorm",
    "residual/scale", "residual/scale|config/residual", "residual_multiplier not read", also=(f"{L}.1",), also_kind=("between", "local"))  # fmt: skip
bug("gemma3_embedding_scale", "gemma3", on("model.model.embed_tokens", setting("embed_scale", torch.tensor(1.0))), "local",
    "model.model.embed_tokens", "embedding/scale", "embedding/scale|value/scale", "√hidden left out")  # fmt: skip
bug("gpt2_positions_from_1", "gpt2", on("model.transformer.wpe", lambda m: wrap(m, lambda f: lambda x: f(x + 1))), "local",
    "model.transformer.wpe", "embedding/position", "embedding/(position|index)|layout/shifted", "positions begin at 1")  # fmt: skip
bug("llama_o_transposed", "llama", on(f"{A1}.o_proj", weight(lambda w: w.T.clone())), "local", f"{A1}.o_proj", "linear/transposed",
    "linear/transposed", "W_o transposed")  # fmt: skip
bug("mistral_up_rows", "mistral", on(f"{L}.1.mlp.up_proj", weight(lambda w: w.roll(1, 0))), "local", f"{L}.1.mlp.up_proj", "layout/shifted",
    "layout/(shifted|permuted)", "rows of W_up shifted by one")  # fmt: skip
bug("qwen2_no_q_bias", "qwen2", on(f"{A1}.q_proj", weight(torch.zeros_like, "bias")), "local", f"{A1}.q_proj", "linear/bias-missing",
    "linear/bias-missing", "q has no bias")  # fmt: skip
bug("gpt2_bias_twice", "gpt2", on("model.transformer.h.1.mlp.c_fc", weight(lambda b: 2 * b, "bias")), "local", "model.transformer.h.1.mlp.c_fc",
    "linear/bias-twice", "linear/bias-twice", "the bias is added twice")  # fmt: skip
bug("phi3_garbage", "phi3", on(f"{L}.1.mlp.down_proj", weight(garbage)), "local", f"{L}.1.mlp.down_proj", "linear/corrupt",
    "linear/corrupt|columns/set", "one element of W_down is garbage", keep="outputs")  # fmt: skip
bug("llama_fp8_weight", "llama", on(f"{L}.1.mlp.down_proj", weight(fp8)), "local", f"{L}.1.mlp.down_proj", "dtype/downcast",
    "quant/|dtype/downcast", "one weight rounded to float8 e4m3", seen="injected")  # fmt: skip
bug("qwen2_fp8_activation", "qwen2", on(f"{L}.1.mlp.act_fn", lambda m: wrap(m, lambda f: lambda x: fp8(f(x)))), "local", f"{L}.1.mlp.act_fn",
    "dtype/downcast", "quant/|dtype/downcast", "one activation rounded to float8 e4m3", seen="injected")  # fmt: skip
bug("llama_head_tied_f32_logits", "llama", lambda m: set_(m.lm_head.weight, m.model.embed_tokens.weight * 0.2), "local", "model.lm_head",
    "output/tied", "output/tied|linear/(other-layer|corrupt)", "the head is a multiple of the embeddings", islands=("logits32",))  # fmt: skip
bug("qwen3moe_no_renorm", "qwen3moe", on(f"{L}.1.mlp.gate", setting("norm_topk_prob", False)), "local", f"{L}.1.mlp.gate", "router/renorm",
    "moe/|router/|rows/|value/scale", "shares of the chosen experts are not divided by their sum")  # fmt: skip
bug("mixtral_experts_f32_router", "mixtral", on(f"{L}.1.mlp.experts", experts_exchanged), "between", f"{L}.1.mlp.experts", "moe/expert-order",
    "moe/|linear/other|expert", "experts 0 and 1 exchanged", also_kind=("local",), islands=("router32",))  # fmt: skip
bug("qwen2moe_no_shared_expert", "qwen2moe", on(f"{L}.1.mlp", no_shared_expert), "between", f"{L}.1.mlp", "residual/missing",
    "residual/missing|moe/", "the shared expert is not added")  # fmt: skip
bug("mamba_no_D", "mamba", on("model.backbone.layers.1.mixer", weight(torch.zeros_like, "D")), "between", "model.backbone.layers.1.mixer",
    "ssm/skip", "ssm/|residual/missing", "D·x is not added")  # fmt: skip
bug("mamba_conv_flipped", "mamba", on("model.backbone.layers.1.mixer.conv1d", weight(lambda w: w.flip(-1))), "local",
    "model.backbone.layers.1.mixer.conv1d", "conv/flipped", "layout|conv", "the kernel of the convolution reversed")  # fmt: skip
bug("t5_norm_lost", "t5", on("model.encoder.block.1.layer.1.layer_norm", weight(torch.ones_like)), "local",
    "model.encoder.block.1.layer.1.layer_norm", "norm/weight", "norm/weight", "a norm whose weight was not loaded")  # fmt: skip
bug("both_bf16_llama_scale", "llama", attention(A1, scale=0.25), "between", A1, "attention/scale", "attention/scale", "1/d for 1/√d",
    reference="bf16", islands=("attention32",))  # fmt: skip
bug("llama_two", "llama", two, "local", f"{L}.0.mlp.up_proj", "layout/shifted", "layout/(shifted|permuted)",
    "rows of W_up shifted in block 0, 1/d for 1/√d in block 1", second=A1)  # fmt: skip

