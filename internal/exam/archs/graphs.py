"""Bugs of graphs that were written by hand: heads of k and v apart, caps and sinks, weights of attention that are recorded, states of
Mamba-2 and RWKV, norms with a gate, positions of larger images, a U-Net, parts in 16 bits."""

import torch

from bugs import A0, A1, NOROPE, Bug, L, attention, on, rotary, setting, weight
from field import DECODE, E1, M1, X, edited, given_back, routed, window
from surgery import at, set_, wrap

F = torch.nn.functional
TABLE = {}  # name: what a case is made of


def bug(name, arch, plant, kind, layer, cause, regex, text, also=(), also_kind=(), **case):
    case = {"dtype": "f32", **case}
    TABLE[name] = {"arch": arch, "bug": Bug(plant, kind, layer, cause, regex, text, also, also_kind), **case}


def wrapped(layer, make):
    return lambda model: wrap(at(model, layer), make)


def seen(n):
    """Keys up to n after the query's own."""
    return lambda s: torch.ones(s.shape[-2:], dtype=torch.bool).tril(s.shape[-1] - s.shape[-2] + n)


ANY = {"also_kind": ("local", "input", "between")}
GQA, CAP, WINDOW = "attention/(gqa|heads)", "config/attn_logit_softcapping|attention/scale", "attention/(mask|causal)|config/sliding"

# Attention.
bug("gemma2_v_tiled", "gemma2", attention(A1, groups="v"), "between", A1, "attention/gqa", GQA, "v is grouped in turn, k is not")
bug("llama_k_tiled", "llama", attention(A1, groups="k"), "between", A1, "attention/gqa", GQA, "k is grouped in turn, v is not", **NOROPE)
bug("gemma2_v_tiled_bf16", "gemma2", attention(A0, groups="v"), "between", A0, "attention/gqa", GQA, "v is grouped in turn, k is not", dtype="bf16", **NOROPE)
bug("qwen3_q_heads_rolled", "qwen3", attention(A1, queries=lambda q: q.roll(1, 1)), "between", A1, "attention/heads", GQA, "each head has the q of another")
bug("gemma2_window_one_short", "gemma2", attention(A0, mask=lambda s: window(s, 5)), "between", A0, "attention/mask", WINDOW, "a window of 5 for 6", **NOROPE)
bug("gemma2_window_one_long", "gemma2", attention(A0, mask=lambda s: window(s, 7)), "between", A0, "attention/mask", WINDOW, "a window of 7 for 6",
    dtype="bf16", **NOROPE)  # fmt: skip
bug("gemma2_cap_other", "gemma2", attention(A1, softcap=6.0), "between", A1, "config/attn_logit_softcapping", CAP, "a cap of 6 for 3")
bug("gptoss_sinks_rolled", "gptoss", attention(A1, sinks=lambda s: s.roll(1)), "between", A1, "attention/anchor-missing", "attention/anchor", "sinks of another head")
bug("gptoss_sinks_zero", "gptoss", attention(A1, sinks=torch.zeros_like), "between", A1, "attention/anchor-missing", "attention/anchor", "sinks are zeros")
bug("gptoss_window_ignored", "gptoss", attention(A0, mask=seen(0)), "between", A0, "attention/mask", WINDOW, "no window", **NOROPE)
bug("bart_keys_late", "bart", attention("model.model.decoder.layers.1.encoder_attn", keys=lambda k, v: (k.roll(1, 2), v)), "between",
    "model.model.decoder.layers.1.encoder_attn", "layout/shifted", "layout/|state/", "keys of the encoder are a place late")  # fmt: skip
bug("clipv_causal", "clipv", attention("model.encoder.layers.0.self_attn", mask=seen(0)), "between", "model.encoder.layers.0.self_attn", "attention/causal",
    "attention/(causal|mask)", "a causal mask for an image")  # fmt: skip
S = "model.transformer.h.1.self_attention"
bug("bloom_no_alibi", "bloom", edited(S, "forward", ("alibi.baddbmm(", "(0 * alibi).baddbmm(")), "between", S, "attention/bias", "attention/bias", "no ALiBi")
bug("bloom_slopes_turned", "bloom", edited(S, "forward", ("alibi.baddbmm(", "alibi.flip(0).baddbmm(")), "between", S, "attention/bias", "attention/bias",
    "the slopes of the heads in turned order")  # fmt: skip
