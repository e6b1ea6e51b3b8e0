"""Records what every module of an MLX model gets and returns.

Usable on its own: with Recorder(model) as r: run the model; r.take(). Nothing is computed before take, which evaluates
all at once: MLX is lazy.
"""

import dataclasses
from collections.abc import Mapping

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from . import installed, mlxcache, safetensors, tap
from .errors import ModelError
from .mlxfused import Fused

DTYPES = {
    mx.bool_: "BOOL", mx.uint8: "U8", mx.int8: "I8", mx.uint16: "U16", mx.int16: "I16", mx.uint32: "U32", mx.int32: "I32",
    mx.uint64: "U64", mx.int64: "I64", mx.float16: "F16", mx.bfloat16: "BF16", mx.float32: "F32", mx.float64: "F64",
}  # fmt: skip

DEPTH = 4  # of tuples in tuples


class Classes:
    """Puts a function around what modules of a model do when they are called, until undo.

    around(module, call, args, kwargs) runs the call. Python looks __call__ up in the class, so that it is classes that
    are changed: a module of the same class that is not part of the model runs as ever.
    """

    def __init__(self, model, around, methods=("__call__",)):
        known = {id(m) for m in model.modules()}
        made, self._undo = [], []
        for cls in {type(m) for m in model.modules()}:
            made += [(cls, name, getattr(cls, name)) for name in methods if hasattr(cls, name)]
        for cls, name, original in made:
            own = cls.__dict__.get(name)
            setattr(cls, name, _around(original, name, known, around))
            self._undo.append((cls, name, own))

    def undo(self):
        for cls, name, own in self._undo:
            if own is None:
                delattr(cls, name)
            else:
                setattr(cls, name, own)
        self._undo = []


def _around(original, name, known, around):
    def call(self, *args, **kwargs):
        if id(self) not in known:
            return original(self, *args, **kwargs)
        return around(self, name, lambda: original(self, *args, **kwargs), args, kwargs)

    return call


class Names:
    """The labels of a model's modules: that of the root is model. One that several share is called by where it runs."""

    def __init__(self, model):
        self._of = {}
        for name, module in model.named_modules():
            self._of.setdefault(id(module), []).append(f"model.{name}" if name else "model")

    def label(self, module, running):
        """The label of a module that is called while running, a label or "", runs."""
        names = self._of[id(module)]
        return next((n for n in names if n.startswith(running + ".")), names[0])


