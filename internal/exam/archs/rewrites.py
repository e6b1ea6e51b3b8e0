"""The same function written otherwise. Each changes a float32 model; what it returns agrees to rounding, inner tensors differ."""

import torch

from surgery import heads, layers, replace, set_, wrap


def scale_folded(model):
    """1/√d is in q's weights, attention does not scale."""
    for b in layers(model):
        a = b.self_attn
        for p in [a.q_proj.weight, a.q_proj.bias] if not hasattr(a, "q_norm") else [a.q_norm.weight]:
            if p is not None:
                set_(p, p * a.scaling)
        a.scaling = 1.0


def norm_folded(model):
    """A norm's weight is in the products that read it."""
    for b in layers(model):
        fold(b.input_layernorm, [b.self_attn.q_proj.weight, b.self_attn.k_proj.weight, b.self_attn.v_proj.weight])
        if hasattr(b.mlp, "experts"):
            fold(b.post_attention_layernorm, [b.mlp.gate.weight, b.mlp.experts.gate_up_proj])
        else:
            fold(b.post_attention_layernorm, [b.mlp.gate_proj.weight, b.mlp.up_proj.weight])


def fold(norm, products):
    for p in products:
        set_(p, p * norm.weight)
    set_(norm.weight, torch.ones_like(norm.weight))


def last_norm_folded(model):
    """The last norm's weight is in the head."""
    fold(model.model.norm, [model.lm_head.weight])


def order(n, seed=5):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def mlp_channels(model):
    """The channels between up and down are in another order."""
    for b in layers(model):
        m = b.mlp
        p = order(m.down_proj.weight.shape[1])
        if hasattr(m, "gate_up_proj"):
            n = len(p)
            set_(m.gate_up_proj.weight, m.gate_up_proj.weight[torch.cat([p, p + n])])
        else:
            for w in (m.gate_proj.weight, m.up_proj.weight):
                set_(w, w[p])
        set_(m.down_proj.weight, m.down_proj.weight[:, p])


def gpt2_channels(model):
    for b in model.transformer.h:
        m = b.mlp
        p = order(m.c_proj.weight.shape[0])
        set_(m.c_fc.weight, m.c_fc.weight[:, p])
        set_(m.c_fc.bias, m.c_fc.bias[p])
        set_(m.c_proj.weight, m.c_proj.weight[p])


def bert_channels(model):
    for b in model.encoder.layer:
        p = order(b.intermediate.dense.weight.shape[0])
        set_(b.intermediate.dense.weight, b.intermediate.dense.weight[p])
        set_(b.intermediate.dense.bias, b.intermediate.dense.bias[p])
        set_(b.output.dense.weight, b.output.dense.weight[:, p])


def bert_heads(model):
    """Heads in another order: q, k, v and the columns of the output together."""
    n, _, d = heads(model.config)
    for b in model.encoder.layer:
        p = (order(n)[:, None] * d + torch.arange(d)).flatten()
        for m in (b.attention.self.query, b.attention.self.key, b.attention.self.value):
            set_(m.weight, m.weight[p])
            set_(m.bias, m.bias[p])
        set_(b.attention.output.dense.weight, b.attention.output.dense.weight[:, p])


def experts(model):
    """Experts are stored in another order, and chosen by it."""
    for b in layers(model):
        p = order(len(b.mlp.gate.weight))
        for w in (b.mlp.gate.weight, b.mlp.experts.gate_up_proj, b.mlp.experts.down_proj):
            set_(w, w[p])


def expert_channels(model):
    for b in layers(model):
        e = b.mlp.experts
        p = order(e.down_proj.shape[2])
        set_(e.gate_up_proj, e.gate_up_proj[:, torch.cat([p, p + len(p)])])
        set_(e.down_proj, e.down_proj[:, :, p])


def topk_order(model):
    """The chosen experts are listed from the smallest share."""
    for b in layers(model):
        wrap(b.mlp.gate, lambda f: lambda x: (lambda logits, shares, chosen: (logits, shares.flip(-1), chosen.flip(-1)))(*f(x)))