bug("bloom_parts", "bloom", edited(S, "_reshape", ("self.num_heads, 3, self.head_dim)", "3, self.num_heads, self.head_dim).transpose(2, 3)")), "between", S,
    "linear/qkv-order", "linear/qkv|attention/heads", "q, k and v are read as [3, heads, elements]")  # fmt: skip
MPT = "model.transformer.blocks.1.attn"
bug("mpt_no_alibi", "mpt", wrapped(MPT, lambda f: lambda *a, **k: f(*a, **{**k, "position_bias": 0 * k["position_bias"]})), "between", MPT, "attention/bias",
    "attention/bias", "no ALiBi")  # fmt: skip
bug("gpt2_layer_scale", "gpt2", attention("model.transformer.h.1.attn", scale=2.0), "between", "model.transformer.h.1.attn", "attention/scale", "attention/scale",
    "scores are not divided by the number of the layer", config={"scale_attn_by_inverse_layer_idx": True})  # fmt: skip


def half(x, sign=-1):
    a, b = x.chunk(2, -1)
    return torch.cat([sign * b, a], -1)


def turned(of):
    return rotary(lambda q, k, cos, sin, unsqueeze_dim=1: tuple(of(x, cos.unsqueeze(1), sin.unsqueeze(1)) for x in (q, k)))


bug("llama_no_minus", "llama", turned(lambda x, c, s: x * c + half(x, 1) * s), "between", A0, "rope/layout", "rope/", "halves are exchanged without a minus", **NOROPE)
bug("qwen2_no_sines", "qwen2", turned(lambda x, c, s: x * c), "between", A0, "rope/layout", "rope/", "no sines", **NOROPE)
bug("llama_weights_bf16", "llama", attention(A1, weights16=torch.bfloat16), "between", A1, "dtype/downcast", "dtype/downcast", "weights of attention in bfloat16", **NOROPE)
bug("gemma2_v_bf16", "gemma2", attention(A1, v16=torch.bfloat16), "between", A1, "dtype/downcast", "dtype/downcast", "v in bfloat16")
bug("llama_first_slot_zero", "llama", attention(A1, keys=lambda k, v: tuple(torch.cat([0 * x[:, :, :1], x[:, :, 1:]], 2) if k.shape[2] > 14 else x for x in (k, v))),
    "between", A1, "state/stale", "state/stale|attention/", "the first slot is empty in decode", **DECODE)  # fmt: skip
bug("llama_position_stuck", "llama", wrapped("model.model.rotary_emb", lambda f: lambda x, position_ids: f(x, position_ids if x.shape[1] > 1 else 0 * position_ids + 5)),
    "between", A0, "rope/offset", "rope/offset", "all decode steps are at position 5", **DECODE)  # fmt: skip

# Experts.
MOE = {"also_kind": ("local", "between", "input")}
bug("mixtral_no_weights", "mixtral", on(E1, lambda e: e.gate_up_proj.data[2].zero_()), "between", E1, "moe/expert-order", "moe/", "one expert was not loaded",
    also=(f"{E1}.act_fn",), **MOE)  # fmt: skip
bug("mixtral_three_in_turn", "mixtral", on(E1, lambda e: [set_(w, w[torch.tensor([2, 0, 1, 3])]) for w in (e.gate_up_proj, e.down_proj)]), "between", E1,
    "moe/expert-order", "moe/", "three experts in turn", **MOE)  # fmt: skip
bug("qwen3moe_choice_turned", "qwen3moe", on(E1, routed(lambda c, s: (c.flip(-1), s))), "between", E1, "moe/shares", "moe/", "experts in turned order, shares not", **MOE)
bug("qwen2moe_shared_tanh", "qwen2moe", edited(M1, "forward", ("F.sigmoid(self.shared_expert_gate(hidden_states_reshaped))",
    "self.shared_expert_gate(hidden_states_reshaped).tanh()")), "between", M1, "activation/tanh", "moe/|activation/tanh", "tanh for the sigmoid of the shared expert")  # fmt: skip
bug("gptoss_cut_low", "gptoss", on(E1, setting("limit", 0.7)), "local", E1, "value/clipped", "value/clipped|moe/", "the gate is cut at 0.7 for 7", also_kind=("between",))
bug("gptoss_bias_whole", "gptoss", edited(E1, "forward", (" + self.down_proj_bias[expert_idx]\n", "\n"), ("routing_weights[token_idx, top_k_pos, None]",
    "routing_weights[token_idx, top_k_pos, None] + self.down_proj_bias[expert_idx]")), "local", E1, "moe/shares", "moe/", "the last bias without the share", also_kind=("between",))  # fmt: skip
