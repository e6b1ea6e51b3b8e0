"""Quantisers in numpy, from the formats' own formulas: arrays in, the tensors of a file out."""

import gguf
import numpy as np
import torch

QT = gguf.GGMLQuantizationType


def ggml(x, kind):
    """The bytes of a weight in a type of GGUF."""
    t = QT[kind]
    try:
        return gguf.quants.quantize(x.astype(np.float32), t), t
    except NotImplementedError:
        return {"Q4_K": _q4_k, "Q6_K": _q6_k, "Q5_K": _q5_k}[kind](x.astype(np.float32)), t


def _packed_scales(sc, mn):
    """Eight scales and eight minima of six bits in twelve bytes, as ggml packs them."""
    out = np.zeros((*sc.shape[:-1], 12), np.uint8)
    out[..., 0:4] = (sc[..., :4] & 63) | ((sc[..., 4:] >> 4) << 6)
    out[..., 4:8] = (mn[..., :4] & 63) | ((mn[..., 4:] >> 4) << 6)
    out[..., 8:12] = (sc[..., 4:] & 15) | ((mn[..., 4:] & 15) << 4)
    return out


def _k_codes(x, top):
    b = x.reshape(-1, 8, 32)
    lo, hi = np.minimum(b.min(-1), 0), b.max(-1)
    scale, least = (hi - lo) / top, -lo
    d = (scale.max(-1) / 63).astype(np.float16)
    m = (least.max(-1) / 63).astype(np.float16)
    df, mf = d.astype(np.float32)[:, None], m.astype(np.float32)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sc = np.clip(np.nan_to_num(np.round(scale / df)), 0, 63).astype(np.uint8)
        mn = np.clip(np.nan_to_num(np.round(least / mf)), 0, 63).astype(np.uint8)
        q = np.nan_to_num(np.round((b + (mf * mn)[..., None]) / (df * sc)[..., None]))
    q = np.clip(q, 0, top).astype(np.uint8)
    return d, m, sc, mn, q


def _q4_k(x):
    d, m, sc, mn, q = _k_codes(x, 15)
    pairs = q.reshape(-1, 4, 2, 32)
    qs = (pairs[:, :, 0] | (pairs[:, :, 1] << 4)).reshape(-1, 128)
    return _rows(x, d.view(np.uint8).reshape(-1, 2), m.view(np.uint8).reshape(-1, 2), _packed_scales(sc, mn), qs)


def _q5_k(x):
    d, m, sc, mn, q = _k_codes(x, 31)
    pairs = (q & 15).reshape(-1, 4, 2, 32)
    qs = (pairs[:, :, 0] | (pairs[:, :, 1] << 4)).reshape(-1, 128)
    qh = np.zeros((len(q), 32), np.uint8)
    for g in range(8):
        qh |= (q[:, g] >> 4) << g
    return _rows(x, d.view(np.uint8).reshape(-1, 2), m.view(np.uint8).reshape(-1, 2), _packed_scales(sc, mn), qh, qs)


