"""Sees every operator of torch, and adds it to the graph."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import programapart, programcut, programguards, programops
from .programgraph import Node, dtype_of

_RANDOM = torch.Tag.nondeterministic_seeded


class Mode(TorchDispatchMode):
    """Passes every call on as it is: what the model computes is the same, bit by bit.

    depth() says how many calls of modules run; without one only what is made of the model's tensors is of
    interest. An error of this recorder is kept in error, and the model goes on without it.
    """

    def __init__(self, graph, depth):
        super().__init__()
        self.graph, self.depth, self.error = graph, depth, None
        self.guards = programguards.Guards()
        self.depends = False  # a shape, or what Python did, depended on data
        self._shadow = 0  # in a decomposition, whose results stand for those of the operator

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.error or func.namespace == "prim" or not self._concerns(args, kwargs):
            return func(*args, **kwargs)
        op = _Op.of(func)
        if op.composite:
            with self:
                return func.decompose(*args, **kwargs)
        call = _Call(self, op, args, kwargs)
        try:
            call.record()
        except Exception as e:
            if call.failed:
                raise  # the model's own
            self.error = e
        return call.out if call.ran else call.run()

    def _concerns(self, args, kwargs):
        if self.depth():
            return True
        return any(self.graph.held(t) is not None for t in tensors_in([args, kwargs]))

    def left(self, value, numbers):
        """Notes that Python was given the numbers of a value; None: what was made of it otherwise."""
        depth = self.depth()
        if depth and self.graph.of_data[value]:
            self.depends = True
            self.guards.add(value, numbers, len(self.graph.ops), depth)

    def listed(self, t, numbers):
        """Notes that Python was given a tensor's numbers as lists."""
        try:
            if self.error is None and self.depth() and self.graph.held(t) is not None:
                numbers = programguards.flat(numbers)
                self.left(self.graph.read(t), numbers and [encoded(x) for x in numbers])
        except Exception as e:
            self.error = e

    def decomposed(self, table, func, args, kwargs):
        """Runs a decomposition, for its operators alone; None where it fails."""
        if self._shadow > 8:
            return None
        self._shadow += 1
        try:
            with self:
                return table(*args, **kwargs)
        except Exception:  # of torch's: the operator is recorded as it is
            return None
        finally:
            self._shadow -= 1


class _Op:
    """What of an operator does not hang on its arguments."""

    _known = {}

    @classmethod
    def of(cls, func):
        op = cls._known.get(func)
        if op is None:
            op = cls._known[func] = cls(func)
        return op

    def __init__(self, func):
        schema = func._schema
        self.func = func
        self.namespace, self.name = schema.name.split("::")
        self.overload = func._overloadname
        self.full = f"{self.namespace}.{self.name}.{self.overload}"
        self.arguments = [(a.name, a.default_value if a.has_default_value() else None, a.alias_info is not None and a.alias_info.is_write)
                          for a in schema.arguments]  # fmt: skip
        self.mutable = any(w for *_, w in self.arguments)
        self.random = _RANDOM in func.tags
        self.inplace_view = torch.Tag.inplace_view in func.tags
        aten = self.namespace == "aten"
        self.known = aten and programops.known(self.name)
        self.view = aten and self.name in programops.VIEWS
        self.composite = not self.random and self.name not in programops.FUSED and _is_composite(func)
        self.decomposition = None if self.known or self.composite else _decomposition(func)

    def named(self, args, kwargs):
        """The arguments by the names of the schema, with defaults."""
        return {name: args[i] if i < len(args) else kwargs.get(name, default) for i, (name, default, _) in enumerate(self.arguments)}

    def functional(self):
        """The operator that returns what this one writes; None if there is none."""
        if self.namespace != "aten":
            return None
        name = {"_index_put_impl_": "index_put"}.get(self.name) or (self.name if self.name.endswith("__") else self.name.removesuffix("_"))
        packet = getattr(torch.ops.aten, name, None)
        overloads = packet.overloads() if packet else []
        if self.overload in overloads and not self.overload.endswith("out"):
            return getattr(packet, self.overload)
        mine = [(a.name, str(a.type)) for a in self.func._schema.arguments if a.name != "out"]
        for f in (getattr(packet, o) for o in overloads):  # other names of the same arguments
            if [(a.name, str(a.type)) for a in f._schema.arguments] == mine and torch._C._dispatch_has_kernel(f.name()):
                return f
        return None


