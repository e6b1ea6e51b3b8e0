"""Bugs of the field, in float32: experts, caches, cross attention, rotary variants, convolutions, states, things left out."""

import torch

from bugs import A0, A1, NOROPE, Bug, L, activation, attention, every_attention, everything, on, setting, weight
from surgery import at, edit, set_, wrap
from weights import numbers, weight_of

TABLE = {}  # name: what a case is made of


def bug(name, arch, plant, kind, layer, cause, regex, text, also=(), also_kind=(), second=None, **case):
    case = {"dtype": "f32", **case}
    TABLE[name] = {"arch": arch, "bug": Bug(plant, kind, layer, cause, regex, text, also, also_kind, second), **case}


def edited(layer, method, *changes):
    return lambda model: edit(at(model, layer), method, *changes)


def routed(change):
    """What experts are given: x, the numbers of the chosen ones, their shares."""
    return lambda m: wrap(m, lambda f: lambda x, chosen, shares: f(x, *change(chosen, shares)))


def moved(*order, leaves=("gate_up_proj", "down_proj")):
    def change(e):
        for leaf in leaves:
            w = getattr(e, leaf)
            set_(w, w[torch.tensor([*order, *range(len(order), len(w))])])

    return change


def skip_block(model):
    b = at(model, f"{L}.1")
    b.forward = lambda hidden_states, **_: hidden_states


def given_back(m):
    m.forward = lambda x, *_: x


M1 = f"{L}.1.mlp"
E1 = f"{M1}.experts"
MOE = {"also_kind": ("local", "between")}

# Experts.
bug("mixtral_one_expert", "mixtral", on(E1, routed(lambda c, s: (c[:, :1], s[:, :1]))), "between", E1, "moe/k", "moe/", "one of two chosen experts", also=(f"{E1}.act_fn",), **MOE)
bug("olmoe_shares_left_out", "olmoe", on(E1, routed(lambda c, s: (c, torch.ones_like(s)))), "between", E1, "moe/shares", "moe/", "all shares are 1", **MOE)
bug("qwen3moe_shares_turned", "qwen3moe", on(E1, routed(lambda c, s: (c, s.flip(-1)))), "between", E1, "moe/shares", "moe/", "shares in turned order", **MOE)
bug("qwen3moe_experts_rolled", "qwen3moe", on(E1, moved(1, 2, 3, 4, 5, 0)), "between", E1, "moe/expert-order", "moe/", "each has the next one's weights", **MOE)
bug("deepseek3_down_exchanged", "deepseek3", on(E1, moved(0, 2, 1, leaves=("down_proj",))), "between", E1, "moe/expert-order", "moe/|linear/",
    "experts 1 and 2 have each other's last product", **MOE)  # fmt: skip
bug("qwen2moe_renorm_left_out", "qwen2moe", on(f"{M1}.gate", setting("norm_topk_prob", False)), "local", f"{M1}.gate", "moe/renorm", "moe/", "not divided")
bug("olmoe_renorm", "olmoe", on(f"{M1}.gate", setting("norm_topk_prob", True)), "local", f"{M1}.gate", "moe/renorm", "moe/", "divided by their sum")
bug("deepseek3_no_scaling", "deepseek3", on(M1, setting("routed_scaling_factor", 1.0)), "between", M1, "moe/scaling", "moe/|value/scale",
    "routed_scaling_factor is not read", also=(E1,), **MOE)  # fmt: skip
bug("deepseek2_no_scaling", "deepseek2", on(M1, setting("routed_scaling_factor", 1.0)), "between", M1, "moe/scaling", "moe/|value/scale",
    "routed_scaling_factor is not read", also=(E1,), **MOE)  # fmt: skip
bug("deepseek3_no_renorm", "deepseek3", on(M1, setting("norm_topk_prob", False)), "between", M1, "moe/renorm", "moe/", "not divided by their sum",
    also=(E1,), **MOE)  # fmt: skip
