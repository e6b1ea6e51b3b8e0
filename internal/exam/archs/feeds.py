"""What a model is asked: tokens, images or sound, padding, and the tokens of later steps."""

import dataclasses

import torch


class Inputs(dict):
    def to(self, dtype):
        return {k: v.to(dtype) if v.is_floating_point() else v for k, v in self.items()}


@dataclasses.dataclass
class Feed:
    steps: list  # of Inputs: keywords of forward
    settings: dict
    cache_name: str = "past_key_values"
    pad_mask: list | None = None  # of the first step


def feed(arch, model, seed, steps=1, pad=(), batch=1):
    """Inputs of a case. pad is the number of padding tokens of each sequence: on the left where tokens follow."""
    g = torch.Generator().manual_seed(seed + 1000)
    seq = int(torch.randint(9, 15, (1,), generator=g))
    batch = max(batch, len(pad))

    def tokens(n, first=1):
        ids = torch.randint(4, 128, (batch, n), generator=g)
        ids[:, 0] = first
        return ids

    if arch.kind == "vision":
        size = model.config.image_size
        return Feed([Inputs(pixel_values=torch.randn(batch, 3, size, size, generator=g))], {})
    if arch.kind == "diffusion":
        times = torch.randint(1, 1000, (2,), generator=g)
        return Feed([Inputs(sample=torch.randn(2, 4, 8, 8, generator=g), timestep=times)], {})
    if arch.kind == "audio":
        x = torch.randn(batch, model.config.num_mel_bins, 2 * model.config.max_source_positions, generator=g)
        return Feed([Inputs(input_features=x, decoder_input_ids=tokens(seq))], {"use_cache": False})
    if arch.kind == "mrope":  # four tokens of text, an image of 2 × 3 patches, text
        image = torch.tensor([[4, 4 + i // 3, 4 + i % 3] for i in range(6)]).T
        text = [torch.arange(a, b).expand(3, -1) for a, b in ((0, 4), (7, seq))]
        where = torch.cat([text[0], image, text[1]], 1)[:, None].expand(-1, batch, -1).contiguous()
        return Feed([Inputs(input_ids=tokens(where.shape[-1]), position_ids=where)], {"use_cache": False})
    mask = torch.ones(batch, seq, dtype=torch.long)
    for row, n in enumerate(pad):
        mask[row, : n if arch.kind == "causal" else 0] = 0
        if arch.kind != "causal":
            mask[row, seq - n :] = 0
    ids = tokens(seq) * mask + (1 - mask) * (model.config.pad_token_id or 0)
    if arch.kind == "encoder":
        x = Inputs(input_ids=ids, attention_mask=mask)
        if getattr(model.config, "type_vocab_size", 0) > 1:
            x["token_type_ids"] = (torch.arange(seq) >= seq // 2).long().expand(batch, -1).contiguous()
        return Feed([x], {}, pad_mask=mask.tolist() if pad else None)
    if arch.kind == "seq2seq":
        x = Inputs(input_ids=ids, attention_mask=mask, decoder_input_ids=tokens(seq - 3))
        return Feed([x], {"use_cache": False}, pad_mask=mask.tolist() if pad else None)
    return causal(model, ids, mask, steps, bool(pad), g)


def causal(model, ids, mask, steps, padded, g):
    ssm = "mamba" in model.config.model_type
    name = "cache_params" if ssm else "state" if model.config.model_type == "rwkv" else "past_key_values"
    out, n = [], ids.shape[1]
    for i in range(steps):
        x = Inputs(input_ids=ids if i == 0 else torch.randint(4, 128, (len(ids), 1), generator=g))
        if padded and i:
            mask = torch.cat([mask, mask.new_ones(len(ids), 1)], 1)
        if padded:
            x["attention_mask"] = mask
        if padded and not ssm and model.config.model_type not in ("bloom", "opt"):
            x["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -x["input_ids"].shape[1] :]
        out.append(x)
    first = out[0].get("attention_mask")
    return Feed(out, {"use_cache": steps > 1}, name, first.tolist() if padded else None)
