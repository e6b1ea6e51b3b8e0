"""Calls layers of a MAX model with golden inputs in place of those that were computed."""

import inspect

from .maxgraph import plain_name, split_label, unwrapped


class Calls:
    """Replaces inputs by those of an injector (see maxinject).

    Layers of max.nn (V2) are called through their class, modules of max.experimental.nn (V3) through
    their own forward. capture is the maxhooks.Capture that names the layers and keeps the labels.
    """

    def __init__(self, capture, injector):
        self._capture, self._injector = capture, injector
        self._patched, self._inside = set(), set()

    def replace_v2(self, layers):
        """Patches the classes of the layers, each once."""
        from max.nn.layer import Layer, Module

        for layer in layers:
            for cls in type(layer).__mro__ if isinstance(layer, Layer) else ():
                if "__call__" in cls.__dict__ and cls not in (Layer, Module, *self._patched):
                    self._patched.add(cls)
                    self._capture.patch(cls, "__call__", self._injecting)

    def _injecting(self, original):
        signature = inspect.signature(original)

        def call(layer, *args, **kwargs):
            if id(layer) in self._inside or self._capture.call_name(layer) is None:
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

    def replace_v3(self, module):
        hooked = module.forward

        def forward(*args, **kwargs):
            args, kwargs = self._replaced(module, args, kwargs)
            return hooked(*args, **kwargs)

        forward.__wrapped__ = hooked
        object.__setattr__(module, "forward", forward)

    def _replaced(self, layer, args, kwargs):
        name = self._capture.call_name(layer)

        def one(key, value):
            if type(value) in (list, tuple):
                return type(value)(one(f"{key}.{i}", v) for i, v in enumerate(value))
            graph_value, wrap = unwrapped(value)
            if graph_value is None or not self._capture.wants(plain_name(name), f"input_{key}"):
                return value
            new = self._injector.replace(f"{name}-input_{key}", graph_value, self._computed)
            return value if new is graph_value else wrap(new)

        return tuple(one(i, v) for i, v in enumerate(args)), {k: one(k, v) for k, v in kwargs.items()}

    def _computed(self, label, value):
        value.print(label)
        self._capture.labels.append((*split_label(label), label))

    def bind(self, original):
        """Makes InferenceSession.init_all bind the goldens beside the model's weights."""

        def init_all(session, compiled, *, weights_registry=None):
            goldens = self._injector.weights(getattr(compiled, "_expected_weights", None))
            if goldens and weights_registry is not None:
                weights_registry = {**weights_registry, **goldens}
            return original(session, compiled, weights_registry=weights_registry)

        return init_all
