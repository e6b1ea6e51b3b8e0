"""The graph of a program in the making: which value each tensor has, through views and writes in place."""

import base64
import hashlib
import math
import sys
import weakref

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import programcut, programops, torchhooks
from .programframes import Frames

INLINE = 64  # bytes of a constant that stands in program.json itself
BUFFER = 64 << 10  # bytes up to which a buffer that is saved is kept: a checkpoint may have parameters alone


def renamings(model):
    """What transformers does to the names of a checkpoint when it loads it, the other way round, and likewise with the
    names of old checkpoints."""
    transformers = sys.modules.get("transformers")
    if transformers is None or not isinstance(model, transformers.PreTrainedModel):
        return []
    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
    except ImportError:  # before version 5 nothing was renamed
        return []
    return [[t.reverse_transform() for t in reversed(get_model_conversion_mapping(model, add_legacy=old))] for old in (False, True)]


def checkpoint_name(name, steps):
    """What a weight is called in a checkpoint: "…LayerNorm.gamma". One of all experts is that of what holds them:
    "…block_sparse_moe.experts.gate_up_proj". None: as in the model, or it is a part of a weight."""
    renamed = name
    for t in steps:
        renamed, matched = t.rename_source_key(renamed)
        if matched is None or not hasattr(t, "operations"):
            continue
        holder, experts, _ = renamed.partition(".*.")
        if not experts:
            return None
        renamed = f"{holder}.{name.rpartition('.')[2]}"
    return renamed if renamed != name else None


class Node:
    """What a tensor holds: a value, made anew from its parent when that was written since."""

    __slots__ = ("value", "version", "parent", "step", "shape", "dtype", "lies")

    def __init__(self, value, shape, dtype, parent=None, step=None):
        self.value, self.shape, self.dtype = value, shape, dtype
        self.parent, self.step = parent, step  # None, None: it is no view; step None: a view of all
        self.version = parent.root().version if parent else 0  # of the root, when value was made
        self.lies = None  # of a root: where its numbers lie in memory, (first, strides)

    def root(self):
        node = self
        while node.parent is not None:
            node = node.parent
        return node


