"""Writes mlx.safetensors: every dtype that MLX saves, without metadata, for which it writes null.

Needs mlx[cpu]; version of the last run: 0.32.4.
"""

import mlx.core as mx

x = mx.array([[0, 1, 2], [3, 4, 5]])
names = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32".split()
tensors = {name.strip("_"): x.astype(getattr(mx, name)) for name in names}
tensors |= {"turned": x.astype(mx.float32).T, "scalar": mx.array(5, mx.int32), "empty": mx.zeros((2, 0))}
mx.save_safetensors("mlx.safetensors", tensors)