bug("deepseek3_softmax", "deepseek3", edited(M1, "route_tokens_to_experts", ("router_logits.sigmoid()", "router_logits.softmax(-1)")), "between", M1,
    "moe/scores", "moe/", "softmax for sigmoid", also=(E1,), **MOE)  # fmt: skip
bug("deepseek3_biased_shares", "deepseek3", edited(M1, "route_tokens_to_experts", ("router_logits.gather", "router_logits_for_choice.gather")), "between", M1,
    "moe/bias", "moe/", "the bias of the choice is in the shares", also=(E1,), **MOE)  # fmt: skip
bug("deepseek3_bias_ignored", "deepseek3", edited(M1, "route_tokens_to_experts", ("router_logits + self.gate.e_score_correction_bias", "router_logits")), "between",
    M1, "moe/bias", "moe/", "the bias of the choice is left out", also=(E1,), config={"n_routed_experts": 16, "n_group": 4, "topk_group": 2}, **MOE)  # fmt: skip
bug("deepseek3_groups_ignored", "deepseek3", edited(M1, "route_tokens_to_experts", ("scores_for_choice = router_logits_for_choice.masked_fill(~score_mask.bool(), float(\"-inf\"))",
    "scores_for_choice = router_logits_for_choice")), "between", M1, "moe/groups", "moe/", "experts of all groups", also=(E1,), **MOE)  # fmt: skip
bug("deepseek3_no_shared", "deepseek3", edited(M1, "forward", ("hidden_states + self.shared_experts(residuals)", "hidden_states + 0 * self.shared_experts(residuals)")),
    "between", M1, "moe/shared", "moe/|residual/missing", "the shared expert is not added", **MOE)  # fmt: skip
bug("qwen2moe_shared_ungated", "qwen2moe", edited(M1, "forward", ("F.sigmoid(self.shared_expert_gate(hidden_states_reshaped))", "(1 + 0 * self.shared_expert_gate(hidden_states_reshaped))")),
    "between", M1, "modulation/missing", "moe/|residual/|modulation/", "the shared expert has no gate", **MOE)  # fmt: skip
bug("mixtral_gelu", "mixtral", on(f"{E1}.act_fn", activation(torch.nn.functional.gelu)), "local", f"{E1}.act_fn", "activation/gelu", "activation/gelu", "GELU for SiLU")
bug("gptoss_no_one", "gptoss", edited(E1, "_apply_gate", ("(up + 1)", "up")), "local", E1, "activation/missing", "activation/|linear/gate-up|moe/|modulation/",
    "the 1 + of the gate is left out", also_kind=("between",))  # fmt: skip
bug("gptoss_halves", "gptoss", edited(E1, "_apply_gate", ("gate_up[..., ::2], gate_up[..., 1::2]", "gate_up.chunk(2, -1)")), "local", E1, "linear/gate-up",
    "linear/gate-up|moe/", "halves for every second column", also_kind=("between",))  # fmt: skip
bug("gptoss_no_down_bias", "gptoss", on(E1, weight(torch.zeros_like, "down_proj_bias")), "local", E1, "linear/bias-missing", "linear/bias-missing|moe/",
    "the experts' last bias is left out", also_kind=("between",))  # fmt: skip

bug("gptoss_one_expert", "gptoss", on(E1, lambda m: wrap(m, lambda f: lambda x, c, s: f(x, c[:, :1], s[:, :1]))), "local", E1, "moe/k", "moe/",
    "one of two chosen experts", also_kind=("between",))  # fmt: skip

# Attention: cross, latent, bias by distance, of a batch, of decode steps.
DEC = "model.decoder.block.0.layer.0.SelfAttention"


def bias_at(layer, new):
    return edited(layer, "compute_bias", ("values = self.relative_attention_bias(relative_position_bucket)", new))


bug("t5_no_bias", "t5", bias_at(DEC, "values = 0 * self.relative_attention_bias(relative_position_bucket)"), "between", DEC, "attention/bias",
    "attention/(bias|mask)", "no bias by distance", **NOROPE)  # fmt: skip
