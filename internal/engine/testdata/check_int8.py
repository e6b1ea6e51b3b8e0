"""How the runner rounds inputs to int8 against gguf-py and ggml's formula; needs torch and gguf."""

import numpy as np
import torch
from gguf import GGMLQuantizationType, quants
from goparity import torchrounding

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
