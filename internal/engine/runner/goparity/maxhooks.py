"""Records what every layer of a MAX model gets and returns.

Usable on its own: with Capture(Printer(folder)) as c: build the model; with c.printer.into(other): run it.
"""

import inspect
import os

from . import installed, tap
from .maxcalls import Calls
from .maxgraph import holds_tensors, plain_name, split_label

_SAMPLER = "TopKSampler"  # a layer of the pipeline, not of the model


class Capture:
    """Hooks on every named layer, V2 (max.nn) and V3 (max.experimental.nn).

    labels is in execution order. Prints are part of the compiled graph: enter this before the model is
    built. audit(missing, unused) is called with the names of each load of weights, before anything is
    compiled. With an injector (see maxinject), layers get golden inputs. uncaptured has, by layer, the
    arguments that hold tensors which no hook can record.
    """

    def __init__(self, printer, wants=lambda layer, port: True, audit=lambda missing, unused: None, injector=None):
        self.printer, self.wants, self.injector = printer, wants, injector
        self.labels, self.models, self.uncaptured = [], [], {}  # labels: (layer, port, label)
        self.registry = {}  # weights that were bound to graphs, by name
        self._audit, self._asked, self._shown = audit, set(), set()
        self._calls = Calls(self, injector) if injector else None
        self._undo = []

    def __enter__(self):
        import max.engine
        from max.nn.layer import Module

        os.makedirs(self.printer.folder, exist_ok=True)
        self._hook = self._make_hook()
        try:
            self.patch(max.engine.InferenceSession, "__init__", self._session)
            self.patch(Module, "load_state_dict", self._load)
            self._patch_v3()
            if hasattr(max.engine.InferenceSession, "init_all"):
                self.patch(max.engine.InferenceSession, "init_all", self._bound)
            if self._calls:
                self.patch(max.engine.InferenceSession, "init_all", self._calls.bind)
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

    def patch(self, owner, name, make):
        """Puts make(original) in place of an attribute, until the end of this capture."""
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def modules(self):
        """Of each layer, its class and where that is defined: see installed.places."""
        return installed.places({info.layer_name: type(layer) for layer, info in self._hook._known_layers.items()})

    def call_name(self, layer):
        """The name of the present call of a layer, None if it has none."""
        if layer not in self._hook._known_layers:
            return None
        info = self._hook._known_layers[layer]
        return info.layer_name if not info.call_count else f"{info.layer_name}({info.call_count + 1})"

    def finish(self):
        """To be called when all is built: looks for weights that no module asked for."""
        self._audit(set(), self._shown - self._asked)

    # --- weights and names

    def _session(self, original):
        def init(session, *args, **kwargs):
            original(session, *args, **kwargs)
            self.printer.add(session)

        return init

    def _bound(self, original):
        def init_all(session, compiled, *, weights_registry=None):
            result = original(session, compiled, weights_registry=weights_registry)
            self.registry.update({n: w for n, w in (weights_registry or {}).items() if not n.startswith("parity_golden.")})
            return result

        return init_all

    def _load(self, original):
        def load_state_dict(module, state_dict, *args, **kwargs):
            # Before the original: with strict it would raise an error of its own, without it says nothing of zeros.
            self._weigh(set(module.raw_state_dict()), set(state_dict))
            result = original(module, state_dict, *args, **kwargs)
            self._name_layers(module)
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
                    self._name_layers(fn)
                    if "allow_subgraphs" in inspect.signature(original).parameters:
                        kwargs["allow_subgraphs"] = False  # a subgraph is traced once and would be recorded once
                return original(fn, *args, **kwargs)

            return stage

        self.patch(v3.Module, "compile", compile_with_audit)
        self.patch(compilation, "stage", stage_with_names)

    def _weigh(self, asked, shown):
        self._asked |= asked
        self._shown |= shown
        self._audit(asked - shown, set())

    def _name_layers(self, module):
        """Names the layers, from model on.

        Those of a further module that shares none with the earlier ones are named from model_2 on.
        """
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
        if self._calls:
            self._calls.replace_v2(list(known))

    # --- tensors

    def _make_hook(self):
        from max.nn.hooks import PrintHook

        capture = self

        class Hook(PrintHook):
            def print_value(self, name, value):
                layer, port = split_label(name)
                if layer.startswith(_SAMPLER):
                    return False
                if port.startswith("input_") and type(value) in (list, tuple):
                    if any([self.print_value(f"{name}.{i}", v) for i, v in enumerate(value)]):
                        return False
                if not capture.wants(plain_name(layer), port):
                    return False
                if not super().print_value(name, value):
                    if port.startswith("input_") and holds_tensors(value):
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
                if new and capture._calls:
                    capture._calls.replace_v3(module)

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

    def _tap(self, name, value):
        used = {layer for layer, _, _ in self.labels}
        label, n = name, 1
        while label in used:
            n += 1
            label = f"{name}({n})"
        self._hook.print_value(label, value)
