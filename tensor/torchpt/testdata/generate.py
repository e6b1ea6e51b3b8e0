"""Writes the files of this folder with the real torch.save (torch 2.15) and want.json, which says what is in them.

    pip install torch==2.15.0 numpy ml_dtypes && python generate.py

Files whose name begins with refused_ have no entry: reading them is an error.
"""

import collections
import io
import json
import os
import sys
import zipfile

import numpy
import torch

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../internal/tensortest")
from reference import entry  # noqa: E402

torch.manual_seed(7)
expected = {}

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOATS8 = [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
INTS = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64]
BIG = {torch.int64: (-(2**63), 2**63 - 1), torch.uint64: (2**53 + 1, 2**63 - 1)}


def describe(name, t):
    t = t.detach()
    wide = t.to(torch.float64 if t.dtype.is_floating_point else torch.int64)
    return entry(name, str(t.dtype).removeprefix("torch."), wide.numpy())


def tensors(x, path=()):
    if isinstance(x, torch.Tensor):
        yield describe(".".join(path), x)
    elif isinstance(x, dict):
        for k, v in x.items():
            yield from tensors(v, path + (str(k),))
    elif isinstance(x, (list, tuple)):
        for i, v in enumerate(x):
            yield from tensors(v, path + (str(i),))


def save(name, x, **options):
    torch.save(x, name, **options)
    expected[name] = list(tensors(x))


