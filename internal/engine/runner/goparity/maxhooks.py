"""Makes MAX write what every layer gets and gives. Usable on its own: with Capture(folder) as c: build, c.redirect(other), run."""

import inspect
import os
import re

from . import tap

STYLE = "BINARY_MAX_CHECKPOINT"
SAMPLER = "TopKSampler"  # a layer of the pipeline, not of the model


class Capture:
    """Hooks on every named layer, V2 (max.nn) and V3 (max.experimental.nn). Labels are recorded in execution order.

    Prints are part of the compiled graph: enter this before the model is built. Where the files go can be changed between any
    two executions. audit(missing, unused) is called with the names of each load of weights, before anything is compiled.
    """

    def __init__(self, folder, wants=lambda layer, port: True, audit=lambda missing, unused: None):
        self.folder, self.labels, self.models, self.sessions = folder, [], [], []
        self._asked, self._shown = set(), set()
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

    def redirect(self, folder):
        """Sends what is printed from now on to another folder."""
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        for s in self.sessions:
            s.set_debug_print_options(STYLE, output_directory=folder)

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

    def _make_hook(self):
        from max.nn.hooks import PrintHook

        capture = self

        class Hook(PrintHook):
            def print_value(self, name, value):
                layer, port = split_label(name)
                if layer.startswith(SAMPLER) or not capture._wants(plain_name(layer), port):
                    return False
                if not super().print_value(name, value):
                    return False
                capture.labels.append((layer, port, name))
                return True

            def summarize(self):
                pass

        return Hook()

    def _patch(self, owner, name, make):
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _session(self, original):
        def init(session, *args, **kwargs):
            original(session, *args, **kwargs)
            self.sessions.append(session)
            session.set_debug_print_options(STYLE, output_directory=self.folder)

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


_LABEL = re.compile(r"^(.+)-(input_[^-]+|output(?:[_.][^-]+)?)$")


def split_label(label):
    m = _LABEL.match(label)
    return (m[1], m[2]) if m else (label, "tap")


def plain_name(layer):
    """The name without the words that MAX's lists add: layers.layers.3 is layers.3. Patterns are written for this one."""
    return re.sub(r"\b(\w+)\.layers\.(\d+)", lambda m: f"{m[1]}.{m[2]}" if m[1].startswith("layer") else m[0], layer)
