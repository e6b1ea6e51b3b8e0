"""The weights that an engine really loaded: a file of them in the dump, or of their hashes."""

import hashlib
import json
import os

from . import safetensors
from .output import write_json
from .progress import warn

FILE = "weights.safetensors"
HASHES = "weights.json"

# Dtypes by their names in torch, MAX and numpy, as .safetensors names them.
_DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
           "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
           "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
           "bool": "BOOL"}  # fmt: skip


def keep(job, dump, tensors):
    """Writes what the job asks for of weights: tensors returns a list of (name, dtype, shape, size in bytes,
    function that returns the bytes).

    If they are larger than the job allows they are not written, and a warning says so. The others of a job's
    cases are of the same model: only its first dump has them.
    """
    if not (job.weights or job.weight_hashes) or dump.out.has_weights:
        return
    dump.out.has_weights = True
    loaded = tensors()
    found, strange = [t for t in loaded if t[1] in _DTYPES], [f"{t[0]} ({t[1]})" for t in loaded if t[1] not in _DTYPES]
    if strange:
        warn(f"{len(strange)} of {len(loaded)} loaded weights are not kept, nor judged: their types are not known: {', '.join(strange[:3])}")
    if job.weight_hashes and found:
        hashes = [{"name": n, "dtype": d, "shape": shape, "sha256": hashlib.sha256(data()).hexdigest()} for n, d, shape, _, data in found]
        with open(os.path.join(dump.path, HASHES), "w", encoding="utf-8") as f:
            json.dump({"weights": hashes}, f, indent=1)
        dump.info["weights"] = [HASHES]
        return
    known = [(n, _DTYPES[d], shape, size, data) for n, d, shape, size, data in found]
    total = sum(t[3] for t in known)
    if not known or 0 < job.weights < total:
        if known:
            sizes = f"{total / 1e9:.1f} GB, are not kept: they are more than {job.weights / 1e9:.1f} GB"
            warn(f"the weights that were loaded, {sizes}; weights: hashes in fixture.yaml keeps their hashes")
        return
    safetensors.write_each(os.path.join(dump.path, FILE), known)
    if quantised := (dump.out.about.get("config") or {}).get("quantization"):  # how many bits and groups, which no tensor says
        write_json(os.path.join(dump.path, "config.json"), {"quantization": quantised})
    dump.info["weights"] = [FILE]


def of_torch(model):
    """The state dict of a torch module, tensors that share memory once."""
    import torch

    def data(t):
        return lambda: t.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()

    out, seen = [], set()
    for name, t in model.state_dict().items():
        at = (t.data_ptr(), tuple(t.shape), tuple(t.stride()))
        if t.numel() and at not in seen:
            seen.add(at)
            out.append((name, str(t.dtype).removeprefix("torch."), list(t.shape), t.numel() * t.element_size(), data(t)))
    return out


def of_max(registry):
    """What was bound to a graph of MAX, by name: buffers, or arrays that it takes as such."""
    from max.driver import Buffer
    from max.dtype import DType

    def data(buffer, size):
        return lambda: buffer.view(DType.uint8, (size,)).to_numpy().tobytes()

    out = []
    for name, value in registry.items():
        buffer = value if isinstance(value, Buffer) else Buffer.from_dlpack(value)
        size = buffer.num_elements * buffer.dtype.size_in_bytes
        if size:
            out.append((name, buffer.dtype.name, [int(d) for d in buffer.shape], size, data(buffer, size)))
    return out


def of_mlx(model):
    """The parameters of an MLX module, quantised ones as they are: weight, scales, biases."""
    from mlx.utils import tree_flatten

    from .mlxhooks import raw

    return [(n, str(t.dtype).rpartition(".")[2].rstrip("_"), list(t.shape), t.nbytes, lambda t=t: bytes(raw(t)[2]))
            for n, t in tree_flatten(model.parameters()) if t.size]  # fmt: skip
