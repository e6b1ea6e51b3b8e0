"""Writes quantised checkpoints, a folder each, and what the formats' own programs dequantise them to.

Needs torch, transformers, compressed-tensors, mlx[cpu], numpy, safetensors. mlx and
compressed_tensors calculate what they can; GPTQ, AWQ and FP8 are calculated by the formulas of
AutoGPTQ, AutoAWQ and transformers, written out below.
"""

import json
import pathlib
import shutil

import ml_dtypes
import mlx.core as mx
import numpy as np
import torch
from compressed_tensors.compressors import pack_to_int32
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import _convert_moe_packed_tensors

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)
torch.manual_seed(3)


def folder(name, tensors, want, config=None, file="config.json"):
    at = here / name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir()
    save_file({k: v.clone().contiguous() for k, v in tensors.items()}, at / "model.safetensors", {"format": "pt"})
    save_file({k: v.clone().contiguous() for k, v in want.items()}, at / "want.safetensors")
    if config:
        (at / file).write_text(json.dumps(config) + "\n")


def ints(high, *shape):
    return torch.from_numpy(rng.integers(0, high, shape, dtype=np.int64))


def scales(dtype, *shape):
    return (torch.rand(shape) * 0.02 + 1e-3).to(dtype)


def torch_of(a):
    a = np.array(a.view(mx.uint16) if a.dtype == mx.bfloat16 else a)
    t = torch.from_numpy(a.astype(np.int32) if a.dtype == np.uint32 else a)
    if a.dtype == np.uint32:
        return t.view(torch.int32).view(torch.uint32)
    return t.view(torch.bfloat16) if a.dtype == np.uint16 else t


# MLX

tensors, want, config = {"model.norm.weight": torch.ones(4)}, {"model.norm.weight": torch.ones(4)}, {}
for bits in [2, 3, 4, 5, 6, 8]:
    for group in [32, 64, 128]:
        for dtype in [mx.float32, mx.float16, mx.bfloat16]:
            name = f"model.b{bits}g{group}{str(dtype).split('.')[-1]}"
            w = mx.array(rng.normal(0, 0.05, (2, 128)).astype(np.float32)).astype(dtype)
            q, s, b = mx.quantize(w, group_size=group, bits=bits)
            back = mx.dequantize(q, s, b, group_size=group, bits=bits)
            for part, a in [("weight", q), ("scales", s), ("biases", b)]:
                tensors[f"{name}.{part}"] = torch_of(a)
            want[f"{name}.weight"] = torch_of(back)
            config[name] = {"bits": bits, "group_size": group}
folder("mlx", tensors, want, {"quantization": {"group_size": 64, "bits": 4, **config}})