class Graph:
    def __init__(self, model, frames):
        self.values, self.ops = [], []
        self.of_data = []  # by value: whether it hangs on weights, floats that the model was given, or random numbers
        self.constants = {}  # key in program.safetensors → tensor on the CPU
        self.frames = Frames(frames)
        self.layer, self.call = "", 1  # that runs now
        self._held = {}  # id of a tensor → (weak reference, node, its storage)
        self.weights, self.aliases, self._storages = {}, {}, {}
        self._name(model)

    def _name(self, model):
        """Names the weights as a checkpoint does: parameters and the buffers that are saved."""
        saved = set(model.state_dict(keep_vars=True))
        named = list(model.named_parameters(remove_duplicate=False)) + [(n, b) for n, b in model.named_buffers(remove_duplicate=False) if n in saved]
        for name, t in named:
            first = self.weights.setdefault(id(t), (name, t))[0]
            if first != name:
                self.aliases[name] = first
            elif storage := storage_of(t):
                self._storages.setdefault(storage, []).append(t)
        own = {name for name, _ in self.weights.values()}
        for steps in renamings(model):
            for name in own:
                alias = checkpoint_name(name, steps)
                if alias and alias not in own:
                    self.aliases.setdefault(alias, name)

    # --- values

    def new(self, shape, dtype, source, of_data=False):
        self.values.append({"id": len(self.values), "shape": list(shape), "dtype": dtype, "from": source})
        self.of_data.append(of_data)
        return len(self.values) - 1

    def emit(self, op, args, outs, draws=False):
        """Appends an operator; outs are (shape, dtype), or None. draws: it makes random numbers. Returns its values."""
        data = draws or any(self.of_data[v] for v in programcut.operands(args))
        made = [None if o is None else self.new(*o, {"op": len(self.ops)}, data) for o in outs]
        entry = {"op": op, "args": args, "out": [None if v is None else f"%{v}" for v in made], "layer": self.layer, "call": self.call}
        stack = self.frames.stack()
        if stack >= 0:
            entry["stack"] = stack
        if draws:
            entry["random"] = True
        self.ops.append(entry)
        return made

    # --- tensors

    def forget(self):
        """Lets go of all tensors: nothing more is recorded."""
        self._held, self.weights, self._storages = {}, {}, {}

    def is_part(self, t):
        """Whether a tensor that was not seen lies in the memory of a weight."""
        return self.held(t) is None and storage_of(t) in self._storages

    def held(self, t):
        """The node of a tensor, None for one that was not seen."""
        entry = self._held.get(id(t))
        if entry is None or entry[0]() is not t or entry[2] != storage_of(t):
            return None
        return entry[1]

    def hold(self, t, node):
        key = id(t)
        held = self._held

        def dead(ref):
            if key in held and held[key][0] is ref:
                del held[key]

        held[key] = (weakref.ref(t, dead), node, storage_of(t))
        if node.parent is None and t.layout == torch.strided:
            node.lies = t.storage_offset(), t.stride()
        return node

    def node(self, t):
        """The node of a tensor: of a weight, a constant or one that was seen."""
        return self.held(t) or self.hold(t, self._outside(t))

    def read(self, t):
        """The value that a tensor has now."""
        return self.value(self.node(t))

    def value(self, node):
        if node.parent is None:
            return node.value
        version = node.root().version
        if node.version != version:
            base = self.value(node.parent)
            if node.step is None:
                node.value = base
            else:
                op, args = node.step
                node.value = self.emit(op, {"self": f"%{base}", **args}, [(node.shape, node.dtype)])[0]
            node.version = version
        return node.value

    def memory(self, node):
        """What a tensor is a view of, in the order of memory: (node, where that begins); None where there are gaps."""
        root = node.root()
        if root.lies is None:
            return None
        first, strides = root.lies
        order = sorted(range(len(strides)), key=lambda i: (-strides[i], -root.shape[i]))
        shape = [root.shape[i] for i in order]
        if any(n > 1 and strides[i] != math.prod(shape[at + 1 :]) for at, (i, n) in enumerate(zip(order, shape))):
            return None
        if order == sorted(order):
            return root, first
        step = ("aten.permute.default", {"dims": order})
        value = self.emit(step[0], {"self": f"%{self.value(root)}", **step[1]}, [(shape, root.dtype)])[0]
        return Node(value, shape, root.dtype, root, step), first

    def write(self, node, value):
        """Gives a tensor another value, and what it is a view of."""
        made = [(node, value)]
        while node.parent is not None:
            parent = node.parent
            if node.step is not None:
                op, args = programops.inverse(node.step, f"%{self.value(parent)}", f"%{value}", parent.shape)
                value = self.emit(op, args, [(parent.shape, parent.dtype)])[0]
            node = parent
            made.append((node, value))
        node.version += 1
        for n, v in made:
            n.value, n.version = v, node.version

    def fresh(self, t, value):
        return self.hold(t, Node(value, list(t.shape), dtype_of(t)))

    def _outside(self, t):
        shape, dtype = list(t.shape), dtype_of(t)
        if id(t) in self.weights and self.weights[id(t)][1] is t:
            return Node(self.new(shape, dtype, self.weight(t), True), shape, dtype)
        for w in self._storages.get(storage_of(t), ()):  # a part of a weight
            offset = t.storage_offset() - w.storage_offset()
            if w is not t and w.dtype == t.dtype and w.is_contiguous() and offset >= 0:
                base = self.node(w)
                step = ("aten.as_strided.default", {"size": shape, "stride": list(t.stride()), "storage_offset": offset})
                value = self.emit(step[0], {"self": f"%{self.value(base)}", **step[1]}, [(shape, dtype)])[0]
                return Node(value, shape, dtype, base, step)
        return Node(self.new(shape, dtype, self.constant(t)), shape, dtype)

    def input(self, t, name, step):
        """Makes a tensor an argument of the model. Its bytes are kept."""
        shape, dtype = list(t.shape), dtype_of(t)
        key = f"input:{step}:{name}"
        if (c := copied(t)) is not None:
            self.constants[key] = c
        return self.hold(t, Node(self.new(shape, dtype, {"input": name, "step": step}, t.is_floating_point() or t.is_complex()), shape, dtype))

    def weight(self, t):
        """Where the value of a weight comes from: its name, and where a small buffer is kept."""
        name = self.weights[id(t)][0]
        if isinstance(t, torch.nn.Parameter) or t.numel() * t.element_size() > BUFFER or t.dtype not in torchhooks.DTYPES or (c := copied(t)) is None:
            return {"weight": name}
        self.constants[f"buffer:{name}"] = c
        return {"weight": name, "buffer": f"buffer:{name}"}

    def constant(self, t):
        """Where the value of a tensor comes from that nothing is known of: its bytes."""
        c = copied(t)
        if c is None:
            return {"constant": "unknown"}
        data = raw(c)
        if len(data) <= INLINE and not t.is_complex():
            return {"data": base64.b64encode(data).decode()}
        key = "sha256:" + hashlib.sha256(f"{c.dtype} {list(t.shape)}\n".encode() + data).hexdigest()[:32]
        if c.dtype in torchhooks.DTYPES:
            self.constants[key] = c
        return {"constant": key}


def dtype_of(t):
    return str(t.dtype).removeprefix("torch.")


def storage_of(t):
    try:
        return t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # it has none: sparse, or a type of its own
        return None


def copied(t):
    """A copy on the CPU, complex numbers as pairs; None for a tensor without data."""
    with _disable_current_modes(), torch.no_grad():
        if t.is_meta or type(t).__name__ == "FakeTensor" or t.layout != torch.strided:
            return None
        t = t.detach()
        if t.is_complex():
            t = torch.view_as_real(t.resolve_conj())
        return t.to("cpu", copy=True, memory_format=torch.contiguous_format)


def raw(c):
    with _disable_current_modes():
        return c.reshape(-1).view(torch.uint8).numpy().tobytes() if c.numel() else b""
