"""goparity.record of MLX: every module's arrays, written at the end of each call of the model."""

import mlx.core as mx
from mlx.utils import tree_flatten

from . import installed, mlxhooks


class Hooks(mlxhooks.Recorder):
    """Records into a dump while it is open. Each call of the model is a step, at whose end all is computed at once."""

    def __init__(self, model, dump, wants, program):
        super().__init__(model, wants)
        self.closed, self._dump, self._step = False, dump, 0
        dump.info |= about(model)
        self.__enter__()

    def _call(self, module, method, call, args, kwargs):
        outermost = not self._running and module is self._model
        if outermost:
            self._tokens(args, kwargs)
        out = super()._call(module, method, call, args, kwargs)
        if outermost:
            self._write()
        return out

    def _tokens(self, args, kwargs):
        """Keeps the ids of the first call, where it has some."""
        ids = kwargs.get("inputs", args[0] if args else None)
        if self._step == 0 and isinstance(ids, mx.array) and ids.ndim == 2 and mx.issubdtype(ids.dtype, mx.integer):
            self._dump.info.setdefault("token_ids", ids.tolist())

    def _write(self):
        for layer, port, t in self.take():
            self._dump.add(self._step, layer, port, *mlxhooks.raw(t))
        self._step += 1

    def close(self, error):
        """Ends the recording; error is what ended the run, of which what can be computed is kept."""
        self.closed = True
        self.__exit__()
        if self.records:
            self._write()


def about(model):
    """What run.json says of a model: who runs it, where, in which type, by which settings."""
    run = {"engine": "mlx", "versions": installed.versions("mlx", "mlx-lm"), "modules": mlxhooks.modules(model), "config": mlxhooks.settings(model),
           "device": "gpu" if mx.default_device() == mx.Device(mx.gpu, 0) else "cpu"}  # fmt: skip
    sizes = {}
    for _, t in tree_flatten(model.parameters()):
        if mx.issubdtype(t.dtype, mx.floating):
            sizes[t.dtype] = sizes.get(t.dtype, 0) + t.size
    if sizes:
        run["encoding"] = str(max(sizes, key=sizes.get)).rpartition(".")[2]
    return run