bug("t5_both_ways", "t5", edited(DEC, "compute_bias", ("bidirectional=(not self.is_decoder)", "bidirectional=True")), "between", DEC, "attention/bias",
    "attention/(bias|mask)|embedding/|input/", "buckets of an encoder", also=(f"{DEC}.relative_attention_bias",), also_kind=("input", "local"))  # fmt: skip
bug("bart_cross_scale", "bart", attention("model.model.decoder.layers.1.encoder_attn", scale=4.0), "between", "model.model.decoder.layers.1.encoder_attn",
    "attention/scale", "attention/scale", "no scale in cross attention")  # fmt: skip
bug("whisper_cross_causal", "whisper", attention("model.decoder.layers.1.encoder_attn", mask=lambda s: torch.ones(s.shape[-2:], dtype=torch.bool).tril()),
    "between", "model.decoder.layers.1.encoder_attn", "attention/causal", "attention/(causal|mask)", "cross attention sees what it should not")  # fmt: skip
bug("bart_cross_padding", "bart", attention("model.model.decoder.layers.0.encoder_attn", mask=everything), "between", "model.model.decoder.layers.0.encoder_attn",
    "attention/mask", "attention/mask", "cross attention sees the padding", pad=(0, 4))  # fmt: skip
bug("deepseek3_scale", "deepseek3", attention(A1, scale=24**0.5 / 16**0.5), "between", A1, "attention/scale", "attention/scale", "1/√nope for 1/√(nope + rope)")
bug("deepseek3_rope_first", "deepseek3", edited(A1, "forward", ("q_pass, q_rot = torch.split(q_states, [self.qk_nope_head_dim, self.qk_rope_head_dim], dim=-1)",
    "q_rot, q_pass = torch.split(q_states, [self.qk_rope_head_dim, self.qk_nope_head_dim], dim=-1)")), "between", A1, "rope/applied", "rope/|attention/heads",
    "the first columns of q are rotated", **NOROPE)  # fmt: skip
bug("deepseek3_halves", "deepseek3", edited(A1, "forward", ("if self.config.rope_interleave:", "if False:")), "between", A1, "rope/layout", "rope/layout",
    "halves for pairs", **NOROPE)  # fmt: skip
bug("deepseek3_no_rope", "deepseek3", edited(A1, "forward", ("q_rot, k_rot = apply_rotary_pos_emb_interleave(q_rot, k_rot, cos, sin)", "pass")), "between", A1,
    "rope/applied", "rope/applied", "neither is rotated", **NOROPE)  # fmt: skip
bug("qwen3_values_of_another", "qwen3", attention(A1, keys=lambda k, v: (k, v.roll(1, 0))), "between", A1, "state/sequence", "state/|attention/batch",
    "values of the sequence before", batch=3, **NOROPE)  # fmt: skip
bug("llama_first_sequence", "llama", attention(A1, keys=lambda k, v: (k[:1].expand_as(k), v[:1].expand_as(v))), "between", A1, "state/sequence",
    "state/|attention/batch", "all read the first sequence", batch=2)  # fmt: skip

def decoding(change):
    """In decode steps only."""
    return lambda k, v: change(k, v) if DECODES(k) else (k, v)


def DECODES(k):
    return k.shape[2] > 14


def zero_slot(k, v):
    k, v = k.clone(), v.clone()
    k[:, :, -1], v[:, :, -1] = 0, 0
    return k, v


def shifted(k, v):
    """Earlier slots are a place late."""
    def late(x):
        return torch.cat([x[:, :, :1], x[:, :, :-2], x[:, :, -1:]], 2)
    return late(k), late(v)


def one_query(change):
    return lambda scores: change(scores) if scores.shape[-2] == 1 else torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])


def without_own(scores):
    m = torch.ones(1, scores.shape[-1], dtype=torch.bool)
    m[:, -1] = False
    return m


def without_last(scores):
    m = torch.ones(1, scores.shape[-1], dtype=torch.bool)
    m[:, -2] = False
    return m