bug("mixtral_input_bf16", "mixtral", edited(E1, "forward", ("hidden_states[token_idx]", "hidden_states[token_idx].bfloat16().float()")), "between", E1,
    "dtype/downcast", "dtype/downcast", "the input of the experts in bfloat16", also=(f"{E1}.act_fn",), **MOE)  # fmt: skip

# States.
NORM2 = {"also": (f"{X}.norm",), "also_kind": ("input", "local")}
ssd = lambda *changes: edited(X, "torch_forward", *changes)  # noqa: E731
bug("mamba2_no_D", "mamba2", on(X, weight(torch.zeros_like, "D")), "between", X, "ssm/skip", "ssm/", "D·x is not added", **NORM2)
bug("mamba2_no_dt_bias", "mamba2", on(X, weight(torch.zeros_like, "dt_bias")), "between", X, "ssm/step", "ssm/", "no dt_bias", **NORM2)
bug("mamba2_decay", "mamba2", ssd(("-torch.exp(self.A_log.float())", "-self.A_log.float()")), "between", X, "ssm/decay", "ssm/", "−A_log for −exp(A_log)", **NORM2)
bug("mamba2_groups", "mamba2", ssd(("B = B.repeat_interleave(self.num_heads // self.n_groups, dim=2, output_size=self.num_heads)",
    "B = B.repeat(1, 1, self.num_heads // self.n_groups, 1)")), "between", X, "ssm/state", "ssm/", "the groups of B in turn", **NORM2)  # fmt: skip
bug("mamba2_gate_behind", "mamba2", wrapped(f"{X}.norm", lambda f: lambda h, z: f(h, None) * F.silu(z)), "local", f"{X}.norm", "ssm/gate", "ssm/gate", "the gate after the norm")
bug("mamba_euler", "mamba", edited(X, "slow_forward", ("torch.exp(A[None, :, None, :] * discrete_time_step[:, :, :, None])",
    "1 + (A[None, :, None, :] * discrete_time_step[:, :, :, None])")), "between", X, "ssm/decay", "ssm/", "1 + Δ·A for exp(Δ·A)")  # fmt: skip
bug("mamba_halves", "mamba", edited(X, "slow_forward", ("hidden_states, gate = projected", "gate, hidden_states = projected")), "input", f"{X}.conv1d",
    "linear/gate-up", "linear/gate-up", "the halves of in_proj are exchanged", also=(X,), also_kind=("between", "local"))  # fmt: skip
bug("mamba_not_causal", "mamba", edited(X, "slow_forward", ("self.act(self.conv1d(hidden_states)[..., :seq_len])  ", "self.act(self.conv1d(hidden_states)[..., 1:seq_len + 1])  ")),
    "input", f"{X}.x_proj", "conv/padding", "conv/", "the convolution looks ahead", also=(X, f"{X}.conv1d"), also_kind=("between", "local"))  # fmt: skip
bug("mamba_state_bf16", "mamba", edited(X, "slow_forward", ("scan_output = torch.matmul(ssm_state.to(dtype)", "ssm_state = ssm_state.bfloat16().float(); scan_output = torch.matmul(ssm_state.to(dtype)")),
    "between", X, "dtype/downcast", "dtype/downcast", "the state in bfloat16")  # fmt: skip
bug("mamba_dt_last", "mamba", edited(X, "slow_forward", ("ssm_parameters, [self", "torch.cat([ssm_parameters[..., 16:], ssm_parameters[..., :16]], -1), [self")),
    "input", f"{X}.dt_proj", "ssm/state", "ssm/", "B, C and dt for dt, B and C", also=(X,), also_kind=("between", "local"))  # fmt: skip
bug("falconmamba_b_raw", "falconmamba", edited(X, "slow_forward", ("B = rms_forward(B", "B = (lambda b, **_: b)(B")), "between", X, "norm/missing", "norm/missing|ssm/", "B is not normed")
R = "model.rwkv.blocks.1.attention"
bug("rwkv_no_first", "rwkv", on(R, weight(torch.zeros_like, "time_first")), "between", R, "ssm/skip", "ssm/", "time_first is left out")
bug("rwkv_decay", "rwkv", on(R, weight(lambda w: -torch.exp(w), "time_decay")), "between", R, "ssm/decay", "ssm/", "the exponential twice")
bug("rwkv_mixed_otherwise", "rwkv", on(R, weight(lambda m: 1 - m, "time_mix_key")), "input", f"{R}.key", "ssm/state", "ssm/", "shares of a token and the one before exchanged",
    also=(R,), also_kind=("between", "local"))  # fmt: skip

