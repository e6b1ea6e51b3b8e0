"""Writes the files of this folder with gguf-py. want.safetensors has what it dequantises them to.

pip install gguf safetensors; python generate.py
"""

import pathlib
import struct

import gguf
import numpy as np
from gguf import quants
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)


def keys(w):
    w.add_context_length(128)
    w.add_embedding_length(64)
    w.add_block_count(2)
    w.add_head_count(4)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_bool("tiny.flag", True)
    w.add_int8("tiny.i8", -3)
    w.add_uint64("tiny.u64", 1 << 63)
    w.add_float64("tiny.f64", 1 / 3)
    w.add_array("tiny.list", [1, 2, 3])
    w.add_array("tiny.words", ["a", "b"])
    w.add_array("tokenizer.ggml.tokens", [str(i) for i in range(100)])
    w.add_array("tokenizer.ggml.scores", [float(i) for i in range(100)])


def blocks(kind, rows, columns):
    """Random bytes: every code, and scales of all sizes, signs, NaN and infinities."""
    length, size = gguf.GGML_QUANT_SIZES[kind]
    return rng.integers(0, 256, (rows, columns // length * size), dtype=np.uint8)


w = gguf.GGUFWriter(here / "types.gguf", "llama")
keys(w)
want = {}
for kind in quants._type_traits:
    data = blocks(kind, 2, 256)
    w.add_tensor(f"blk.{kind.name}.weight", data, raw_dtype=kind)
    with np.errstate(all="ignore"):
        want[f"blk.{kind.name}.weight"] = quants.dequantize(data, kind)
for dtype in [np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64]:
    x = rng.normal(0, 10, (2, 3, 5)).astype(dtype)
    name = f"plain.{np.dtype(dtype).name}"
    w.add_tensor(name, x)
    want[name] = x
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
save_file(want, here / "want.safetensors")

for name, endian in [("little", gguf.GGUFEndian.LITTLE), ("big", gguf.GGUFEndian.BIG)]:
    w = gguf.GGUFWriter(here / f"{name}.gguf", "llama", endianess=endian)
    keys(w)
    w.add_custom_alignment(64)
    w.add_tensor("a", np.arange(6, dtype=np.float32).reshape(2, 3))
    w.add_tensor("b", np.arange(5, dtype=np.float16))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
data = bytearray((here / "little.gguf").read_bytes())
data[4:8] = struct.pack("<I", 2)
(here / "version2.gguf").write_bytes(data)
