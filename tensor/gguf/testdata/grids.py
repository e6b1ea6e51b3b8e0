"""Writes grids.bin: the grids of ggml's IQ types as gguf-py packs them. Run with gguf installed."""

import pathlib

from gguf import quants

names = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]
data = b"".join(bytes.fromhex(getattr(quants, n).grid_hex.decode()) for n in names)
(pathlib.Path(__file__).parent.parent / "grids.bin").write_bytes(data)