tensors, want, config = {}, {}, {}
for mode, group, bits in [("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]:
    w = mx.array(rng.normal(0, 0.05, (3, 2, 128)).astype(np.float32))
    q, s = mx.quantize(w, group_size=group, bits=bits, mode=mode)
    back = mx.dequantize(q, s, group_size=group, bits=bits, mode=mode, dtype=mx.float32)
    tensors[f"{mode}.weight"], tensors[f"{mode}.scales"] = torch_of(q), torch_of(s)
    want[f"{mode}.weight"] = torch_of(back)
    config[mode] = {"bits": bits, "group_size": group, "mode": mode}
folder("mlx_float", tensors, want, {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4", **config}})

# GPTQ: AutoGPTQ's qlinear_cuda, pack and forward.


def stream(codes, bits):
    """Packs the first axis into int32 words, each column a little-endian stream."""
    n, columns = codes.shape
    out = np.zeros((n * bits // 32, columns), np.uint64)
    for i in range(n):
        at, shift = divmod(i * bits, 32)
        v = codes[i].numpy().astype(np.uint64) << np.uint64(shift)
        out[at] |= v & np.uint64(0xFFFFFFFF)
        if shift + bits > 32:
            out[at + 1] |= v >> np.uint64(32)
    return torch.from_numpy(out.astype(np.uint32).view(np.int32))


def gptq(bits, group, order=False, plain=False, dtype=torch.float16, inputs=128, outputs=32):
    groups = inputs // group
    q, z = ints(2**bits, inputs, outputs), ints(2**bits, groups, outputs)
    s = scales(dtype, groups, outputs)
    g = torch.arange(inputs) // group
    if order:
        g = g[torch.randperm(inputs)]
    stored = z if plain else (z - 1) % 2**bits
    parts = {"qweight": stream(q, bits), "qzeros": stream(stored.T, bits).T, "scales": s, "g_idx": g.to(torch.int32)}
    return parts, (s[g].float() * (q - z[g]).float()).T


tensors, want = {"l.bits4.bias": torch.ones(32)}, {"l.bits4.bias": torch.ones(32)}
for bits in [2, 3, 4, 8]:
    parts, want[f"l.bits{bits}.weight"] = gptq(bits, 32, order=bits == 3, dtype=torch.bfloat16 if bits == 8 else torch.float16)
    tensors |= {f"l.bits{bits}.{k}": v for k, v in parts.items()}
folder("gptq", tensors, want)
parts, w = gptq(4, 64, order=True)
config = {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True, "sym": False, "checkpoint_format": "gptq"}
folder("gptq_config", {f"l.{k}": v for k, v in parts.items()}, {"l.weight": w}, {"quantization_config": config})
parts, w = gptq(4, 128, plain=True)
config |= {"group_size": -1, "checkpoint_format": "gptq_v2"}
folder("gptq_v2", {f"l.{k}": v for k, v in parts.items()}, {"l.weight": w}, {"quantization_config": config})

# AWQ: AutoAWQ's WQLinear_GEMM.

ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def eights(codes):
    words = torch.zeros(codes.shape[0], codes.shape[1] // 8, dtype=torch.int64)
    for i, column in enumerate(ORDER):
        words |= codes[:, column::8] << (4 * i)
    return torch.from_numpy(words.numpy().astype(np.uint32).view(np.int32))


q, z, s = ints(16, 128, 48), ints(16, 4, 48), scales(torch.float16, 4, 48)
each = torch.arange(128) // 32
tensors = {"l.qweight": eights(q), "l.qzeros": eights(z), "l.scales": s}
folder("awq", tensors, {"l.weight": ((q - z[each]).float() * s[each].float()).T},
       {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}})

# FP8 and int8

w8 = (torch.randn(140, 130) * 50).to(torch.float8_e4m3fn)
s = torch.rand(2, 2) * 0.01
full = s.repeat_interleave(128, 0)[:140].repeat_interleave(128, 1)[:, :130]
folder("fp8_block", {"l.weight": w8, "l.weight_scale_inv": s}, {"l.weight": w8.float() * full},
       {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})

tensors, want = {}, {}
for name, s in [("tensor", torch.rand(())), ("one", torch.rand(1)), ("channel", torch.rand(16, 1)), ("row", torch.rand(16)),
                ("bf16", torch.rand(16, 1).bfloat16())]:
    w = (torch.randn(16, 24) * 50).to(torch.float8_e4m3fn)
    tensors[f"{name}.weight"], tensors[f"{name}.weight_scale"] = w, s
    tensors[f"{name}.input_scale"] = want[f"{name}.input_scale"] = torch.ones(1)
    want[f"{name}.weight"] = w.float() * (s[:, None] if s.shape == (16,) else s).float()
w, s = (torch.randn(3, 16, 24) * 50).to(torch.float8_e5m2), torch.rand(3, 16, 1)
tensors["experts.weight"], tensors["experts.weight_scale"], want["experts.weight"] = w, s, w.float() * s
w, s, z = ints(256, 16, 24).to(torch.uint8).view(torch.int8), torch.rand(16, 1), ints(20, 16, 1).to(torch.int8)
tensors |= {"int8.weight": w, "int8.weight_scale": s, "int8.weight_zero_point": z}
want["int8.weight"] = (w.float() - z.float()) * s
w, s = (torch.randn(16, 64) * 50).to(torch.float8_e4m3fn), ints(20, 16, 2).to(torch.uint8) + 110
tensors["mxfp8.weight"], tensors["mxfp8.weight_scale"] = w, s
want["mxfp8.weight"] = w.float() * torch.exp2(s.float() - 127).repeat_interleave(32, 1)
folder("scaled", tensors, want)

# compressed-tensors: packed codes, NVFP4, MXFP4



def packed(name, bits, group, zero=False, order=False, n=192):
    tensors = {}
    q = (ints(2**bits, 20, n) - 2 ** (bits - 1)).to(torch.int8)
    s = scales(torch.bfloat16, 20, n // group)
    g = torch.arange(n) // group
    if order:
        g = g[torch.randperm(n)]
        tensors[f"{name}.weight_g_idx"] = g.to(torch.int32)
    packed = pack_to_int32(q, bits)
    assert (unpack_from_int32(packed, bits, q.shape) == q).all()
    z = torch.zeros(20, n // group)
    if zero:
        z = (ints(2**bits, 20, n // group) - 2 ** (bits - 1)).to(torch.int8)
        tensors[f"{name}.weight_zero_point"] = pack_to_int32(z, bits, packed_dim=0)
    tensors |= {f"{name}.weight_packed": packed, f"{name}.weight_scale": s, f"{name}.weight_shape": torch.tensor(q.shape)}
    return tensors, {f"{name}.weight": (q.float() - z[:, g].float()) * s[:, g].float()}


def both(*pairs):
    return {k: v for p in pairs for k, v in p[0].items()}, {k: v for p in pairs for k, v in p[1].items()}


folder("packed", *both(packed("sym4", 4, 32), packed("sym8", 8, 96), packed("ordered", 4, 32, order=True), packed("sym5", 5, 96)))
weights = [{"num_bits": 4, "group_size": 64, "symmetric": False}, {"num_bits": 3, "group_size": 32, "symmetric": False}]
folder("packed_zero", *both(packed("asym4", 4, 64, zero=True), packed("asym3", 3, 32, zero=True)),
       {"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
                                "config_groups": {f"group_{i}": {"weights": w, "targets": ["Linear"]} for i, w in enumerate(weights)}}})

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def fp4(codes):
    return torch.stack([E2M1[(codes & 15).long()], E2M1[(codes >> 4).long()]], -1).flatten(-2)


tensors, want = {}, {}
codes = ints(256, 6, 32).to(torch.uint8)
s = (torch.rand(6, 4) * 400 + 1).to(torch.float8_e4m3fn)
g = torch.tensor([3.7])
tensors |= {"ct.weight_packed": codes, "ct.weight_scale": s, "ct.weight_global_scale": g, "ct.input_global_scale": g}
want |= {"ct.weight": fp4(codes) * (s.float() / g).repeat_interleave(16, 1), "ct.input_global_scale": g}
tensors |= {"modelopt.weight": codes, "modelopt.weight_scale": s, "modelopt.weight_scale_2": g[0]}
want |= {"modelopt.weight": fp4(codes) * (s.float() * g[0]).repeat_interleave(16, 1)}
e = ints(20, 6, 2).to(torch.uint8) + 110
tensors |= {"mx.weight_packed": codes, "mx.weight_scale": e}
want |= {"mx.weight": fp4(codes) * torch.exp2(e.float() - 127).repeat_interleave(32, 1)}
folder("fp4", tensors, want)

blocks, e = ints(256, 2, 6, 3, 16).to(torch.uint8), ints(20, 2, 6, 3).to(torch.uint8) + 110
want = {"experts.gate_up_proj": _convert_moe_packed_tensors(blocks, e, dtype=torch.float32)}
bias = {"experts.gate_up_proj_bias": torch.ones(2, 6)}
folder("gptoss", {"experts.gate_up_proj_blocks": blocks, "experts.gate_up_proj_scales": e} | bias, want | bias,
       {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.norm"]}})

# AWQ: AutoAWQ's WQLinear_GEMV. Rows of words in sequence; zero points and scales are padded to whole words.

gemv = np.random.default_rng(7)
q, z = (torch.from_numpy(gemv.integers(0, 16, shape)) for shape in [(24, 192), (24, 8)])
s = torch.from_numpy(gemv.random((24, 8)) * 0.02 + 1e-3).half()


def stream(codes):
    words = torch.zeros(codes.shape[0], codes.shape[1] // 8, dtype=torch.int64)
    for i in range(8):
        words |= codes[:, i::8] << (4 * i)
    return torch.from_numpy(words.numpy().astype(np.uint32).view(np.int32))


each = torch.arange(192) // 64  # 3 groups, the scales of 5 more mean nothing
folder("awq_gemv", {"l.qweight": stream(q), "l.qzeros": stream(z), "l.scales": s},
       {"l.weight": (q - z[:, each]).float() * s[:, each].float()},
       {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemv"}})
