"""approximate.py MODEL ADAPTER OUT: a random LoRA for a Llama of 2 layers, and dumps of torch on 24 tokens, each without and with a fault.

The cache and the adapter are written another way than the runner of the reference writes them.
"""

import json
import os
import sys

import goparity
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, DynamicCache

folder, adapter, out = sys.argv[1:]
TOKENS = torch.tensor([[(7 * i + i * i) % 256 for i in range(24)]])
GROUP, MOST, RANK, ALPHA = 32, 15, 8, 32


class Int4(DynamicCache):
    """Keys and values in whole numbers from 0 to 15, with a step and a least number for each group of a head."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def rounded(self, x):
        groups = x.reshape(*x.shape[:3], -1, GROUP // 2 if self.fault == "group" else GROUP)
        low = groups.min(-1).values
        step = (groups.max(-1).values - low) / MOST
        codes = ((groups - low[..., None]) / step[..., None]).round().clamp(0, MOST).to(torch.uint8)
        if self.fault == "scale":  # read as [tokens, heads]
            step = step.transpose(1, 2).reshape(step.shape)
        return (codes * step[..., None] + (-low if self.fault == "zero" else low)[..., None]).reshape(x.shape)

    def update(self, keys, values, layer, *args, **kwargs):
        keys, values = super().update(self.rounded(keys), self.rounded(values), layer, *args, **kwargs)
        return (self.layers[0].keys if self.fault == "layer" else keys), values


def model():
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()


def record(name, model, cache):
    with torch.no_grad(), goparity.record(model, f"{out}/{name}", program=False):
        model(TOKENS, past_key_values=cache, use_cache=True)


def adapted(pairs, fault):
    m = model()
    for name, (a, b) in pairs.items():
        if fault == "layer" and name.endswith("1.self_attn.v_proj"):
            a = pairs[name.replace("layers.1", "layers.0")][0]
        scale = ALPHA if fault == "alpha" else ALPHA / RANK
        if fault == "merged":
            m.get_submodule(name).weight.data += scale * b @ a
        elif fault != "base" and not (fault == "missing" and name.endswith("1.mlp.down_proj")):
            m.get_submodule(name).register_forward_hook(lambda _, args, y, a=a, b=b, scale=scale: y + scale * (args[0] @ a.T @ b.T))
    return m


torch.manual_seed(1)
plain = model()
targets = [n for n, m in plain.named_modules() if n.rsplit(".", 1)[-1] in ("q_proj", "v_proj", "down_proj")]
pairs = {n: (torch.randn(RANK, plain.get_submodule(n).in_features) * 0.05, torch.randn(plain.get_submodule(n).out_features, RANK) * 0.05) for n in targets}
os.makedirs(adapter)
save_file({f"base_model.model.{n}.lora_{k}.weight": t for n, pair in pairs.items() for k, t in zip("AB", pair)}, f"{adapter}/adapter_model.safetensors")
with open(f"{adapter}/adapter_config.json", "w", encoding="utf-8") as f:
    json.dump({"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": ["q_proj", "v_proj", "down_proj"], "bias": "none"}, f)

for fault in ("", "group", "scale", "zero", "layer"):
    record(f"kv-{fault}", plain, Int4(fault))
for fault in ("", "merged", "alpha", "layer", "missing", "base"):
    record(f"lora-{fault}", adapted(pairs, fault), None)
