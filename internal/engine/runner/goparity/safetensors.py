"""The .safetensors format: a header in JSON, then the bytes.

Dtypes are strings, as the format names them ("F32").
"""

import json


def header(file):
    """Reads the header of an open file, up to the data: name → {dtype, shape, data_offsets}."""
    tensors = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    tensors.pop("__metadata__", None)
    return tensors


def read(path):
    """Returns the tensors of a file: name → (dtype, shape, bytes)."""
    with open(path, "rb") as f:
        tensors = header(f)
        data = memoryview(f.read())
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in tensors.items()}


def write(path, tensors):
    """Writes a list of (name, dtype, shape, bytes). The data begin at a multiple of 8."""
    entries, at = {}, 0
    for name, dtype, shape, data in tensors:
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    with open(path, "wb") as f:
        _header(f, entries)
        for *_, data in tensors:
            f.write(data)


def _header(file, entries):
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)


def write_each(path, tensors):
    """Writes a list of (name, dtype, shape, size, function that returns the bytes), one after the other."""
    entries, at = {}, 0
    for name, dtype, shape, size, _ in tensors:
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    with open(path, "wb") as f:
        _header(f, entries)
        for *_, data in tensors:
            f.write(data())
