"""Attention as engines write it: other kernels after transformers' attention interface, and places to plant faults.

A module's attribute exam is a dict of what its attention does otherwise than the reference:
scale (a factor), mask (a function of the mask and its module), groups ("tile", or "k" or "v" for one alone), heads (a
permutation), queries (a function of q), softcap (False: left out; or the number) and sinks (False, or a function of them), keys
(a function of k and v), weights16 and v16 (a type in which they are kept), out32 (the output stays float32).
"""

import torch
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, s_aux=None, **kwargs):
    """Everything in float32 from q, k and v on; the context is cast to the type of v at the end."""
    do = getattr(module, "exam", {})
    dtype, q, k, v = value.dtype, query.float(), key.float(), value.float()
    if "keys" in do:
        k, v = do["keys"](k, v)
    if k.shape[1] != q.shape[1]:
        n = q.shape[1] // k.shape[1]
        tiled = do.get("groups") or ""
        k, v = (x.repeat(1, n, 1, 1) if tiled in ("tile", name) else x.repeat_interleave(n, 1) for x, name in ((k, "k"), (v, "v")))
    q, v = do.get("queries", lambda q: q)(q), v.to(do.get("v16", v.dtype)).float()
    scores = q @ k.transpose(2, 3) * ((scaling or q.shape[-1] ** -0.5) * do.get("scale", 1))
    softcap = do.get("softcap", softcap)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    bias = kwargs.get("position_bias")
    if bias is not None:
        scores = scores + bias.float()
    mask = attention_mask
    if "mask" in do:
        mask = do["mask"](scores)
    if mask is not None:
        mask = mask[..., : scores.shape[-1]]
        scores = scores.masked_fill(~mask, -1e30) if mask.dtype == torch.bool else scores + mask.float().clamp(min=-1e30)
    sinks = getattr(module, "sinks", s_aux)
    change = do.get("sinks", lambda x: x)
    if sinks is not None and change:
        extra = change(sinks.float()).reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
        weights = torch.cat([scores, extra], -1).softmax(-1)[..., :-1]
    else:
        weights = scores.softmax(-1)
    weights = weights.to(do.get("weights16", weights.dtype)).float()
    out = (weights @ v).transpose(1, 2)
    if "heads" in do:
        out = out[:, :, do["heads"]]
    return out.contiguous().to(torch.float32 if do.get("out32") else dtype), weights if do.get("weights") else None


AttentionInterface.register("exam", attention)
ALL_MASK_ATTENTION_FUNCTIONS.register("exam", eager_mask)


def use(model, kernel):
    """Makes all attention of a model run with a kernel: eager, sdpa or exam."""
    configs = [m.config for m in model.modules() if hasattr(m, "config")]
    for c in configs:
        c._attn_implementation = kernel


def attentions(model):
    """The names of the modules that call the attention interface, in order."""
    names = []
    for name, m in model.named_modules():
        if hasattr(m, "is_causal") and (hasattr(m, "scaling") or hasattr(m, "scale") or hasattr(m, "num_heads")):
            names.append(name)
    return [n for n in names if not any(o != n and o.startswith(n + ".") for o in names)]