def at_zero(model):
    wrap(model.model.rotary_emb, lambda f: lambda x, position_ids: f(x, position_ids * (x.shape[1] != 1)))


def late_by_two(model):
    wrap(model.model.rotary_emb, lambda f: lambda x, position_ids: f(x, position_ids - 2 * (x.shape[1] == 1)))


def window(scores, n):
    q, k = scores.shape[-2:]
    m = torch.ones(q, k, dtype=torch.bool).tril(k - q)
    return m & ~m.tril(k - q - n)


DECODE = {"steps": 3, **NOROPE}
SLOT = "state/stale|layout/shifted|attention/"
bug("llama_decode_own_zero", "llama", attention(A1, keys=decoding(zero_slot)), "between", A1, "state/stale", SLOT, "the newest slot is empty", **DECODE)
bug("qwen2_decode_slots_late", "qwen2", attention(A1, keys=decoding(shifted)), "between", A1, "state/stale", SLOT, "earlier slots are a place late", **DECODE)
bug("qwen3_decode_own_unseen", "qwen3", every_attention(mask=one_query(without_own)), "between", A0, "attention/mask", "attention/|state/",
    "the token of a step does not see itself", **DECODE)  # fmt: skip
bug("llama_decode_one_short", "llama", every_attention(mask=one_query(without_last)), "between", A0, "attention/mask", "attention/|state/",
    "the last slot before is not seen", **DECODE)  # fmt: skip
bug("llama_decode_from_zero", "llama", at_zero, "between", A0, "rope/offset", "rope/offset", "positions begin at 0 in decode", **DECODE)
bug("qwen2_decode_two_early", "qwen2", late_by_two, "between", A0, "rope/offset", "rope/offset", "positions are two too small in decode", **DECODE)
bug("qwen3_decode_sees_padding", "qwen3", every_attention(mask=one_query(everything)), "between", A0, "attention/mask", "attention/mask|input/mask",
    "decode steps see the padding", pad=(0, 3), also_kind=("input",), **DECODE)  # fmt: skip

# Rotary variants.
ROPE = {"rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}


def frequencies(of):
    def plant(model):
        r = model.model.rotary_emb
        r.inv_freq = of(r.inv_freq)
        r.original_inv_freq = r.inv_freq

    return plant


def plain(f):
    n = len(f)
    return 10000.0 ** -(torch.arange(n).float() / n)


def llama3(f, factor, low=1.0, high=4.0, original=32):
    share = ((original * f / (2 * torch.pi) - low) / (high - low)).clamp(0, 1)
    return (1 - share) * f / factor + share * f


def sized(size):
    return lambda model: setattr(model.model.rotary_emb, "attention_scaling", size)


SCALING = "rope/(theta|scaling)|config/rope"
bug("llama_yarn_left_out", "llama", frequencies(plain), "between", A0, "config/rope_scaling", SCALING, "YaRN's frequencies are left out",
    config={"rope_parameters": {"rope_type": "yarn", **ROPE, "original_max_position_embeddings": 16}}, **NOROPE)  # fmt: skip
bug("qwen3_yarn_linear", "qwen3", frequencies(lambda f: plain(f) / 4), "between", A0, "rope/scaling", SCALING, "linear scaling for YaRN",
    config={"rope_parameters": {"rope_type": "yarn", **ROPE, "original_max_position_embeddings": 16}}, **NOROPE)  # fmt: skip
bug("llama_yarn_mscale", "llama", sized(1.0), "between", A0, "rope/scaling", "rope/|attention/scale|config/rope", "YaRN's factor is left out",
    config={"rope_parameters": {"rope_type": "yarn", **ROPE, "original_max_position_embeddings": 16}}, **NOROPE)  # fmt: skip
bug("llama_linear_left_out", "llama", frequencies(plain), "between", A0, "config/rope_scaling", SCALING, "linear scaling is left out",
    config={"rope_parameters": {"rope_type": "linear", **ROPE}}, **NOROPE)  # fmt: skip
bug("qwen2_llama3_factor", "qwen2", frequencies(lambda f: llama3(plain(f), 4.0)), "between", A0, "rope/scaling", SCALING, "factor 4 for 8",
    config={"rope_parameters": {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 32}}, **NOROPE)  # fmt: skip
bug("phi3_longrope_short", "phi3", frequencies(lambda f: plain(f) / 1.5), "between", A0, "rope/scaling", SCALING, "the long factors for the short ones",
    config={"rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0, "short_factor": [1.0] * 4 + [1.2] * 4, "long_factor": [1.5] * 8,
                                "original_max_position_embeddings": 64}, "original_max_position_embeddings": 64}, **NOROPE)  # fmt: skip


