"""What a model keeps between runs: buffers and counters, as they were when it was loaded.

Transformers' dynamic rotary embeddings grow with the longest sequence that they have seen, and some
versions forget to shrink: without this a golden would depend on the case before it.
"""


class State:
    def __init__(self, model):
        self._kept = [(m, dict(m._buffers), _attributes(m)) for m in model.modules()]

    def restore(self):
        """Puts back what the runs since have replaced. A buffer changed in place stays changed."""
        for module, buffers, attributes in self._kept:
            module._buffers.clear()
            module._buffers.update(buffers)
            for name in _attributes(module).keys() - attributes.keys():
                delattr(module, name)
            vars(module).update(attributes)


def _attributes(module):
    """The module's own attributes; those with an underscore are torch's: parameters, hooks, buffers."""
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}
