"""Reads dumps of the other exams, and writes those of engines with names of their own. Bytes stay as they are."""

import dataclasses
import json
import math
import pathlib
import re
import struct

import numpy as np

# Elements are kept as integers of their size: their values do not matter here.
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F16": 2, "BF16": 2, "F32": 4, "I32": 4, "F64": 8, "I64": 8}
INTEGERS = ("BOOL", "U8", "I8", "I32", "I64")
MAX_CODES = {1: "BOOL", 79: "F16", 80: "BF16", 81: "F32", 82: "F64", 139: "I32", 141: "I64"}  # as zoo/generate.py writes
TORCH = {"bool": "BOOL", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64"}


@dataclasses.dataclass
class Entry:
    """A tensor that was recorded. Entries that share one were recorded as equal."""

    step: str
    layer: str
    port: str
    dtype: str
    data: np.ndarray

    @property
    def name(self):
        return f"{self.layer}-{self.port}"

    @property
    def numbers(self):
        """The elements as float64 in one row; None if they are integers."""
        if self.dtype in INTEGERS:
            return None
        x = self.data.reshape(-1)
        if self.dtype == "BF16":
            return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return x.view({2: np.float16, 4: np.float32, 8: np.float64}[SIZES[self.dtype]]).astype(np.float64)

    def same(self, other):
        return self.dtype == other.dtype and self.data.shape == other.data.shape and np.array_equal(self.data, other.data)


@dataclasses.dataclass
class Dump:
    entries: list
    about: dict | None  # run.json without its order, None where there is none

    @property
    def layers(self):
        """All layers, in the order in which they were recorded first."""
        return list(dict.fromkeys(name(e.layer) for e in self.entries))

    def of(self, layer):
        return [e for e in self.entries if name(e.layer) == layer]


def name(layer):
    """A layer without its call."""
    return re.sub(r"\(\d+\)$", "", layer)


def call(layer):
    return layer[len(name(layer)) :]


def read(folder):
    """A dump with run.json and .safetensors, or with tensor_names.txt and a file for each tensor."""
    folder, entries, files = pathlib.Path(folder), [], {}
    if not (folder / "run.json").exists():
        for line in (folder / "tensor_names.txt").read_text().split():
            layer, port = line.rsplit("-", 1)
            entries.append(Entry("0", layer, port, *read_one(folder, line)))
        return Dump(entries, None)
    about = json.loads((folder / "run.json").read_text())
    about = dict(about.get("cases", [about])[0])
    for step, layer, port, file, *other in about.pop("order"):
        if file not in files:
            files[file] = read_safetensors(folder / file)
        entries.append(Entry(step, layer, port, *files[file][other[0] if other else f"{layer}-{port}"]))
    return Dump(entries, about)


def read_one(folder, label):
    """The only tensor of a .max or .pt."""
    path = folder / f"{label}.max"
    if path.exists():
        raw = path.read_bytes()
        (size,) = struct.unpack_from("<I", raw, 24)
        code, dims = struct.unpack_from("<BB", raw, 28 + size)
        *shape, start = struct.unpack_from(f"<{dims}IQ", raw, 30 + size)
        dtype = MAX_CODES[code]
        return dtype, np.frombuffer(raw, WORDS[SIZES[dtype]], math.prod(shape), start).reshape(shape)
    import torch  # the references alone need it

    x = torch.load(folder / f"{label}.pt", weights_only=True).contiguous()
    dtype = TORCH[str(x.dtype).removeprefix("torch.")]
    data = x.reshape(-1).view(torch.uint8).numpy().view(WORDS[SIZES[dtype]])
    return dtype, data.reshape(tuple(x.shape))


def read_safetensors(path):
    raw = path.read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    out = {}
    for key, t in json.loads(raw[8 : 8 + size]).items():
        if key != "__metadata__":
            start, end = t["data_offsets"]
            data = np.frombuffer(raw[8 + size + start : 8 + size + end], WORDS[SIZES[t["dtype"]]])
            out[key] = (t["dtype"], data.reshape(t["shape"]))
    return out


def write_safetensors(path, tensors):
    head, at = {}, 0
    for key, (dtype, data) in tensors.items():
        head[key] = {"dtype": dtype, "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            f.write(np.ascontiguousarray(data).tobytes())


def write(folder, dump, ordered=True):
    """Writes a file for each step. Without an order it is what a folder of tensors is: names."""
    folder.mkdir(parents=True)
    order, steps = [], {}
    for e in dump.entries:
        tensors, seen = steps.setdefault(e.step, ({}, {}))
        key = (e.dtype, e.data.shape, e.data.tobytes())
        entry = [e.step, e.layer, e.port, f"{e.step}.safetensors"]
        if ordered and key in seen:
            entry.append(seen[key])
        else:
            seen[key] = e.name
            tensors[e.name] = (e.dtype, e.data)
        order.append(entry)
    for step, (tensors, _) in steps.items():
        if ordered:
            write_safetensors(folder / f"{step}.safetensors", tensors)
        else:
            (folder / step).mkdir()
            write_safetensors(folder / step / "all.safetensors", dict(sorted(tensors.items())))
    about = dump.about
    if ordered:
        about = {"schema": 1, **(about or {"engine": "home"}), "order": order}
    if about:
        (folder / "run.json").write_text(json.dumps(about))
