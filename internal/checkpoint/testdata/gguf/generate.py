"""Writes a small .gguf file of each architecture, and the weights that it stands for by the names of Hugging Face.

Names are those of gguf-py's own table. Needs gguf, numpy, safetensors.
"""

import pathlib

import gguf
import numpy as np
from gguf import quants
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)
HEADS, KV, WIDTH = 4, 2, 32
Q8 = gguf.GGMLQuantizationType.Q8_0

MLP = ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
QKV = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
SANDWICH = ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"]
MODELS = {
    "llama": [*QKV, "self_attn.o_proj", *MLP, *SANDWICH[:2]],
    "qwen2": [*QKV, *(n + ".bias" for n in QKV), "self_attn.o_proj", *MLP, *SANDWICH[:2]],
    "qwen3": [*QKV, "self_attn.q_norm", "self_attn.k_norm", "self_attn.o_proj", *MLP, *SANDWICH[:2]],
    "gemma2": [*QKV, "self_attn.o_proj", *MLP, *SANDWICH],
    "phi3": ["self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj", *SANDWICH[:2]],
}

for arch, names in MODELS.items():
    table = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), 1)
    out = gguf.GGUFWriter(here / f"{arch}.gguf", arch)
    out.add_block_count(1)
    out.add_embedding_length(WIDTH)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV)
    want = {}
    for name in ["model.embed_tokens", *(f"model.layers.0.{n}" for n in names), "model.norm"]:
        flat = "norm" in name or name.endswith(".bias")
        rows = WIDTH // 2 if "k_proj" in name or "v_proj" in name else WIDTH
        w = rng.normal(size=(rows,) if flat else (rows, WIDTH)).astype(np.float32)
        stored = w + 1 if arch == "gemma2" and "norm" in name else w
        swapped = arch == "llama" and ("q_proj" in name or "k_proj" in name)
        heads = HEADS if "q_proj" in name else KV
        if swapped:
            stored = stored.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)
        data, kind = (stored, None) if flat else (quants.quantize(stored, Q8), Q8)
        of = stored if flat else quants.dequantize(data, Q8)
        if swapped:
            of = of.reshape(heads, rows // heads // 2, 2, -1).swapaxes(1, 2).reshape(w.shape)
        full = name if name.endswith(".bias") else name + ".weight"
        want[full] = np.ascontiguousarray(of - 1 if arch == "gemma2" and "norm" in name else of)
        out.add_tensor(table.get_name(full, try_suffixes=(".weight", ".bias")), data, raw_dtype=kind)
    if arch == "llama":
        out.add_tensor("rope_freqs.weight", np.ones(8, np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    save_file(want, here / f"{arch}.safetensors")

for name, arch, weight in [("unknown", "llama", "blk.0.ffn_gate_exps.weight"), ("other", "mamba", "token_embd.weight")]:
    out = gguf.GGUFWriter(here / f"{name}.gguf", arch)
    out.add_tensor(weight, quants.quantize(rng.normal(size=(2, 32)).astype(np.float32), Q8), raw_dtype=Q8)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