def grouped_heads(model):
    """Groups of heads, and heads within their groups, in another order."""
    n, kv, d = heads(model.config)
    for b in layers(model):
        a, groups = b.self_attn, order(kv, 3)
        q = torch.cat([g * (n // kv) + order(n // kv, int(g)) for g in groups])
        q, k = ((x[:, None] * d + torch.arange(d)).flatten() for x in (q, groups))
        set_(a.q_proj.weight, a.q_proj.weight[q])
        for m in (a.k_proj, a.v_proj):
            set_(m.weight, m.weight[k])
        for m, p in ((a.q_proj, q), (a.k_proj, k), (a.v_proj, k)):
            if m.bias is not None:
                set_(m.bias, m.bias[p])
        set_(a.o_proj.weight, a.o_proj.weight[:, q])


def interleaved(model):
    """Rotary pairs are neighbours, and the rows of q and k are in that order."""
    n, kv, d = heads(model.config)
    p = torch.arange(d).reshape(2, d // 2).T.flatten()

    def rotate(q, k, cos, sin, unsqueeze_dim=1):
        cos, sin = (t[..., : d // 2].repeat_interleave(2, -1).unsqueeze(unsqueeze_dim) for t in (cos, sin))
        return tuple(x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin for x in (q, k))

    for b in layers(model):
        a = b.self_attn
        for m, h in ((a.q_proj, n), (a.k_proj, kv)):
            rows = (torch.arange(h)[:, None] * d + p).flatten()
            set_(m.weight, m.weight[rows])
            if m.bias is not None:
                set_(m.bias, m.bias[rows])
        for m in (getattr(a, "q_norm", None), getattr(a, "k_norm", None)):
            if m is not None:
                set_(m.weight, m.weight[p])
        replace(a, apply_rotary_pos_emb=rotate)


def factors(n, seed=9):
    return torch.exp2(torch.randn(n, generator=torch.Generator().manual_seed(seed)))


def v_o_scaled(model):
    """Each channel of v is multiplied, the columns of o are divided."""
    n, kv, d = heads(model.config)
    for b in layers(model):
        a, s = b.self_attn, factors(kv * d)
        set_(a.v_proj.weight, a.v_proj.weight * s[:, None])
        if a.v_proj.bias is not None:
            set_(a.v_proj.bias, a.v_proj.bias * s)
        set_(a.o_proj.weight, a.o_proj.weight / s.reshape(kv, 1, d).expand(kv, n // kv, d).flatten())


def q_k_scaled(model):
    """Keys are multiplied, queries divided, by a factor for each head."""
    n, kv, d = heads(model.config)
    for b in layers(model):
        a, s = b.self_attn, factors(kv)
        for m, f in ((a.k_proj, s.repeat_interleave(d)), (a.q_proj, (1 / s).repeat_interleave(n // kv * d))):
            set_(m.weight, m.weight * f[:, None])
            if m.bias is not None:
                set_(m.bias, m.bias * f)


def up_down_scaled(model):
    for b in layers(model):
        s = factors(b.mlp.up_proj.weight.shape[0])
        set_(b.mlp.up_proj.weight, b.mlp.up_proj.weight * s[:, None])
        set_(b.mlp.down_proj.weight, b.mlp.down_proj.weight / s)


def embedding_folded(model):
    """The factor of the embedding is in the table."""
    set_(model.model.embed_tokens.weight, model.model.embed_tokens.weight * model.model.embedding_multiplier)
    model.model.embedding_multiplier = 1.0


def residual_folded(model):
    """The factor of what is added is in the last products."""
    for b in layers(model):
        for w in (b.self_attn.o_proj.weight, b.mlp.down_proj.weight):
            set_(w, w * b.residual_multiplier)
        b.residual_multiplier = 1.0


def t5_channels(model):
    """Channels of the MLPs in another order and of other sizes: ReLU is homogeneous."""
    for stack in (model.encoder, model.decoder):
        for b in stack.block:
            m = b.layer[-1].DenseReluDense
            p = order(m.wi.weight.shape[0])
            s = factors(len(p))
            set_(m.wi.weight, m.wi.weight[p] * s[:, None])
            set_(m.wo.weight, m.wo.weight[:, p] / s)


def mamba_channels(model):
    """The inner channels of the mixers in another order."""
    for b in model.backbone.layers:
        m = b.mixer
        p = order(m.D.shape[0])
        set_(m.in_proj.weight, m.in_proj.weight[torch.cat([p, p + len(p)])])
        for w in (m.conv1d.weight, m.conv1d.bias, m.A_log, m.D, m.dt_proj.weight, m.dt_proj.bias):
            set_(w, w[p])
        for w in (m.x_proj.weight, m.out_proj.weight):
            set_(w, w[:, p])


def nothing(model):
    """What differs is said by the islands."""


def case(arch, rewrite, **more):
    return {"arch": arch, "rewrite": rewrite, "dtype": "f32", **more}


B = {"dtype": "bf16"}
TABLE = {
    "llama_scale_folded": case("llama", scale_folded),
    "qwen2_scale_folded_bf16_decode": case("qwen2", scale_folded, steps=2, **B),
    "qwen3_scale_folded": case("qwen3", scale_folded, keep="norope"),
    "llama_norm_folded": case("llama", norm_folded),
    "mistral_norm_folded_bf16": case("mistral", norm_folded, **B),
    "mixtral_norm_folded_decode": case("mixtral", norm_folded, steps=2),
    "qwen2_last_norm_folded": case("qwen2", last_norm_folded),
    "llama_mlp_channels_bf16": case("llama", mlp_channels, **B),
    "phi3_mlp_channels": case("phi3", mlp_channels),
    "gpt2_mlp_channels": case("gpt2", gpt2_channels),
    "bert_mlp_channels_padded": case("bert", bert_channels, pad=(0, 3)),
    "bert_heads": case("bert", bert_heads),
    "mixtral_experts": case("mixtral", experts),
    "qwen3moe_experts_bf16": case("qwen3moe", experts, **B),
    "qwen2moe_expert_channels": case("qwen2moe", expert_channels),
    "olmoe_topk_order": case("olmoe", topk_order),
    "mixtral_topk_order_bf16_decode": case("mixtral", topk_order, steps=2, **B),
    "llama_grouped_heads": case("llama", grouped_heads),
    "qwen2_grouped_heads_bf16": case("qwen2", grouped_heads, **B),
    "llama_interleaved": case("llama", interleaved, keep="norope"),
    "qwen3_interleaved_bf16_decode": case("qwen3", interleaved, keep="norope", steps=2, **B),
    "llama_v_o_scaled": case("llama", v_o_scaled),
    "starcoder2_v_o_scaled_f16": case("starcoder2", v_o_scaled, dtype="f16"),
    "mistral_q_k_scaled": case("mistral", q_k_scaled),
    "qwen2_up_down_scaled_bf16": case("qwen2", up_down_scaled, **B),
    "granite_embedding_folded": case("granite", embedding_folded),
    "granite_residual_folded": case("granite", residual_folded),
    "t5_channels": case("t5", t5_channels),
    "mamba_channels": case("mamba", mamba_channels),
    "llama_tf32": case("llama", nothing, islands=("tf32",)),
    "gpt2_tf32": case("gpt2", nothing, islands=("tf32",)),
    "bert_tf32": case("bert", nothing, islands=("tf32",)),
}
