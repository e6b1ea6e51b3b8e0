"""goparity.record and goparity.dump: one's own run, as a dump."""

import contextlib
import re
from fnmatch import fnmatchcase

from . import arrays, tap
from .dumpfolder import DumpFolder
from .errors import ModelError, UsageError

_PORT = re.compile(r"(.+)-(output|output[_.].+|input_.+|computed_.+|tap)")


@contextlib.contextmanager
def record(model, folder, inputs=True, program=True, only=None, overwrite=False):
    """Records what every module of a model gets and returns while the block runs, to a new folder.

        with goparity.record(model, "dump"):
            model(ids)

    model is a torch.nn.Module, an mlx.nn.Module, or None: then goparity.parity_tap(x, "name") alone
    records, arrays of any library. Each call of the model is a step. What the model computes is not
    changed.

    inputs   what modules get, too, not only what they return
    program  torch: also what ran, operator by operator (program.json), by which a candidate is judged
    only     a pattern, or several, of modules: "layers.0.*", "*.mlp"; it may fit the end of a name
    overwrite  replace the dump that is there

    An exception goes on to the caller: what was recorded up to there can be read, and says that it is
    unfinished.
    """
    dump = DumpFolder(folder, overwrite)
    hooks = None
    try:
        hooks = _hooks(model)(model, dump, _wants(inputs, only), program)
        yield
        hooks.close(None)
        if not dump.order:
            raise ModelError(f"nothing was recorded in {folder}: was the model called, and does `only` fit a module's name?")
    except BaseException as e:
        if hooks and not hooks.closed:
            hooks.close(e)
        dump.close(e)
        raise
    dump.close()


def dump(folder, tensors, step=0, **run):
    """Adds arrays to a dump, in their order: {"model.layers.0": array}, of numpy, torch, MLX, JAX, or what has DLPack.

    A name is a layer, whose output it is, or has its port after a dash: "layers.0-input_0". step is the
    forward pass. Other arguments are keys of run.json: engine="mine", token_ids=[[1, 15]], encoding="bfloat16".
    """
    into = DumpFolder.reopen(folder)
    into.info.update(run)
    for name, value in tensors.items():
        if not name:
            raise UsageError("an array has no name: it is that of a layer, whose output it is")
        m = _PORT.fullmatch(name)  # at the last dash, as packages label splits it
        into.add(step, *(m.groups() if m else (name, "output")), *arrays.raw(value))
    into.close()


def _hooks(model):
    match arrays.library(model):
        case "torch":
            from .torchrecord import Hooks
        case "mlx":
            from .mlxrecord import Hooks
        case _ if model is None:
            Hooks = _Taps
        case _:
            raise UsageError(f"a {type(model).__module__}.{type(model).__qualname__} cannot be recorded: want a torch.nn.Module or an mlx.nn.Module; "
                             "goparity.dump takes arrays of any engine")  # fmt: skip
    return Hooks


class _Taps:
    """Records what is tapped, and no modules."""

    def __init__(self, model, dump, wants, program):
        self.closed, self._dump, self._wants, self._calls, self._outer = False, dump, wants, {}, tap.recorder()
        tap.set_recorder(self._tap)

    def _tap(self, name, value):
        if not self._wants(name, "tap"):
            return
        self._calls[name] = n = self._calls.get(name, 0) + 1
        self._dump.add(0, name if n == 1 else f"{name}({n})", "tap", *arrays.raw(value))

    def close(self, error):
        self.closed = True
        tap.set_recorder(self._outer)


def _wants(inputs, only):
    patterns = [only] if isinstance(only, str) else list(only or [])

    def wants(layer, port):
        if not inputs and port.startswith("input"):
            return False
        return not patterns or any(fnmatchcase(layer, p) or fnmatchcase(layer, "*." + p) for p in patterns)

    return wants