def sections(sizes):
    def plant(model):
        for layer in model.layers:
            layer.self_attn.config = copy_of(layer.self_attn.config, sizes)

    return plant


def copy_of(config, sizes):
    import copy

    c = copy.deepcopy(config)
    c.rope_parameters["mrope_section"] = sizes
    c._attn_implementation = "eager"
    return c


bug("qwen2vl_sections", "qwen2vl", sections([4, 2, 2]), "between", "model.layers.0.self_attn", "rope/sections", "rope/", "sections 4, 2, 2 for 2, 3, 3", **NOROPE)
bug("qwen2vl_time_only", "qwen2vl", lambda m: wrap(m.rotary_emb, lambda f: lambda x, p: f(x, p[:1].expand(3, -1, -1))), "between", "model.layers.0.self_attn",
    "rope/sections", "rope/", "the positions of time for all", **NOROPE)  # fmt: skip

# Convolutions, images, states.
bug("whisper_conv_flipped", "whisper", on("model.encoder.conv1", weight(lambda w: w.flip(-1))), "local", "model.encoder.conv1", "conv/flipped", "conv/|layout/",
    "the kernel is reversed")  # fmt: skip
bug("whisper_conv_bias", "whisper", on("model.encoder.conv2", weight(torch.zeros_like, "bias")), "local", "model.encoder.conv2", "linear/bias-missing",
    "linear/bias-missing|conv/", "the bias is left out")  # fmt: skip
bug("whisper_conv_causal", "whisper", on("model.encoder.conv1", lambda m: wrap(m, lambda f: lambda x: f(torch.nn.functional.pad(x, (1, 0))[..., :-1]))), "local",
    "model.encoder.conv1", "conv/padding", "conv/|layout/shifted", "the padding is on the left alone")  # fmt: skip
bug("vit_patches_bgr", "vit", on("model.embeddings.patch_embeddings.projection", weight(lambda w: w.flip(1))), "local",
    "model.embeddings.patch_embeddings.projection", "image/channels", "image/|conv/|layout/", "channels in turned order")  # fmt: skip
bug("clip_kernel_turned", "clipv", on("model.embeddings.patch_embedding", weight(lambda w: w.transpose(2, 3).clone())), "local",
    "model.embeddings.patch_embedding", "conv/layout", "conv/|image/|layout/", "height and width exchanged")  # fmt: skip
bug("dinov2_no_patch_bias", "dinov2", on("model.embeddings.patch_embeddings.projection", weight(torch.zeros_like, "bias")), "local",
    "model.embeddings.patch_embeddings.projection", "linear/bias-missing", "linear/bias|conv/", "no bias")  # fmt: skip
bug("vit_no_positions", "vit", on("model.embeddings", weight(torch.zeros_like, "position_embeddings")), "between", "model.embeddings", "embedding/position",
    "embedding/position", "positions are not added", also_kind=("local",))  # fmt: skip
bug("vit_no_class_token", "vit", on("model.embeddings", weight(torch.zeros_like, "cls_token")), "between", "model.embeddings", "image/class-token",
    "image/|embedding/|rows/", "the class token is zero", also_kind=("local",))  # fmt: skip
PIXELS = "model.embeddings.patch_embeddings"
WHERE = {"also": ("model.embeddings", PIXELS, f"{PIXELS}.projection"), "also_kind": ("local", "between")}


