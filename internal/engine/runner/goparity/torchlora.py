"""A LoRA adapter at run time: W·x + s·B·(A·x), as engines do that serve one model with several adapters."""

import json
import math
import os
import re

import torch

from . import safetensors
from .errors import ModelError

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
_NAME = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])\.weight")
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# Settings of peft that change more than products: they must be absent, or as here.
_PLAIN = {"peft_type": "LORA", "use_dora": False, "bias": "none", "modules_to_save": None, "lora_bias": False, "trainable_token_indices": None}


def install(model, folder):
    """Adds the adapter of a folder, as peft writes it, to a model's products. They record what they put out with it."""
    try:
        with open(os.path.join(folder, CONFIG), encoding="utf-8") as f:
            config = json.load(f)
        tensors = safetensors.read(os.path.join(folder, TENSORS))
    except (OSError, ValueError) as e:
        raise ModelError(f"adapter {folder}: {e}", f"it has {CONFIG} and {TENSORS}, as peft writes them") from e
    for key, plain in _PLAIN.items():
        if config.get(key, plain) not in (plain, None):
            raise ModelError(f"adapter {folder}: {CONFIG} has {key}: {config[key]!r}", "only LoRA of products is added at run time")
    if "lora_alpha" not in config:
        raise ModelError(f"adapter {folder}: {CONFIG} has no lora_alpha")
    modules, pairs = dict(model.named_modules()), {}
    for name, (dtype, shape, data) in tensors.items():
        match = _NAME.fullmatch(name)
        if not match or match[1] not in modules or len(shape) != 2:
            raise ModelError(f"adapter {folder}: {name} belongs to no product of {type(model).__name__}", "is it an adapter of another model?")
        pairs.setdefault(match[1], {})[match[2]] = torch.frombuffer(bytearray(data), dtype=_DTYPES[dtype]).reshape(shape)
    for name, pair in pairs.items():
        if len(pair) != 2:
            raise ModelError(f"adapter {folder}: {name} has lora_{min(pair)} alone")
        like = next(modules[name].parameters())
        a, b = (pair[k].to(like) for k in "AB")
        modules[name].forward = _adapted(modules[name].forward, a, b, _scale(config, name, len(a)))


def _scale(config, name, rank):
    alpha = next((v for k, v in (config.get("alpha_pattern") or {}).items() if re.fullmatch(rf"(.*\.)?({k})", name)), config["lora_alpha"])
    return alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def _adapted(forward, a, b, scale):
    linear = torch.nn.functional.linear

    def adapted(x):
        return forward(x) + linear(linear(x, a), b) * scale

    return adapted