class Recorder:
    """Keeps copies of all arrays by layer and port, in the order in which modules end.

    Children come before their parent. Arguments are kept before a module runs, and everything as a copy: x *= 2 changes
    an array that was kept. A second call of a module in one step is name(2). Where a tied embedding serves as the output
    projection, it is lm_head of the module that asks for it.
    """

    def __init__(self, model, wants=lambda layer, port: True):
        self.records = []  # (layer, port, array)
        self._model, self._wants, self._calls, self._running = model, wants, {}, []
        self._names = Names(model)
        self.taken = {}  # by the id of what else a module was given, as a cache, the label of the innermost one

    def __enter__(self):
        self._classes = Classes(self._model, self._call, ("__call__", "as_linear"))
        self._fused = Fused(self._fused_call)
        tap.set_recorder(self._tap)
        return self

    def __exit__(self, *error):
        tap.set_recorder(None)
        self._fused.undo()
        self._classes.undo()

    def take(self, *others):
        """Computes what was recorded since the last call, and others; returns it, and begins a new step."""
        records, self.records, self._calls, self._running = self.records, [], {}, []
        mx.eval([t for *_, t in records], *others)
        return records

    def _call(self, module, method, call, args, kwargs):
        running = self._running[-1] if self._running else None
        if running is not None and running.module is module and method == "__call__":
            return call()  # of its base class
        inside = running.label if running else ""
        frame = _Frame(module, f"{inside}.lm_head" if method == "as_linear" else self._names.label(module, inside))
        for port, value in [(f"input_{i}", a) for i, a in enumerate(args)] + [(f"input_{k}", a) for k, a in kwargs.items()]:
            self._walk(frame.records, frame.label, port, value)
            self.taken[id(value)] = frame.label
        self._running.append(frame)
        try:
            out = call()
        finally:
            self._running.pop()
        self._keep_fused(frame, out)
        for c in [*args, *kwargs.values()]:
            if mlxcache.rotates(c):
                frame.weights = [mlxcache.in_order(c, w.swapaxes(2, 3)).swapaxes(2, 3) for w in frame.weights]
        self._returned(frame, out)
        self._end(frame)
        return out

    def _returned(self, frame, out):
        weights = frame.weights if len(frame.weights) == 1 else []
        if isinstance(out, mx.array) and not weights or not isinstance(out, mx.array) and not fields(out):
            self._walk(frame.records, frame.label, "output", out)
            return
        parts = [("0", out)] if isinstance(out, mx.array) else [(str(k), v) for k, v in fields(out)]
        if len(parts) == 1 and weights:
            parts.append(("1", weights[0]))  # where torch's eager attention returns them
        for key, value in parts:
            self._walk(frame.records, frame.label, f"output_{key}", value)

    def _end(self, frame):
        name = self._count(frame.label)
        self.records += [(name, port, t) for port, t in frame.records]

    # --- fused functions

    def _fused_call(self, name, inputs, out, weights):
        """Keeps a fused call in the module that makes it. One outside of all modules has no name."""
        if not self._running:
            return
        frame = self._running[-1]
        frame.fused.append((name, inputs, out))
        if weights is not None and self._wants(frame.label, "output_1"):
            frame.weights.append(weights())

    def _keep_fused(self, frame, out):
        """Records fused calls as layers of their module, but for one whose result the module returns as it is."""
        for name, inputs, result in frame.fused:
            if result is out:
                continue
            inner = _Frame(None, f"{frame.label}.{name}")
            for port, value in inputs:
                self._walk(inner.records, inner.label, f"input_{port}", value)
            self._walk(inner.records, inner.label, "output", result)
            self._end(inner)

    # --- values

    def _tap(self, name, value):
        frame = _Frame(None, name)
        self._walk(frame.records, name, "tap", value)
        self._end(frame)

    def _count(self, layer):
        self._calls[layer] = n = self._calls.get(layer, 0) + 1
        return layer if n == 1 else f"{layer}({n})"

    def _walk(self, into, layer, port, value, depth=0):
        if isinstance(value, mx.array):
            if self._wants(layer, port):
                into.append((port, mx.contiguous(value)))
        elif depth < DEPTH:
            for key, v in fields(value):
                self._walk(into, layer, f"{port}.{key}", v, depth + 1)


class _Frame:
    """A call that is running."""

    def __init__(self, module, label):
        self.module, self.label = module, label
        self.records, self.fused, self.weights = [], [], []


def fields(value):
    """The named parts of a tuple, list, dict or dataclass. Caches are none: they are objects."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (tuple, list)):
        return list(enumerate(value))
    if isinstance(value, Mapping) and not isinstance(value, nn.Module):
        return [(str(k).replace("-", "_"), v) for k, v in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
    return []


def arrays(value):
    """All arrays of what a model returned."""
    if isinstance(value, mx.array):
        return [value]
    return [a for _, v in fields(value) for a in arrays(v)]


def settings(model):
    """What the model's class read of config.json, with the defaults that it filled in; {} where it keeps none in args."""
    args = getattr(model, "args", None)
    return {k: v for k, v in vars(args).items() if isinstance(v, (bool, int, float, str, list, dict))} if hasattr(args, "__dict__") else {}


def modules(model):
    """Of each layer, its class and where that is defined: see installed.places."""
    return installed.places({f"model.{name}" if name else "model": type(module) for name, module in model.named_modules()})


def raw(t):
    """An array as .safetensors has it: dtype, shape, bytes. One of complex numbers has an axis more."""
    if t.dtype == mx.complex64:
        t = mx.stack([mx.real(t), mx.imag(t)], axis=-1)
    t, shape = mx.contiguous(t), tuple(t.shape)
    dtype = DTYPES[t.dtype]
    if t.dtype == mx.bfloat16:
        t = t.view(mx.uint16)  # numpy has no bfloat16
    return dtype, shape, memoryview(np.ascontiguousarray(np.array(t, copy=False))).cast("B") if t.size else b""


def save(case, step, records):
    """Writes the records of a step to one all.safetensors and lists them in the case's order."""
    folder = case.step(step)
    tensors, seen = [], set()
    for layer, port, t in records:
        name = layer if port == "tap" else f"{layer}-{port}"
        if name in seen:
            raise ModelError(f"two tensors are called {name}", "rename one: names of layers and taps are unique within a step")
        seen.add(name)
        tensors.append((name, *raw(t)))
        case.add(step, layer, port, "all.safetensors", name)
    safetensors.write(f"{folder}/all.safetensors", tensors)