def _is_composite(func):
    """Whether torch's own kernel is made of other operators. Decompositions in Python may give other bits."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return key not in func.py_kernels and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)


def _decomposition(func):
    import torch._decomp

    if programapart.of(func.name()):
        return programapart.of(func.name())
    if func.name() == "aten::mkldnn_rnn_layer":
        return _rnn_layer
    if func.name() in ("aten::_embedding_bag", "aten::_embedding_bag_forward_only"):
        return _bags
    if func in torch._decomp.decomposition_table:
        return torch._decomp.decomposition_table[func]
    return func.decompose if func._can_decompose() else None


def _rnn_layer(x, w, u, b, c, hx, cx, reverse, batch_sizes, mode, hidden_size, num_layers, has_biases, *rest):
    """An LSTM's layer, which is what this operator is used for, step by step."""
    if mode != 2 or batch_sizes:
        raise NotImplementedError("a recurrent layer of another kind")
    from torch._decomp.decompositions import one_layer_lstm

    y, (h, c) = one_layer_lstm(x, (hx, cx), [w, u, b, c] if has_biases else [w, u], has_biases, reverse)
    return y, h, c


def _bags(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=-1):
    """Rows of a table, added (mode 0), averaged (1) or their largest numbers taken (2) from one offset to the next."""
    first = offsets[:-1] if include_last_offset else offsets
    bag = torch.searchsorted(first, torch.arange(indices.shape[0], device=indices.device), right=True) - 1
    rows, counts = weight[indices], torch.ones_like(indices, dtype=weight.dtype)
    out = torch.zeros(first.shape[0], weight.shape[1], dtype=weight.dtype, device=weight.device)
    if padding_idx >= 0:
        counts = (indices != padding_idx).to(weight.dtype)
    if mode == 2:
        rows = rows.masked_fill((counts == 0)[:, None], float("-inf"))
        most = torch.full_like(out, float("-inf")).scatter_reduce(0, bag[:, None].expand_as(rows), rows, "amax")
        return most.masked_fill(most == float("-inf"), 0.0)
    out = out.index_add(0, bag, rows * (counts if per_sample_weights is None else counts * per_sample_weights)[:, None])
    if mode == 0:
        return out
    return out / torch.zeros_like(out[:, 0]).index_add(0, bag, counts).clamp(min=1)[:, None]


