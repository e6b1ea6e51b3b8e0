"""Random weights that make sense: activations neither die nor explode, attention has preferences, nothing is 0 or 1."""

import re

import torch


def randomize(model, seed):
    """Draws all parameters of a model anew. What its own initialisation made ones or zeros stays near them."""
    g = torch.Generator().manual_seed(seed)

    def noise(x):
        return torch.randn(x.shape, generator=g)

    convs = {f"{n}.weight" for n, m in model.named_modules() if type(m).__name__ == "Conv1D"}  # [in, out]
    with torch.no_grad():
        for name, p in model.named_parameters():
            leaf = name.rsplit(".", 1)[-1]
            if leaf in ("A_log", "D", "dt_bias") or "dt_proj.bias" in name:
                p.mul_(1 + 0.1 * noise(p))
            elif re.search(r"(sinks|cls_token|class_embedding|lambda1|layer_scale)", name):
                p.add_(0.3 * noise(p))
            elif "time_mix" in name:
                p.copy_(torch.rand(p.shape, generator=g))
            elif re.search(r"time_(first|decay)", name):
                p.copy_(0.7 * noise(p))
            elif "e_score" in name:
                p.copy_(0.1 * noise(p))
            elif p.dim() == 1:
                near = 1.0 if float(p.float().mean()) > 0.5 else 0.0
                p.copy_(near + 0.15 * noise(p))
            elif re.search(r"(relative_attention_bias|positions?_embed|wpe|embed_positions)", name):
                p.copy_(0.5 * noise(p))
            elif re.search(r"(embed|wte|shared)", name) and not re.search(r"proj|conv", name):
                p.copy_(noise(p) * (0.3 if "model.embed" in name and "gemma" in model.config.model_type else 0.7))
            else:
                fan_in = p[0].numel() if p.dim() != 3 or "conv" in name else p.shape[-1]
                if name in convs or model.config.model_type == "gpt_oss" and p.dim() == 3:
                    fan_in = p.shape[-2]
                p.copy_(noise(p) * gain(name, model.config) / fan_in**0.5)
        for name, b in model.named_buffers():
            if "e_score_correction_bias" in name:
                b.copy_(0.1 * torch.randn(b.shape, generator=g))
    return model


def gain(name, config):
    """Queries and keys are larger, so that attention chooses; so is what the experts are chosen by."""
    if config.model_type == "t5" and name.endswith(".q.weight"):
        return 1.4 * config.d_kv**-0.5  # T5 does not scale its scores
    if re.search(r"(\.q|\.k|q_proj|k_proj|query|key|q_b_proj|q_lin|k_lin)\.weight$", name):
        return 1.4
    if re.search(r"(gate|router)\.weight$", name):
        return 1.5
    return 1.0


def massive(model, seed, factor=60.0):
    """A channel of the residual stream that is large at every token, as in real models: one row of a product."""
    g = torch.Generator().manual_seed(seed + 7)
    with torch.no_grad():
        p = dict(model.named_parameters())
        name = next(n for n in p if re.search(r"\b0\b.*(down_proj|c_proj|o_proj|fc2|dense_4h_to_h)\.weight$", n) and "attn" not in n)
        conv = type(model.get_submodule(name[: -len(".weight")])).__name__ == "Conv1D"  # [in, out]
        w = p[name].T if conv else p[name]
        w[int(torch.randint(0, len(w), (1,), generator=g))] *= factor
    return model


def sink(model, factor=40.0):
    """Makes the first token's embedding large: one row of the stream is massive, and attention goes there."""
    with torch.no_grad():
        model.get_input_embeddings().weight[1] *= factor
    return model


def ties(model, seed):
    """Makes two experts of each layer nearly as good: which one is chosen is decided by rounding."""
    g = torch.Generator().manual_seed(seed + 11)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if re.search(r"(gate|router)\.weight$", name) and p.dim() == 2 and 2 < len(p) < 16:
                p[1] = p[0] + 0.002 * torch.randn(p[0].shape, generator=g)
    return model


def larger(feed, model, seed):
    """Images that are larger than those that the positions of a model were made for."""
    g = torch.Generator().manual_seed(seed + 17)
    size = model.config.image_size + 2 * model.config.patch_size
    feed.steps[0]["pixel_values"] = torch.randn(1, 3, size, size, generator=g)


def final_bias(model, seed):
    """A bias after the head, which is zero in a new model."""
    g = torch.Generator().manual_seed(seed + 13)
    model.final_logits_bias.copy_(0.3 * torch.randn(model.final_logits_bias.shape, generator=g))
    return model


def numbers(w, size=32):
    """The whole numbers, scales and zero points of a weight in 4 bits, by groups of inputs."""
    g = w.reshape(len(w), -1, size)
    low, high = g.amin(-1, keepdim=True).clamp(max=0), g.amax(-1, keepdim=True).clamp(min=0)
    scale = (high - low) / 15
    zero = (-low / scale).round()
    return (g / scale + zero).round().clamp(0, 15), scale, zero


def weight_of(q, scale, zero):
    return (scale * (q - zero)).flatten(1)


def q4(model, seed):
    """One weight is as 4 bits leave it."""
    with torch.no_grad():
        w = model.model.layers[1].mlp.down_proj.weight
        w.copy_(weight_of(*numbers(w)))
    return model


def cast(model, dtype):
    """Casts as from_pretrained(dtype=...) does: tables of frequencies and what the model class wants in float32 stay."""
    kept = set(model._keep_in_fp32_modules_strict or [])
    if dtype == torch.float16:
        kept |= set(model._keep_in_fp32_modules or [])
    wide = re.compile(r"(^|\.)(" + "|".join([*map(re.escape, kept), r"\w*inv_freq"]) + r")(\.|$)")
    for name, module in model.named_modules():
        for own in (module._parameters, module._buffers):
            for leaf, t in own.items():
                if t is not None and t.is_floating_point() and not wide.search(f"{name}.{leaf}"):
                    t.data = t.data.to(dtype)
    return model