def _q6_k(x):
    b = x.reshape(-1, 16, 16)
    scale = np.abs(b).max(-1) / 31
    d = (scale.max(-1) / 127).astype(np.float16)
    df = d.astype(np.float32)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sc = np.clip(np.nan_to_num(np.round(scale / df)), -128, 127).astype(np.int8)
        q = np.nan_to_num(np.round(b / (df * sc)[..., None]))
    q = (np.clip(q, -32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    low, high = q & 15, q >> 4
    ql = np.stack([low[:, :, 0] | (low[:, :, 2] << 4), low[:, :, 1] | (low[:, :, 3] << 4)], 2).reshape(-1, 128)
    qh = (high[:, :, 0] | (high[:, :, 1] << 2) | (high[:, :, 2] << 4) | (high[:, :, 3] << 6)).reshape(-1, 64)
    return _rows(x, ql, qh, sc.view(np.uint8), d.view(np.uint8).reshape(-1, 2))


def _rows(x, *parts):
    return np.concatenate(parts, -1).reshape(*x.shape[:-1], -1)


# --- safetensors: name of a module and its weight → tensors


def mlx(name, x, bits=4, group=64, kind=torch.float32):
    """MLX affine: w = scale·code + bias, codes in words of 32 bits, the lowest first."""
    rows = x.shape[:-1]
    b = x.reshape(*rows, -1, group).astype(np.float32)
    top = 2**bits - 1
    hi, lo = b.max(-1), b.min(-1)
    scale = np.maximum((hi - lo) / top, 1e-7)
    side = np.abs(lo) > np.abs(hi)
    scale = np.where(side, scale, -scale)
    edge = np.where(side, lo, hi)
    q0 = np.round(edge / scale)
    scale = np.where(q0 != 0, edge / np.where(q0 == 0, 1, q0), scale)
    bias = np.where(q0 == 0, 0, edge)
    scale, bias = (torch.tensor(v.astype(np.float32)).to(kind) for v in (scale, bias))
    s, z = scale.float().numpy()[..., None], bias.float().numpy()[..., None]
    q = np.clip(np.round((b - z) / s), 0, top).astype(np.uint64).reshape(*rows, -1)
    return {f"{name}.weight": torch.tensor(_words(q, bits).view(np.int32)).view(torch.uint32), f"{name}.scales": scale, f"{name}.biases": bias}


def _words(q, bits):
    shape, n = q.shape[:-1], q.shape[-1]
    b = ((q[..., None] >> np.arange(bits, dtype=np.uint64)) & 1).astype(np.uint8).reshape(*shape, n * bits // 8, 8)
    data = np.packbits(b, -1, bitorder="little").reshape(*shape, -1)
    return np.ascontiguousarray(data).view(np.uint32)


def _affine(x, bits, group, symmetric):
    """Codes [out, in], scales and zero points [out, groups] in float16."""
    b = x.reshape(x.shape[0], -1, group).astype(np.float32)
    top = 2**bits - 1
    if symmetric:
        scale = np.abs(b).max(-1) / (2 ** (bits - 1) - 1)
        zero = np.full(scale.shape, 2 ** (bits - 1))
    else:
        lo, hi = np.minimum(b.min(-1), 0), np.maximum(b.max(-1), 0)
        scale = (hi - lo) / top
        zero = np.round(-lo / np.where(scale == 0, 1, scale))
    scale = np.where(scale == 0, 1e-4, scale).astype(np.float16)
    q = np.clip(np.round(b / scale.astype(np.float32)[..., None]) + zero[..., None], 0, top)
    return q.reshape(x.shape).astype(np.uint32), scale, zero.astype(np.uint32)


def _pack(q, bits, axis, order=None):
    """Codes in words along an axis."""
    q = np.moveaxis(q, axis, -1)
    n = 32 // bits
    q = q.reshape(*q.shape[:-1], -1, n)
    if order is not None:
        q = q[..., order]
    w = np.zeros(q.shape[:-1], np.uint32)
    for i in range(n):
        w |= q[..., i] << np.uint32(bits * i)
    return np.moveaxis(w, -1, axis)


def _int32(a):
    return torch.tensor(np.ascontiguousarray(a).view(np.int32))


def gptq(name, x, bits=4, group=64, ordered=False, seed=0):
    if ordered:
        perm = np.random.default_rng(seed).permutation(x.shape[1])
        q, s, z = _affine(x[:, perm], bits, group, False)
        back = np.argsort(perm)
        q, g = q[:, back], (np.arange(x.shape[1]) // group)[back]
    else:
        q, s, z = _affine(x, bits, group, False)
        g = np.arange(x.shape[1]) // group
    z = np.maximum(z, 1)
    return {f"{name}.qweight": _int32(_pack(q.T, bits, 0)), f"{name}.qzeros": _int32(_pack((z.T - 1).astype(np.uint32), bits, 1)),
            f"{name}.scales": torch.tensor(s.T.copy()), f"{name}.g_idx": torch.tensor(g.astype(np.int32))}  # fmt: skip


def awq(name, x, group=64):
    q, s, z = _affine(x, 4, group, False)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    return {f"{name}.qweight": _int32(_pack(q.T, 4, 1, order)), f"{name}.qzeros": _int32(_pack(z.T.astype(np.uint32), 4, 1, order)),
            f"{name}.scales": torch.tensor(s.T.copy())}  # fmt: skip


def fp8(name, x, how="tensor"):
    t = torch.tensor(x)
    if how == "tensor":
        scale, part = t.abs().max().reshape(1) / 448, "weight_scale"
        q = t / scale
    elif how == "channel":
        scale, part = t.abs().amax(-1, keepdim=True) / 448, "weight_scale"
        q = t / scale
    else:
        o, i = t.shape
        b = t.reshape(o // 128, 128, i // 128, 128)
        scale, part = b.abs().amax((1, 3)) / 448, "weight_scale_inv"
        q = (b / scale[:, None, :, None]).reshape(o, i)
    return {f"{name}.weight": q.to(torch.float8_e4m3fn), f"{name}.{part}": scale}


_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def _fp4(x):
    return np.abs(x[..., None] - np.where(np.signbit(_E2M1), _E2M1 - 1e-9, _E2M1)).argmin(-1).astype(np.uint8)


def _nibbles(q):
    return torch.tensor(q[..., 0::2] | (q[..., 1::2] << 4))


def mxfp4(name, x):
    """gpt-oss: blocks [rows, groups, 16] and scales as powers of two."""
    b = x.reshape(*x.shape[:-1], -1, 32)
    e = np.floor(np.log2(np.maximum(np.abs(b).max(-1), 1e-30))) - 2
    q = _fp4(b / (2.0**e)[..., None])
    return {f"{name}_blocks": _nibbles(q), f"{name}_scales": torch.tensor((e + 127).astype(np.uint8))}


def nvfp4(name, x):
    t = x.reshape(x.shape[0], -1, 16)
    top = np.abs(x).max() / (6 * 448)
    s = torch.tensor((np.abs(t).max(-1) / 6 / top).astype(np.float32)).to(torch.float8_e4m3fn)
    q = _fp4(t / np.maximum(s.float().numpy() * top, 1e-30)[..., None]).reshape(x.shape)
    return {f"{name}.weight": _nibbles(q), f"{name}.weight_scale": s, f"{name}.weight_scale_2": torch.tensor(np.float32(top)).reshape(())}


def compressed(name, x, group=64, symmetric=True):
    """compressed-tensors, pack-quantized: codes plus 8, eight a word along the inputs."""
    q, s, z = _affine(x, 4, group, symmetric)
    out = {f"{name}.weight_packed": _int32(_pack(q, 4, 1)), f"{name}.weight_scale": torch.tensor(s.astype(np.float32)),
           f"{name}.weight_shape": torch.tensor(x.shape)}  # fmt: skip
    if not symmetric:
        out[f"{name}.weight_zero_point"] = _int32(_pack(z, 4, 0))
    return out


def int8(name, x):
    t = torch.tensor(x)
    scale = t.abs().amax(-1, keepdim=True) / 127
    return {f"{name}.weight": (t / scale).round().clamp(-128, 127).to(torch.int8), f"{name}.weight_scale": scale}
