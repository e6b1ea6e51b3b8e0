"""How the runner rounds inputs and caches, against gguf-py, ggml's formula and MLX; needs torch, gguf and mlx."""

import mlx.core as mx
import numpy as np
import torch
from gguf import GGMLQuantizationType, quants
from goparity import torchkv, torchrounding

rng = np.random.default_rng(0)
for shape in [(3, 256), (2, 5, 512)]:
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape[:-1])[..., None]).astype(np.float32)
    x.reshape(-1)[:256] = 0
    want = quants.dequantize(quants.quantize(x, GGMLQuantizationType.Q8_0), GGMLQuantizationType.Q8_0)
    assert np.array_equal(torchrounding.q8_0(torch.from_numpy(x)).numpy(), want), "q8_0"
    blocks = x.reshape(-1, 256)
    most = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(most == 0, 0, np.float32(-127) / most).astype(np.float32)
        scale = np.where(most == 0, 0, np.float32(1) / inverse).astype(np.float32)
    want = (np.minimum(np.rint(inverse * blocks), 127) * scale).reshape(shape)
    got = torchrounding.q8_k(torch.from_numpy(x)).numpy()
    assert np.array_equal(got, want), "q8_k"
    assert np.abs(got - x).max(-1).max() <= np.abs(x).max() / 127, "half a step, or nearly a whole one at 127"
    token = np.abs(x).max(-1, keepdims=True)
    got = torchrounding.e4m3(torch.from_numpy(x)).numpy()
    assert np.allclose(np.abs(got).max(-1, keepdims=True), token, rtol=1e-6, atol=0), "the largest of a token is kept"
    assert (np.abs(got - x) <= np.maximum(np.abs(x) / 16, token / 448 / 2**9) * 1.00001).all(), "3 bits of mantissa, multiples of 2^-9 below"

x = rng.standard_normal((2, 3, 5, 128)).astype(np.float32)
x[0, 0, 0], x[0, 0, 1], x[0, 0, 2] = 0, np.abs(x[0, 0, 1]), 2.5
for bits, group, dtype in [(b, g, t) for b in (4, 8) for g in (32, 64, 128) for t in ("float32", "bfloat16", "float16")]:
    coded = mx.quantize(mx.array(x).astype(getattr(mx, dtype)), group_size=group, bits=bits)
    want = np.array(mx.dequantize(*coded, group_size=group, bits=bits).astype(mx.float32))
    t = torch.from_numpy(x).to(getattr(torch, dtype))
    got = torchkv.of(t, {"type": f"int{bits}", "group": group, "scheme": "mlx"}).float().numpy()
    assert np.array_equal(got, want), f"mlx, {bits} bits, groups of {group}, {dtype}"
    for scheme, most in (("affine", 2**bits - 1), ("symmetric", 2**bits - 2)):
        got = torchkv.of(torch.from_numpy(x), {"type": f"int{bits}", "group": group, "scheme": scheme}).numpy().reshape(-1, group)
        own = x.reshape(-1, group)
        width = np.ptp(own, axis=1) if scheme == "affine" else 2 * np.abs(own).max(1)
        assert (np.abs(got - own).max(1) <= width / most / 2 * 1.0001 + 1e-6).all(), f"{scheme}: half a step"
        assert max(len(np.unique(row)) for row in got) <= most + 1, f"{scheme}: {bits} bits"

model = torch.nn.Sequential(torch.nn.Linear(256, 4), torch.nn.Linear(4, 4))
x = torch.from_numpy(rng.standard_normal((2, 256)).astype(np.float32))
plain = model[0](x)
about = torchrounding.install(model, {"rule": "int8/256", "weights": ["0.weight"]})
assert about == {"block": 256, "layers": ["model.0"]}, about
assert torch.equal(model[0](x), torch.nn.functional.linear(torchrounding.q8_k(x), model[0].weight, model[0].bias))
assert not torch.equal(model[0](x), plain)
for weights, want in [(["1.weight"], "no whole number of blocks"), (["none.weight"], "has no weight none.weight")]:
    try:
        torchrounding.install(model, {"rule": "int8/256", "weights": weights})
    except Exception as e:
        assert want in str(e), e
    else:
        raise AssertionError(want)
