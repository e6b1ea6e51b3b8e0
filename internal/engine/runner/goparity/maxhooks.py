"""Makes MAX write what every layer gets and gives. Usable on its own: with Capture(folder) as c: build, then with c.into(other): run."""

import ctypes
import dataclasses
import inspect
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager

from . import tap

CHECKPOINT, BINARY, COMPACT, FULL = "BINARY_MAX_CHECKPOINT", "BINARY", "COMPACT", "FULL"  # print styles
LOG = "print.log"  # what the styles that print leave of a step
SAMPLER = "TopKSampler"  # a layer of the pipeline, not of the model


class Capture:
    """Hooks on every named layer, V2 (max.nn) and V3 (max.experimental.nn). Labels are recorded in execution order.

    Prints are part of the compiled graph: enter this before the model is built. Where the files go can be changed between any
    two executions. audit(missing, unused) is called with the names of each load of weights, before anything is compiled.
    With an injector (see maxinject), layers get golden inputs. uncaptured has, by layer, the arguments that hold tensors no hook can record.
    """

    def __init__(self, folder, wants=lambda layer, port: True, audit=lambda missing, unused: None, injector=None, style=CHECKPOINT, precision=6):
        self.folder, self.labels, self.models, self.sessions = folder, [], [], []
        self.style, self.precision, self.injector, self.uncaptured = style, precision, injector, {}
        self.raw = {}  # of the last step of style BINARY: file → dtype and shape, "f32:1x7x32"
        self._asked, self._shown = set(), set()
        self._patched, self._inside = set(), set()
        self._wants, self._audit, self._undo = wants, audit, []

    def __enter__(self):
        import max.engine
        from max.nn.layer import Module

        os.makedirs(self.folder, exist_ok=True)
        self._hook = self._make_hook()
        try:
            self._patch(max.engine.InferenceSession, "__init__", self._session)
            self._patch(Module, "load_state_dict", self._load)
            self._patch_v3()
            if self.injector:
                self._patch(max.engine.InferenceSession, "init_all", self._bind)
        except BaseException:
            self.__exit__()
            raise
        tap.set_recorder(self._tap)
        return self

    def __exit__(self, *error):
        tap.set_recorder(None)
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        self._hook.remove()

    @contextmanager
    def into(self, folder):
        """Sends what is printed meanwhile to another folder, and gives it."""
        os.makedirs(folder, exist_ok=True)
        before = self.folder
        self._direct(folder)
        try:
            if self.style in (COMPACT, FULL):
                with _redirected(1, os.path.join(folder, LOG)):
                    yield folder
            elif self.style == BINARY:
                with tempfile.TemporaryDirectory() as scratch:
                    written = os.path.join(scratch, "log")
                    with _redirected(2, written):
                        yield folder
                    self._read_written(written)
            else:
                yield folder
        finally:
            self._direct(before)

    def _read_written(self, log):
        """Remembers what the engine says of the headerless files that it writes, and passes it on."""
        self.raw = {}
        with open(log, encoding="utf-8", errors="replace") as f:
            for line in f:
                sys.stderr.write(line)
                if m := _WRITTEN.search(line):
                    *sizes, dtype = m[1].split("x")
                    self.raw[os.path.basename(m[2])] = re.sub(r"^([su])i", lambda s: "i" if s[1] == "s" else "u", dtype) + ":" + "x".join(sizes)

    def _direct(self, folder):
        self.folder = folder
        for s in self.sessions:
            self._configure(s)

    def _configure(self, session):
        session.set_debug_print_options(self.style, self.precision, output_directory=self.folder)

    def found(self, folder):
        """What was printed into a folder: label → file, and the name in it where it holds several tensors."""
        if self.style in (COMPACT, FULL):
            with open(os.path.join(folder, LOG), encoding="utf-8", errors="replace") as f:
                printed = {line.split(" = tensor", 1)[0] for line in f if " = tensor" in line}
            return {label: (LOG, label) for label in printed}
        end = ".max" if self.style == CHECKPOINT else ""
        files = set(os.listdir(folder))
        return {label: (label + end,) for _, _, label in self.labels if label + end in files}

    def finish(self):
        """To be called when all is built: looks for weights that no module asked for."""
        self._audit(set(), self._shown - self._asked)

    def _weigh(self, asked, shown):
        self._asked |= asked
        self._shown |= shown
        self._audit(asked - shown, set())

    def _name(self, module):
        """Names the layers from model on; those of a further module that has nothing in common with the ones before, from model_2 on."""
        known = self._hook._known_layers
        if module in known and known[module].layer_name.startswith("model"):
            return  # a part of a module that has its names
        before = list(known.values())
        roots = [known[m] for m in self.models]
        self._hook.name_layers(module)
        if any(known[m] is info for m, info in zip(self.models, roots, strict=True)):
            old = {id(info) for info in before}
            for info in known.values():
                if id(info) not in old:
                    info.layer_name = f"model_{len(self.models) + 1}" + info.layer_name.removeprefix("model")
        self.models.append(module)
        if self.injector:
            self._replace_inputs()

    def _make_hook(self):
        from max.nn.hooks import PrintHook

        capture = self

        class Hook(PrintHook):
            def print_value(self, name, value):
                layer, port = split_label(name)
                if layer.startswith(SAMPLER):
                    return False
                if port.startswith("input_") and type(value) in (list, tuple):
                    if any([self.print_value(f"{name}.{i}", v) for i, v in enumerate(value)]):
                        return False
                if not capture._wants(plain_name(layer), port):
                    return False
                if not super().print_value(name, value):
                    if port.startswith("input_") and _holds_tensors(value):
                        capture._miss(layer, port)
                    return False
                capture.labels.append((layer, port, name))
                return True

            def __call__(self, layer, args, kwargs, outputs):
                capture._called = layer
                super().__call__(layer, args, kwargs, outputs)

            def _wrap_v3_forward(self, module):
                new = module not in self._v3_wrapped
                super()._wrap_v3_forward(module)
                if new and capture.injector:
                    capture._replace_v3(module)

            def summarize(self):
                pass

        return Hook()

    def _miss(self, layer, port):
        """Notes an argument that cannot be recorded, by the name that it has in the model's code."""
        name, number = port.removeprefix("input_"), port.removeprefix("input_").split(".")[0]
        call = getattr(self._called, "forward", None) or self._called.__call__
        names = [p.name for p in inspect.signature(call).parameters.values() if p.kind is not p.VAR_POSITIONAL]
        if number.isdigit() and int(number) < len(names):
            name = names[int(number)] + name.removeprefix(number)
        missed = self.uncaptured.setdefault(layer, [])
        if name not in missed:
            missed.append(name)

    # What replaces the inputs of layers. V2 layers are called through their class, V3 modules through their own forward.

    def _replace_inputs(self):
        from max.nn.layer import Layer, Module

        for layer in list(self._hook._known_layers):
            for cls in type(layer).__mro__ if isinstance(layer, Layer) else ():
                if "__call__" in cls.__dict__ and cls not in (Layer, Module, *self._patched):
                    self._patched.add(cls)
                    self._patch(cls, "__call__", self._injecting)

    def _injecting(self, original):
        signature = inspect.signature(original)

        def call(layer, *args, **kwargs):
            if id(layer) in self._inside or layer not in self._hook._known_layers:
                return original(layer, *args, **kwargs)  # of super(), or of a layer without a name
            self._inside.add(id(layer))
            try:
                try:
                    bound = signature.bind(layer, *args, **kwargs)  # as the hooks number them
                except TypeError:
                    return original(layer, *args, **kwargs)  # the model's own error, from its own line
                args, kwargs = self._replaced(layer, bound.args[1:], bound.kwargs)
                return original(layer, *args, **kwargs)
            finally:
                self._inside.discard(id(layer))

        call.__wrapped__ = original
        return call

    def _replace_v3(self, module):
        hooked = module.forward

        def forward(*args, **kwargs):
            args, kwargs = self._replaced(module, args, kwargs)
            return hooked(*args, **kwargs)

        forward.__wrapped__ = hooked
        object.__setattr__(module, "forward", forward)

    def _replaced(self, layer, args, kwargs):
        info = self._hook._known_layers[layer]
        name = info.layer_name if not info.call_count else f"{info.layer_name}({info.call_count + 1})"

        def one(key, value):
            label = f"{name}-input_{key}"
            if type(value) in (list, tuple):
                return type(value)(one(f"{key}.{i}", v) for i, v in enumerate(value))
            graph_value, wrap = _unwrapped(value)
            if graph_value is None or not self._wants(plain_name(name), f"input_{key}"):
                return value
            new = self.injector.replace(label, graph_value, self._computed)
            return value if new is graph_value else wrap(new)

        return tuple(one(i, v) for i, v in enumerate(args)), {k: one(k, v) for k, v in kwargs.items()}

    def _computed(self, label, value):
        value.print(label)
        self.labels.append((*split_label(label), label))

    def _bind(self, original):
        def init_all(session, compiled, *, weights_registry=None):
            goldens = self.injector.weights(getattr(compiled, "_expected_weights", None))
            if goldens and weights_registry is not None:
                weights_registry = {**weights_registry, **goldens}
            return original(session, compiled, weights_registry=weights_registry)

        return init_all

    def _patch(self, owner, name, make):
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _session(self, original):
        def init(session, *args, **kwargs):
            original(session, *args, **kwargs)
            self.sessions.append(session)
            self._configure(session)

        return init

    def _load(self, original):
        def load_state_dict(module, state_dict, *args, **kwargs):
            # Before the original: with strict it would raise an error of its own, without it says nothing of zeros.
            self._weigh(set(module.raw_state_dict()), set(state_dict))
            result = original(module, state_dict, *args, **kwargs)
            self._name(module)
            return result

        return load_state_dict

    def _patch_v3(self):
        try:
            import max.experimental.nn.module as v3
        except ImportError:
            return
        compilation = getattr(v3, "compilation", None)
        if not hasattr(compilation, "stage"):
            return

        def compile_with_audit(original):
            def compile(module, *args, weights=None, **kwargs):
                if weights is not None:
                    self._weigh({name for name, _ in module.parameters}, set(weights))
                return original(module, *args, weights=weights, **kwargs)

            return compile

        def stage_with_names(original):
            def stage(fn, *args, **kwargs):
                if isinstance(fn, v3.Module):  # a copy of the module that was loaded: only this one is traced
                    self._name(fn)
                    if "allow_subgraphs" in inspect.signature(original).parameters:
                        kwargs["allow_subgraphs"] = False  # a subgraph is traced once and would be recorded once
                return original(fn, *args, **kwargs)

            return stage

        self._patch(v3.Module, "compile", compile_with_audit)
        self._patch(compilation, "stage", stage_with_names)

    def _tap(self, name, value):
        used = {layer for layer, _, _ in self.labels}
        label, n = name, 1
        while label in used:
            n += 1
            label = f"{name}({n})"
        self._hook.print_value(label, value)