class _Call:
    """One call of an operator."""

    def __init__(self, mode, op, args, kwargs):
        self.mode, self.graph, self.op, self.args, self.kwargs = mode, mode.graph, op, args, kwargs
        self.ran, self.failed, self.out = False, False, None

    def run(self):
        """Does what was asked for, once."""
        try:
            self.out = self.op.func(*self.args, **self.kwargs)
        except BaseException:
            self.failed = True
            raise
        self.ran = True
        return self.out

    def record(self):
        op = self.op
        if op.inplace_view:
            self._moved()
        elif op.mutable:
            self._written()
        elif self.draws():
            self._recorded(self.encoded(), self.run())
        else:
            self._made()

    def draws(self):
        """Whether an operator draws random numbers: one that may need not, as dropout of a share of 0."""
        if not self.op.random:
            return False
        named = self.op.named(self.args, self.kwargs)
        return not (named.get("dropout_p") == 0 or named.get("p") == 0 or named.get("train") is False or named.get("training") is False)

    def encoded(self, named=None):
        named = self.op.named(self.args, self.kwargs) if named is None else named
        return {k: self._encode(v) for k, v in named.items() if k not in programops.UNSAID}

    def _encode(self, x):
        if isinstance(x, torch.Tensor):
            return f"%{self.graph.read(x)}"
        if isinstance(x, (list, tuple)):
            return [self._encode(y) for y in x]
        return encoded(x)

    # --- what a call makes

    def _made(self):
        """New tensors, and views."""
        if self.op.decomposition is not None and not self.op.view:
            shadow = self.mode.decomposed(self.op.decomposition, self.op.func, self.args, self.kwargs)
            if shadow is not None:
                nodes = [self.graph.node(t) for t in tensors_in(shadow)]
                if self._stands_for(nodes, self.run()):
                    return
        encoded = self.encoded()
        self._recorded(encoded, self.out if self.ran else self.run())

    def _stands_for(self, nodes, out):
        """Gives the results of an operator, or the first of them, the values of its decomposition, where they fit."""
        outs = list(tensors_in(out))
        if not 0 < len(nodes) <= len(outs) or any((list(t.shape), dtype_of(t)) != (n.shape, n.dtype) for t, n in zip(outs, nodes)):
            return False
        for t, n in zip(outs, nodes):
            if self.graph.held(t) is None:
                self.graph.hold(t, n)
        return True

    def _recorded(self, encoded, out):
        op, graph = self.op, self.graph
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if not any(isinstance(t, torch.Tensor) for t in outs):
            for v in programcut.operands(encoded):
                self.mode.left(v, [self._encode(x) for x in outs] if op.name == "_local_scalar_dense" else None)
            return
        self.mode.depends = self.mode.depends or op.name in programops.DEPENDENT and any(graph.of_data[v] for v in programcut.operands(encoded))
        meta = [(list(t.shape), dtype_of(t)) if isinstance(t, torch.Tensor) else None for t in outs]
        if op.view:
            self._viewed(encoded, outs, meta)
            return
        full, args, n = programops.rewritten(op.name, op.overload, encoded, meta) if op.known else (op.full, encoded, len(outs))
        if op.name == "_to_copy" and meta[0][1] == graph.values[int(encoded["self"][1:])]["dtype"]:
            full = programops.IDENTITY
        if full is programops.IDENTITY:
            graph.fresh(outs[0], int(args["self"][1:]))
            return
        fresh = [m is not None and i < n and graph.held(t) is None for i, (t, m) in enumerate(zip(outs, meta))]
        for t, v in zip(outs, graph.emit(full, args, [m if f else None for m, f in zip(meta, fresh)], self.draws())):
            if v is not None:
                graph.fresh(t, v)

    def _viewed(self, encoded, outs, meta):
        op, graph = self.op, self.graph
        base = graph.node(self.args[0] if self.args else self.kwargs["self"])
        if op.name == "as_strided":
            base, encoded = self._strided(base, encoded)
        steps = programops.steps(op.name, op.overload, encoded, meta)
        if len(outs) == 1 and meta[0] == (base.shape, base.dtype) and op.name in ("view", "expand", "slice", "_reshape_alias"):
            steps = [None]
        if steps == [None]:
            values = [graph.value(base)]
        else:
            full, args, _ = programops.rewritten(op.name, op.overload, encoded, meta)
            values = graph.emit(full, args, meta)
        for t, v, s, (shape, dtype) in zip(outs, values, steps, meta):
            if graph.held(t) is None:
                graph.hold(t, Node(v, shape, dtype, base, s))

    def _strided(self, base, encoded):
        """Strides are those of memory, whatever view they are asked of: they are told of what lies there, row by row."""
        memory = self.graph.memory(base)
        if memory is None:
            return base, {**encoded, "self": f"%{self.graph.value(base)}", "gaps": True}  # no replay can tell
        node, first = memory
        offset = encoded["storage_offset"]
        offset = (self.args[0].storage_offset() if offset is None else offset) - first
        return node, {**encoded, "self": f"%{self.graph.value(node)}", "storage_offset": offset}

    # --- what a call writes

    def _bytes(self, t):
        return self.graph.new(t.shape, dtype_of(t), self.graph.constant(t))

    def _moved(self):
        """A view in place: the same tensor object with other strides."""
        graph, op, t = self.graph, self.op, self.args[0]
        base, encoded = graph.node(t), self.encoded()
        self.run()
        name, meta = op.name.removesuffix("_"), (list(t.shape), dtype_of(t))
        source = self.args[1] if len(self.args) > 1 else None
        if name in programops.VIEWS:
            step = programops.steps(name, op.overload, encoded, [meta])[0]
            value = graph.value(base)
            if step is not None:
                value = graph.emit(step[0], {"self": f"%{value}", **step[1]}, [meta])[0]
            graph.hold(t, Node(value, *meta, base, step))
        elif name == "set" and isinstance(source, torch.Tensor) and source.shape == t.shape:
            graph.hold(t, graph.node(source))
        else:  # it has other memory now
            graph.hold(t, Node(self._bytes(t), *meta))

    def _written(self):
        graph, op = self.graph, self.op
        named = op.named(self.args, self.kwargs)
        targets = [t for name, _, w in op.arguments if w for t in tensors_in(named[name])]
        values = self._becomes(named, targets)
        nodes = [graph.held(t) for t in targets]
        self.run()
        for t, node, value in zip(targets, nodes, values):
            if node is None:
                graph.fresh(t, value)
            else:
                graph.write(node, value)

    def _becomes(self, named, targets):
        """The values that the tensors will have which a call writes."""
        graph, op = self.graph, self.op
        meta = [(list(t.shape), dtype_of(t)) for t in targets]
        if op.namespace == "aten" and op.name in ("copy_", "fill_", "zero_"):
            return [self._overwritten(named, targets[0], *meta[0])]
        functional = op.functional()
        if functional is None or self.draws():
            for t in targets:
                graph.node(t)
            return graph.emit(op.full, self.encoded(named), meta, self.draws())
        f = _Op.of(functional)
        passed = {k: v for k, v in named.items() if any(k == a for a, *_ in f.arguments)}
        if not f.known and (table := functional.decompose if f.composite else f.decomposition) is not None:
            shadow = self.mode.decomposed(table, functional, (), passed)
            nodes = [graph.node(t) for t in tensors_in(shadow)]
            if nodes and len(nodes) == len(targets):
                return [self._fitted(graph.value(n), *m) for n, m in zip(nodes, meta)]
        full, args, _ = programops.rewritten(f.name, f.overload, self.encoded(passed), meta) if f.known else (f.full, self.encoded(passed), 0)
        if full is programops.IDENTITY:
            return [int(args["self"][1:])]
        return graph.emit(full, args, meta)

    def _overwritten(self, named, t, shape, dtype):
        """The value of a tensor that is written whole. What it was before counts only where it is a part of another."""
        graph = self.graph
        if graph.is_part(t):
            graph.node(t)
        source = named["src"] if self.op.name == "copy_" else named.get("value", 0)
        if isinstance(source, torch.Tensor):
            return self._fitted(graph.read(source), shape, dtype)
        value = self._encode(source) if "value" in named else programops.fill(0, dtype)
        return graph.emit("aten.full.default", {"size": shape, "fill_value": value, "dtype": dtype}, [(shape, dtype)])[0]

    def _fitted(self, value, shape, dtype):
        """A value in another shape, by broadcasting, and type."""
        graph = self.graph
        have = graph.values[value]
        if have["dtype"] != dtype:
            value = graph.emit("aten._to_copy.default", {"self": f"%{value}", "dtype": dtype}, [(have["shape"], dtype)])[0]
        if have["shape"] != shape:
            value = graph.emit("aten.expand.default", {"self": f"%{value}", "size": shape, "implicit": False}, [(shape, dtype)])[0]
        return value


def encoded(x):
    """A number, type or text as a program has it."""
    if isinstance(x, torch.dtype):
        return str(x).removeprefix("torch.")
    if isinstance(x, float):
        return {"float": repr(x)} if x != x or x in (float("inf"), float("-inf")) or x == int(x) else x
    if x is None or isinstance(x, (bool, int, str)):
        return x
    return int(x) if isinstance(x, torch.SymInt) else str(x)


def tensors_in(x):
    """The tensors in lists and dicts, in order."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from tensors_in(y)
    elif isinstance(x, dict):
        yield from tensors_in(list(x.values()))
