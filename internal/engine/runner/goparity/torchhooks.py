"""Records what every module of a torch model gets and returns.

Usable on its own: r = Recorder(model); run the model; r.take(); r.remove().
"""

import dataclasses
import sys
from collections.abc import Mapping

import torch

from . import installed, safetensors, tap
from .errors import ModelError
from .progress import warn

DTYPES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
    torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
}  # fmt: skip
for _name, _code in {"uint16": "U16", "uint32": "U32", "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
                     "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0"}.items():  # fmt: skip
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = _code

DEPTH = 4  # of tuples in tuples


class Recorder:
    """Keeps copies of all tensors by layer and port, in the order in which modules end.

    Children come before their parent. Inputs are copied before a module runs: one that works in
    place does not change them. The root is called model; a second call of a module in one step is
    name(2).
    """

    def __init__(self, model, wants=lambda layer, port: True):
        self.records = []  # (layer, port, tensor on the CPU)
        self._wants, self._calls, self._waiting, self._handles, self._skipped = wants, {}, [], [], set()
        for layer, module in layers(model):
            self._handles.append(module.register_forward_pre_hook(_eager(self._before(layer)), with_kwargs=True))
            self._handles.append(module.register_forward_hook(_eager(self._after(layer)), with_kwargs=True))
        tap.set_recorder(self._tap)

    def take(self):
        """Returns what was recorded since the last call, and begins a new step."""
        records, self.records = self.records, []
        self.next_step()
        return records

    def next_step(self):
        """Counts calls anew."""
        self._calls, self._waiting = {}, []

    def remove(self):
        for h in self._handles:
            h.remove()
        self._handles = []
        tap.set_recorder(None)

    def _before(self, layer):
        def hook(module, args, kwargs):
            inputs = []
            for port, value in [(f"input_{i}", a) for i, a in enumerate(args)] + [(f"input_{k}", a) for k, a in kwargs.items()]:
                self._walk(inputs, layer, port, value)
            self._waiting.append((layer, inputs))

        return hook

    def _after(self, layer):
        def hook(module, args, kwargs, output):
            _, records = self._waiting.pop()
            if isinstance(output, torch.Tensor) or not self.fields(output):
                self._walk(records, layer, "output", output)
            else:
                for key, value in self.fields(output):
                    self._walk(records, layer, f"output_{key}", value)
            self._keep(self._count(layer), records)

        return hook

    def _keep(self, layer, records):
        self.records += [(layer, port, t) for port, t in records]

    def _tap(self, name, value):
        records = []
        self._walk(records, name, "tap", value)
        self._keep(self._count(name), records)

    def _count(self, layer):
        self._calls[layer] = n = self._calls.get(layer, 0) + 1
        return layer if n == 1 else f"{layer}({n})"

    def _walk(self, into, layer, port, value, depth=0):
        if isinstance(value, torch.Tensor):
            if self._wants(layer, port):
                t = self._copy(layer, port, value)
                if t is not None:
                    into.append((port, t))
        elif depth < DEPTH:
            for key, v in self.fields(value):
                self._walk(into, layer, f"{port}.{key}", v, depth + 1)

    @staticmethod
    def fields(value):
        """The named parts of a tuple, list, dict, ModelOutput or dataclass."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return list(zip(value._fields, value))
        if isinstance(value, (tuple, list)):
            return list(enumerate(value))
        if isinstance(value, Mapping):
            return [(str(k).replace("-", "_"), v) for k, v in value.items()]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
        return []

    def _copy(self, layer, port, t):
        kept = plain(t)
        if kept is None and (layer, port) not in self._skipped:
            self._skipped.add((layer, port))
            warn(f"{layer}-{port} is not recorded: a tensor of {t.dtype} on {t.device}")
        return kept


def layers(model):
    """The modules by label. What torch.compile puts around one is no layer of its own."""
    for name, module in model.named_modules():
        if not hasattr(module, "_orig_mod"):
            name = ".".join(part for part in name.split(".") if part != "_orig_mod")
            yield f"model.{name}" if name else "model", module


def compiled(model):
    """Whether torch.compile made a part of the model."""
    return any(hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in model.modules())


def called_compiled():
    """Whether a function of torch.compile is running."""
    frame = sys._getframe()
    while frame and frame.f_code.co_name != "compile_wrapper":
        frame = frame.f_back
    return frame is not None


def _eager(hook):
    """A hook that torch.compile does not trace: it splits the graph there."""
    return torch.compiler.disable(hook) if "torch._dynamo" in sys.modules else hook


def plain(t):
    """A copy of a tensor on the CPU, dense and contiguous; None for one that .safetensors cannot have."""
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        return _plain(t)
    with torch._C._DisableTorchDispatch():  # a recorder of programs need not see what is done beside the model
        return _plain(t)


def _plain(t):
    t = t.detach()
    if t.layout != torch.strided:
        t = t.to_dense()
    if t.is_quantized:
        t = t.dequantize()
    if t.is_complex():
        t = torch.view_as_real(t.resolve_conj())  # one more axis: real and imaginary part
    if t.is_meta or t.dtype not in DTYPES:
        return None
    return t.to("cpu", copy=True, memory_format=torch.contiguous_format)


def modules(model):
    """Of each layer, its class and where that is defined: see installed.places."""
    return installed.places({layer: type(module) for layer, module in layers(model)})


def raw(t):
    """A tensor on the CPU as .safetensors has it: dtype, shape, bytes."""
    data = t.reshape(-1).view(torch.uint8).numpy() if t.numel() else b""
    return DTYPES[t.dtype], tuple(t.shape), memoryview(data).cast("B") if t.numel() else data


def returned(value):
    """The tensors that a model returns, for CaseOutput.returned."""
    values = [value] if isinstance(value, torch.Tensor) else [v for _, v in Recorder.fields(value)]
    return [raw(v.detach().to("cpu").contiguous()) for v in values if isinstance(v, torch.Tensor) and v.dtype in DTYPES]


def save(case, step, records):
    """Writes the records of a step to one all.safetensors and lists them in the case's order."""
    folder = case.step(step)
    tensors, seen = [], {}
    for layer, port, t in records:
        name = layer if port == "tap" else f"{layer}-{port}"
        if name in seen:
            raise ModelError(f"two tensors are called {name}", "rename one: names of layers and taps are unique within a step")
        seen[name] = True
        tensors.append((name, *raw(t)))
        case.add(step, layer, port, "all.safetensors", name)
    safetensors.write(f"{folder}/all.safetensors", tensors)