# Images.
E = "model.embeddings"


def resized(how):
    return edited(E, "interpolate_pos_encoding", ('mode="bicubic",\n        align_corners=False', how))


for way, how in (("bilinear", 'mode="bilinear"'), ("aligned", 'mode="bicubic", align_corners=True'), ("nearest", 'mode="nearest"')):
    bug(f"dinov2_{way}", "dinov2", resized(how), "between", E, "embedding/position", "embedding/position", f"positions are resized {way}", also_kind=("local",), prepare="larger")
bug("vit_grid_turned", "vit", on(E, weight(lambda p: torch.cat([p[:, :1], p[:, 1:].reshape(1, 3, 3, -1).transpose(1, 2).flatten(1, 2)], 1), "position_embeddings")), "between",
    E, "embedding/position", "embedding/position", "the grid of positions is transposed", also_kind=("local",))  # fmt: skip
SCALE = "model.encoder.layer.1.layer_scale1"
bug("dinov2_no_layer_scale", "dinov2", on(SCALE, given_back), "local", SCALE, "residual/scale", "residual/scale", "a layer scale is left out")
bug("whisper_input_bf16", "whisper", wrapped("model.encoder.conv1", lambda f: lambda x: f(x.bfloat16().float())), "local", "model.encoder.conv1", "dtype/downcast",
    "dtype/downcast", "a convolution of bfloat16")  # fmt: skip
U = "model.mid"
bug("unet_groups", "unet", on(f"{U}.norm1", setting("num_groups", 2)), "local", f"{U}.norm1", "norm/kind", "norm/kind", "2 groups for 4")
bug("unet_group_eps", "unet", on(f"{U}.norm1", setting("eps", 0.1)), "local", f"{U}.norm1", "norm/eps", "norm/eps", "eps 0.1")
bug("unet_no_time", "unet", edited(U, "forward", ("h + t[:, :, None, None]", "h")), "between", U, "residual/missing", "residual/missing", "the time is not added",
    also=(f"{U}.norm2",), **ANY)  # fmt: skip
bug("unet_bilinear", "unet", edited("model", "forward", ('mode="nearest"', 'mode="bilinear"')), "between", "model", "image/resize", "image/resize", "bilinear for nearest",
    also=("model.upsample",), **ANY)  # fmt: skip
bug("unet_sines_first", "unet", edited("model", "times", ("[a.cos(), a.sin()]", "[a.sin(), a.cos()]")), "between", "model", "modulation/order", "modulation/order",
    "sines in front of cosines", also=("model.time_proj",), **ANY)  # fmt: skip
bug("unet_periods", "unet", edited("model", "times", ("log(10000)", "log(1000)")), "between", "model", "rope/theta", "rope/theta", "periods of 1000", also=("model.time_proj",), **ANY)

# Norms.
bug("qwen3_q_norm_whole", "qwen3", wrapped(f"{A1}.q_norm", lambda f: lambda x: f(x) * ((x.square().mean(-1, keepdim=True) + 1e-6) / (x.square().mean((-1, -2), keepdim=True) + 1e-6)).sqrt()),
    "local", f"{A1}.q_norm", "norm/kind", "norm/kind", "q is normed over all heads")  # fmt: skip
bug("gemma3_one_twice", "gemma3", on(f"{L}.1.input_layernorm", weight(lambda w: w + 1)), "local", f"{L}.1.input_layernorm", "norm/weight", "norm/weight", "2 + w for 1 + w")
bug("llama_norm_bf16", "llama", wrapped(f"{L}.1.input_layernorm", lambda f: lambda x: f(x.bfloat16()).float()), "local", f"{L}.1.input_layernorm", "dtype/downcast",
    "dtype/downcast", "a norm in bfloat16")  # fmt: skip
bug("llama_norm_of_another", "llama", lambda m: set_(m.model.layers[1].input_layernorm.weight, m.model.layers[0].input_layernorm.weight), "local", f"{L}.1.input_layernorm",
    "norm/weight", "norm/weight", "the weight of another block")  # fmt: skip
bug("gemma2_logits_cap", "gemma2", lambda m: setattr(m.config, "final_logit_softcapping", 8.0), "between", "model", "config/final_logit_softcapping", "config/final",
    "logits are bent at 8 for 5", also=("model.lm_head",))  # fmt: skip