def pixels(change):
    return lambda inputs: {**inputs, "pixel_values": change(inputs["pixel_values"])}


def nothing(model):
    """The model is right."""


bug("vit_not_normalised", "vit", nothing, "input", "model", "image/normalise", "image/", "another mean and deviation",
    ask=pixels(lambda x: x * torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1) + torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)), **WHERE)  # fmt: skip
bug("dinov2_bgr", "dinov2", nothing, "input", "model", "image/channels", "image/|layout/", "blue first", ask=pixels(lambda x: x.flip(1)), **WHERE)
bug("siglip_turned", "siglip", nothing, "input", "model", "image/layout", "image/|layout/", "height and width exchanged",
    ask=pixels(lambda x: x.transpose(2, 3).contiguous()), also=("model.embeddings", "model.embeddings.patch_embedding"), also_kind=("local", "between"))  # fmt: skip
X = "model.backbone.layers.1.mixer"
slow = lambda *changes: edited(X, "slow_forward", *changes)  # noqa: E731
bug("mamba_no_softplus", "mamba", slow(("nn.functional.softplus(discrete_time_step)", "discrete_time_step.sigmoid()")), "between", X, "ssm/step", "ssm/", "sigmoid for softplus")  # fmt: skip
bug("mamba_no_exp", "mamba", slow(("-torch.exp(self.A_log.float())", "-self.A_log.float()")),
    "between", X, "ssm/decay", "ssm/", "−A_log for −exp(A_log)")  # fmt: skip
bug("mamba_gate_raw", "mamba", slow(("self.act(gate)", "(self.act(gate) * 0 + gate)")), "between", X, "ssm/gate", "ssm/|activation/", "the gate has no activation")
bug("mamba_bc_exchanged", "mamba", slow(("time_step, B, C = torch.split(", "time_step, C, B = torch.split(")), "between", X, "ssm/state", "ssm/", "B and C exchanged")
bug("mamba_skip_twice", "mamba", on(X, weight(lambda d: 2 * d, "D")), "between", X, "ssm/skip", "ssm/|residual/", "D·x twice")
bug("mamba_dt_bias", "mamba", on(f"{X}.dt_proj", weight(torch.zeros_like, "bias")), "local", f"{X}.dt_proj", "linear/bias-missing", "linear/bias|ssm/", "dt has no bias")

# Left out.
bug("llama_block_skipped", "llama", skip_block, "local", f"{L}.1", "residual/missing", "residual/|config/num_hidden_layers|value/", "a block gives back its input",
    layers=3, also_kind=("between",), also=(f"{L}.2", f"{L}.2.input_layernorm"))  # fmt: skip
bug("qwen2_norm_skipped", "qwen2", on(f"{L}.1.input_layernorm", given_back), "local", f"{L}.1.input_layernorm", "norm/missing", "norm/missing", "a norm is left out")
bug("gemma2_post_norm_skipped", "gemma2", on(f"{L}.1.post_feedforward_layernorm", given_back), "local", f"{L}.1.post_feedforward_layernorm", "norm/missing",
    "norm/missing", "a norm is left out")  # fmt: skip
bug("bart_no_final_bias", "bart", lambda m: set_(m.final_logits_bias, torch.zeros_like(m.final_logits_bias)), "between", "model", "linear/bias-missing",
    "linear/bias-missing", "final_logits_bias is left out", also_kind=("local",), also=("model.lm_head",), prepare="final_bias")  # fmt: skip
bug("llama_attention_not_added", "llama", edited(f"{L}.1", "forward", ("hidden_states = residual + hidden_states\n\n    # Fully", "hidden_states = residual + 0 * hidden_states\n\n    # Fully")),
    "input", f"{L}.1.post_attention_layernorm", "residual/missing", "residual/missing", "attention is not added", also=(f"{L}.1",), also_kind=("between", "local"))  # fmt: skip


# Weights of 4 bits.
Q4, DOWN = {"prepare": "q4"}, f"{L}.1.mlp.down_proj"