def rewrite(name, source, edit=lambda record, data: data, **options):
    """Copies an archive with Python's zipfile."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(name, "w", **options) as new:
        for record in old.namelist():
            info = zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0))
            info.compress_type = options.get("compression", zipfile.ZIP_STORED)
            new.writestr(info, edit(record, old.read(record)))
    expected[name] = expected[source]


def special(dtype):
    if dtype == torch.bool:
        return torch.tensor([[True, False, True]])
    if dtype in INTS:
        low, high = BIG.get(dtype, (torch.iinfo(dtype).min, torch.iinfo(dtype).max))
        return torch.tensor([[low, high, 0], [1, 2, 100]], dtype=dtype)
    if dtype in FLOATS8:
        return torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype).reshape(16, 16)
    info = torch.finfo(dtype)
    inf = float("inf")
    values = [0.0, -0.0, 1.0, -1.5, inf, -inf, float("nan"), info.max, info.min, info.tiny, info.tiny / 2, 1 / 3]
    return torch.tensor(values, dtype=torch.float64).to(dtype).reshape(3, 4)


every = {str(d).removeprefix("torch."): special(d) for d in [torch.bool] + INTS + FLOATS8 + FLOATS}
save("dtypes.pt", every)
save("tensor.pt", torch.randn(2, 3))
save("scalar.pt", torch.tensor(2.5, dtype=torch.bfloat16))
save("empty.pt", {"none": torch.zeros(0), "rows": torch.zeros(0, 3, dtype=torch.int64), "end": torch.arange(4)[4:], "gap": torch.zeros(2, 3)[:, 3:]})

base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
odd = torch.arange(7, dtype=torch.int8)
views = {
    "base": base,
    "transposed": base.transpose(0, 2),
    "sliced": base[1, 1:, ::2],
    "offset": base.reshape(-1)[5:9],
    "expanded": base[:1, :1].expand(2, 3, 4),
    "permuted": base.to(torch.bfloat16).permute(2, 0, 1),
    "scalar": base[1, 2, 3],
    "diagonal": base[0].diagonal(),
    "windows": base.reshape(-1).unfold(0, 4, 2),
    "odd_bytes": odd[:6].view(torch.int16),
    "uint16": torch.arange(12, dtype=torch.int32).to(torch.uint16).reshape(3, 4).t(),
}
save("views.pt", views)
del views["odd_bytes"]  # neither layout of it can be loaded by torch itself, and the flat one is ambiguous
save("flat_views.pt", views, _use_new_zipfile_serialization=False)

model = torch.nn.Sequential(collections.OrderedDict(fc=torch.nn.Linear(3, 2), norm=torch.nn.BatchNorm1d(2)))
save("state_dict.pt", model.state_dict())
save("state_dict_parameters.pt", model.state_dict(keep_vars=True))
save("flat_state_dict.pt", model.state_dict(), _use_new_zipfile_serialization=False)
marked = torch.nn.Parameter(torch.ones(2))
marked.note = "an attribute"
plain = torch.ones(3)
plain.note = "an attribute"
save("parameters.pt", {"parameter": torch.nn.Parameter(torch.randn(2)), "marked": marked, "plain": plain, "buffer": torch.nn.Buffer(torch.zeros(1))})

shared = torch.arange(3)
nested = {
    "a": {"b": [torch.ones(2), (torch.zeros(1), {"c": torch.full((2, 2), 3)})]},
    7: torch.tensor([7]),
    "tuple": (shared, shared, shared[1:]),
    "ordered": collections.OrderedDict(x=torch.tensor(1.5), y=None),
    "number": 3,
    "large": [2**31, 2**40, -(2**40), 2**63, 2**100, -1, 0],
    "real": 0.5,
    "complex": 1 + 2j,
    "text": "two",
    "long": "é" * 300,
    "bytes": b"\x00\xff",
    "no_bytes": b"",
    "array": bytearray(b"abc"),
    "none": None,
    "flags": [True, False],
    "set": {1, 2},
    "frozen": frozenset({3}),
    "empty": [(), [], {}, set()],
    ("odd", "key"): 5,
    "shape": torch.Size([2, 3]),
    "dtype": torch.float32,
    "device": torch.device("cpu"),
    "many": list(range(1100)),
}
save("nested.pt", nested)
for protocol in (3, 4, 5):
    save(f"nested_protocol{protocol}.pt", nested, pickle_protocol=protocol)
save("flat.pt", nested, _use_new_zipfile_serialization=False)
save("flat_protocol4.pt", nested, _use_new_zipfile_serialization=False, pickle_protocol=4)
save("flat_dtypes.pt", every, _use_new_zipfile_serialization=False)
save("old_without_byteorder.pt", torch.arange(5), _disable_byteorder_record=True)

buffer = io.BytesIO()
torch.save({"x": torch.arange(6).reshape(2, 3)}, buffer)
with open("buffer.pt", "wb") as f:
    f.write(buffer.getvalue())
expected["buffer.pt"] = list(tensors({"x": torch.arange(6).reshape(2, 3)}))

torch.serialization.set_crc32_options(False)
save("without_crc.pt", {"x": torch.randn(3)})
torch.serialization.set_crc32_options(True)

# Other machines and other tools.
widths = {}
for i, d in enumerate([torch.bool] + INTS + FLOATS8 + FLOATS):
    widths[str(i)] = d.itemsize


def swap(record, data):
    folder, _, key = record.partition("/")
    if key == "byteorder":
        return b"big"
    if not key.startswith("data/"):
        return data
    return numpy.frombuffer(data, f"u{widths[key[5:]]}").byteswap().tobytes()


rewrite("big_endian.pt", "dtypes.pt", swap)
rewrite("deflated.pt", "views.pt", compression=zipfile.ZIP_DEFLATED)

# What is refused.
torch.save({"ok": torch.ones(1), "z": torch.ones(2, dtype=torch.complex64)}, "refused_complex.pt")
torch.save({"z": torch.ones(2, dtype=torch.complex64)}, "refused_flat_complex.pt", _use_new_zipfile_serialization=False)
torch.save({"z": torch.ones(2, dtype=torch.complex32)}, "refused_complex32.pt")
torch.save({"w": torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)}, "refused_float4.pt")
torch.save(torch.ones(2, dtype=torch.complex64).conj().imag, "refused_negated.pt")
torch.save(torch.eye(2).to_sparse(), "refused_sparse.pt")
torch.save(torch.eye(2).to_sparse_csr(), "refused_sparse_csr.pt")
torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "refused_quantised.pt")
torch.save(torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), "refused_nested.pt")
torch.save(torch.ones(2, device="meta"), "refused_meta.pt")
torch.save(torch.nn.Linear(2, 2), "refused_module.pt")
torch.save(torch.max(torch.eye(2), 0), "refused_return_type.pt")
torch.save({"x": numpy.ones(2)}, "refused_numpy.pt")
torch.save(torch.ones(2).untyped_storage(), "refused_storage.pt")
torch.save({"epoch": 3, "name": "none"}, "refused_no_tensor.pt")
torch.save({"s": {torch.ones(1)}}, "refused_set.pt")
torch.save({(1, 2): torch.ones(1)}, "refused_key.pt")
torch.save({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}, "refused_same_name.pt")
loop = [torch.ones(1)]
loop.append({"again": loop})
torch.save(loop, "refused_loop.pt")
around = ([torch.ones(1)],)
around[0].append(around)
torch.save(around, "refused_tuple_loop.pt")
torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), "refused_script.pt")

json.dump(expected, open("want.json", "w"), indent=None, separators=(",", ":"))