_WRITTEN = re.compile(r"Writing debug binary tensor (\S+) of \d+ bytes to '(.+)'")


def _unwrapped(value):
    """The TensorValue of a tensor of the graph, and how a new one is made to look like it. (None, None) for all else."""
    from max.graph import TensorValue

    if isinstance(value, TensorValue):
        return value, lambda new: new
    try:
        from max.experimental.tensor import Tensor
    except ImportError:
        return None, None
    if isinstance(value, Tensor) and not value.real and len(value.graph_values) == 1:
        return TensorValue(value), Tensor.from_graph_value
    return None, None


def _holds_tensors(value, depth=3):
    """Whether a value holds something of the graph that no hook records: a buffer, or tensors inside of an object such as a cache."""
    from max.graph import BufferValue

    if isinstance(value, BufferValue) or _unwrapped(value)[0] is not None:
        return True
    if depth == 0 or isinstance(value, type):
        return False
    if isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, Mapping):
        parts = value.values()
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, f.name, None) for f in dataclasses.fields(value)]
    else:
        return False
    return any(_holds_tensors(v, depth - 1) for v in parts)


@contextmanager
def _redirected(fd, path):
    """Sends what this process writes to a file descriptor to a file, the engine's own buffers included."""
    libc = ctypes.CDLL(None)
    libc.fflush(None)
    kept = os.dup(fd)
    with open(path, "wb") as f:
        os.dup2(f.fileno(), fd)
        try:
            yield
        finally:
            libc.fflush(None)
            os.dup2(kept, fd)
            os.close(kept)


_LABEL = re.compile(r"^(.+)-(input_[^-]+|computed_[^-]+|output(?:[_.][^-]+)?)$")


def split_label(label):
    m = _LABEL.match(label)
    return (m[1], m[2]) if m else (label, "tap")


def plain_name(layer):
    """The name without the words that MAX's lists add: layers.layers.3 is layers.3. Patterns are written for this one."""
    return re.sub(r"\b(\w+)\.layers\.(\d+)", lambda m: f"{m[1]}.{m[2]}" if m[1].startswith("layer") else m[0], layer)