def requantised(change):
    return lambda m: set_(m.weight, weight_of(*change(*numbers(m.weight))))


def turned_scales(q, s, z):
    return q, *(x.flatten().reshape(x.shape[1], x.shape[0]).T[..., None] for x in (s, z))


def packed(q, s, z):
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    return q.reshape(len(q) // 8, 8, *q.shape[1:])[:, order].reshape(q.shape), s, z


bug("llama_zero_point", "llama", on(DOWN, requantised(lambda q, s, z: (q, s, z + 1))), "local", DOWN, "quant/zero-point", "quant/", "zero points off by one", **Q4)
bug("qwen3_scales_turned", "qwen3", on(DOWN, requantised(turned_scales)), "local", DOWN, "quant/group", "quant/", "scales read along the other axis", **Q4)
bug("mistral_awq_order", "mistral", on(DOWN, requantised(packed)), "local", DOWN, "quant/order", "quant/|layout/", "AWQ's order along the outputs", **Q4)


# Parts in 16 bits, and what is left.
def softmax16(dtype):
    def plant(model):
        m = at(model, A1)

        def run(module, q, k, v, mask, scaling, dropout=0.0, **_):
            n = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
            w = (q @ k.transpose(2, 3) * scaling + mask).to(dtype).softmax(-1).float()
            return (w @ v).transpose(1, 2).contiguous(), w

        edit(m, "forward", ("attention_interface: Callable = ", "attention_interface = self.run or "))
        m.run = run

    return plant


def rounded_tables(model):
    wrap(model.model.rotary_emb, lambda f: lambda *a, **k: tuple(t.bfloat16().float() for t in f(*a, **k)))


bug("llama_softmax_bf16", "llama", softmax16(torch.bfloat16), "between", A1, "dtype/downcast", "dtype/downcast", "the softmax in bfloat16", **NOROPE)
bug("qwen3_softmax_f16", "qwen3", softmax16(torch.float16), "between", A1, "dtype/downcast", "dtype/downcast", "the softmax in float16", **NOROPE)
bug("qwen2_rope_bf16", "qwen2", rounded_tables, "between", A0, "dtype/downcast", "dtype/downcast|rope/", "cosines and sines in bfloat16", **NOROPE)
bug("neox_one_after_the_other", "neox", on("model.gpt_neox.layers.1", setting("use_parallel_residual", False)), "input",
    "model.gpt_neox.layers.1.post_attention_layernorm", "residual/source", "residual/|norm/order", "MLP after attention, and not beside it",
    also=("model.gpt_neox.layers.1",), also_kind=("between", "local"))  # fmt: skip
bug("bart_offset", "bart", on("model.model.encoder.embed_positions", setting("offset", 0)), "local", "model.model.encoder.embed_positions", "embedding/position",
    "embedding/position", "positions from row 0")  # fmt: skip
bug("t5_scaled", "t5", on(DEC, lambda m: wrap(m.q, lambda f: lambda x: f(x) * 0.25)), "local", f"{DEC}.q", "value/scale", "value/scale|attention/scale|linear/", "scores are scaled")
bug("gptoss_silu", "gptoss", on(E1, setting("alpha", 1.0)), "local", E1, "activation/silu", "activation/|moe/", "silu in the gate", also_kind=("between",))
bug("gemma2_window_short", "gemma2", lambda m: every_attention(mask=lambda s: window(s, 5))(m), "between", A0, "attention/mask", "attention/mask|attention/causal",
    "windows of 5 for 6 in every layer")  # fmt: skip
bug("whisper_no_positions", "whisper", on("model.encoder.embed_positions", weight(torch.zeros_like)), "local", "model.encoder.embed_positions", "embedding/position",
    "embedding/|value/constant", "positions are zeros", also=("model.encoder", "model.encoder.layers.0"), also_kind=("between", "input"))  # fmt: skip
bug("clip_no_pre_norm", "clipv", on("model.pre_layrnorm", given_back), "local", "model.pre_layrnorm", "norm/missing", "norm/missing", "the first norm is left out")
