"""What becomes of a checkpoint elsewhere: the candidate's tensors, by the steps of converters."""

import gguf
import numpy as np
import torch

from formats import QT, ggml

_PERMUTED = {"llama", "granite"}
_PLUS_ONE = {"gemma2", "gemma3"}


def _permute(w, heads):
    """Rows of a head as pairs, as llama.cpp has them."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def _heads(config):
    for k in ("num_attention_heads", "n_head", "n_heads"):
        if config.get(k):
            return config[k]
    return 4


def unfused(name, key, x, config):
    """q, k and v one after the other, of rows that each head has together."""
    h, size = _heads(config), 64
    if name in ("gptneox", "bloom"):
        y = x.reshape(h, 3, size, *x.shape[1:])
        return np.concatenate([y[:, i].reshape(h * size, *x.shape[1:]) for i in range(3)])
    if name == "falcon":
        n = config["num_kv_heads"]
        y = x.reshape(n, h // n + 2, size, *x.shape[1:])
        return np.concatenate([y[:, :-2].reshape(-1, *x.shape[1:]), y[:, -2].reshape(-1, *x.shape[1:]), y[:, -1].reshape(-1, *x.shape[1:])])
    return x


def to_gguf(name, sd, config, arch):
    """The tensors of a .gguf file by its names, as convert_hf_to_gguf.py makes them."""
    layers = next(config[k] for k in ("num_hidden_layers", "n_layer", "n_layers", "num_layers") if config.get(k))
    known = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch], layers)
    out, skipped = {}, []
    for key, t in sd.items():
        x = t.numpy()
        if any(key.endswith(e) for e in ("attn.bias", "masked_bias", "rotary_emb.inv_freq")):
            continue
        if "experts.gate_up_proj" in key and not key.endswith("_bias"):
            if arch == "gpt-oss":
                x = x.swapaxes(1, 2)
                gate, up = x[:, ::2], x[:, 1::2]
            else:
                gate, up = np.split(x, 2, axis=1)
            n = key.split("layers.")[1].split(".")[0]
            out[f"blk.{n}.ffn_gate_exps.weight"], out[f"blk.{n}.ffn_up_exps.weight"] = gate, up
            continue
        if "experts.gate_up_proj_bias" in key:
            n = key.split("layers.")[1].split(".")[0]
            out[f"blk.{n}.ffn_gate_exps.bias"], out[f"blk.{n}.ffn_up_exps.bias"] = x[..., ::2], x[..., 1::2]
            continue
        if ".experts.down_proj" in key:
            n = key.split("layers.")[1].split(".")[0]
            end = "bias" if key.endswith("bias") else "weight"
            out[f"blk.{n}.ffn_down_exps.{end}"] = x.swapaxes(1, 2) if arch == "gpt-oss" and end == "weight" else x
            continue
        to = known.get_name(key, try_suffixes=(".weight", ".bias"))
        if to is None:
            for p in ("model.", "transformer.", "backbone."):
                to = to or known.get_name(key.removeprefix(p), try_suffixes=(".weight", ".bias"))
                to = to or known.get_name(p + key, try_suffixes=(".weight", ".bias"))
        if to is None:
            skipped.append(key)
            continue
        if arch in _PERMUTED and ("q_proj" in key or "k_proj" in key):
            x = _permute(x, _heads(config) if "q_proj" in key else config["num_key_value_heads"])
        if arch in _PLUS_ONE and key.endswith("norm.weight"):
            x = x + 1
        if "query_key_value" in key:
            x = unfused(name, key, x, config)
        if name == "gpt2" and key.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            x = x.T
        if name == "mamba" and key.endswith("A_log"):
            x = -np.exp(x)
        if name == "mamba" and "conv1d.weight" in key:
            x = x.squeeze()
        out[to] = np.ascontiguousarray(x)
    return out, skipped


def write_gguf(path, tensors, arch, config, kind, kinds=None):
    """Writes a .gguf file. kinds has the type of single tensors; vectors are F32."""
    w = gguf.GGUFWriter(path, arch)
    heads = _heads(config)
    w.add_block_count(3)
    w.add_embedding_length(256)
    w.add_head_count(heads)
    w.add_head_count_kv(config.get("num_key_value_heads") or config.get("num_kv_heads") or heads)
    for key, x in tensors.items():
        k = (kinds or {}).get(key, kind)
        if isinstance(x, tuple):
            data, t = x
            w.add_tensor(key, data, raw_dtype=t)
        elif k == "F32" or x.ndim == 1 or x.shape[-1] % 256 or "norm" in key:
            w.add_tensor(key, x.astype(np.float32))
        elif k == "F16":
            w.add_tensor(key, x.astype(np.float16))
        else:
            data, t = ggml(x, k)
            w.add_tensor(key, data, raw_dtype=t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def unstacked(sd):
    """The experts one by one, as checkpoints have them."""
    out = {}
    for key, t in sd.items():
        if key.endswith("experts.gate_up_proj"):
            for e in range(t.shape[0]):
                gate, up = t[e].chunk(2)
                out[key.replace("gate_up_proj", f"{e}.gate_proj.weight")] = gate.clone()
                out[key.replace("gate_up_proj", f"{e}.up_proj.weight")] = up.clone()
        elif key.endswith("experts.down_proj"):
            for e in range(t.shape[0]):
                out[key.replace("down_proj", f"{e}.down_proj.weight")] = t[e].clone()
        else:
            out[key] = t
    return out


def switched(sd):
    """The experts as mlx-lm has them."""
    out = {}
    for key, t in sd.items():
        if key.endswith("experts.gate_up_proj"):
            gate, up = t.chunk(2, dim=1)
            out[key.replace("experts.gate_up_proj", "switch_mlp.gate_proj.weight")] = gate.clone()
            out[key.replace("experts.gate_up_proj", "switch_mlp.up_proj.weight")] = up.clone()
        elif key.endswith("experts.down_proj"):
            out[key.replace("experts.down_proj", "switch_mlp.down_proj.weight")] = t
        else:
            out[key] = t
    return out


def fused(sd):
    """q, k, v and gate, up in one, as some engines load them."""
    out = {}
    for key, t in sd.items():
        if ".q_proj." in key:
            k, v = (key.replace(".q_proj.", f".{c}_proj.") for c in "kv")
            out[key.replace(".q_proj.", ".qkv_proj.")] = torch.cat([t, sd[k], sd[v]])
        elif ".gate_proj." in key:
            out[key.replace(".gate_proj.", ".gate_up_proj.")] = torch.cat([t, sd[key.replace(".gate_proj.", ".up_proj.")]])
        elif not any(p in key for p in (".k_proj.", ".v_proj.", ".up_proj.")):
            out[key] = t
    return out


def prefixed(sd, prefix="language_model."):
    return {prefix + k.removeprefix("model."): v for k, v in sd.items()}


__all__ = ["QT", "fused", "prefixed", "switched", "to_gguf", "unfused", "unstacked", "write_gguf"]
