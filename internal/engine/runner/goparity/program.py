"""Records the program of a torch model: the operators that it ran, functional, with the labels of torchhooks.

    with Recorder(model) as p:
        model(ids)
    p.save("golden")  # program.json, program.safetensors

Every call of the model while the recorder is open is a pass; what one leaves in a cache, the next one
takes. programops says which operators there are. program.safetensors has the constants of more than
64 bytes, and the arguments that the model was called with, as input:STEP:NAME: those that were
known already, as a cache's, have no bytes; and small buffers, which a checkpoint may lack, as buffer:NAME.
No tensor is kept alive, and no byte of a parameter is kept.
programfake.record_fake does the same without weights in memory.

torch.utils._debug_mode.DebugMode is not built upon: it has calls, modules and stacks, but neither views
and writes in place, nor which weight or constant an operand is, nor operators inside of composites.
"""

import json
import os

import torch

from . import programcut, programguards, safetensors, tap, torchhooks
from .errors import ModelError
from .programgraph import Graph
from .programmode import Mode

SCHEMA = 1
FILE, CONSTANTS = "program.json", "program.safetensors"


class Recorder:
    """Records a program while it is open. What the model computes is the same, bit by bit.

    frames says what is kept of the model's source: "text" (lines and expressions), "lines", or None.
    An error of the recorder itself does not reach the model: it is kept in error, and save raises it.
    """

    def __init__(self, model, case="", frames="text"):
        self.model, self.case, self.passes = model, case, []
        self.graph = Graph(model, frames)
        self._hooks = None
        self._mode = Mode(self.graph, lambda: len(self._hooks.calls))
        self._lists = programguards.lists(self._mode.listed)

    def __enter__(self):
        self._hooks = _Hooks(self.model, self._mode, self._ended)
        self._mode.__enter__()
        self._lists.__enter__()
        return self

    def __exit__(self, *error):
        self._lists.__exit__(*error)
        self._mode.__exit__(*error)
        if error[0] is None and self._hooks.records:
            self._ended()  # only parts of the model were called
        self._hooks.remove()
        self.graph.forget()

    @property
    def error(self):
        return self._mode.error

    @property
    def depends(self):
        """Whether shapes or Python depended on data, as in a loop over the experts that were chosen."""
        return self._mode.depends

    def port(self, layer, port, t):
        """Labels a tensor that was made of the last pass's after it, as rows of its cache. Unknown ones are left out."""
        node = self.graph.held(t)
        if node is None or not self.passes:
            return
        value, at, last = self.graph.value(node), len(self.graph.ops), self.passes[-1]
        last["ops"][1] = at
        last["ports"][f"{layer}-{port}"] = [f"%{value}", at, at]

    def _ended(self):
        first = self.passes[-1]["ops"][1] if self.passes else 0
        ports = {f"{layer}-{port}": [f"%{value}", at, until] for layer, port, (value, at, until) in self._hooks.take()}
        self.passes.append({"step": str(len(self.passes)), "ops": [first, len(self.graph.ops)], "ports": ports})

    def program(self):
        """What program.json holds: of all that ran, what a port hangs on."""
        g = self.graph
        values, ops, passes, guards = programcut.needed(g.values, g.ops, self.passes, self._mode.guards.list)
        return {"schema": SCHEMA, "engine": "torch " + torch.__version__.split("+")[0], "case": self.case,
                "frames": [list(f) for f in g.frames.frames], "stacks": [list(s) for s in g.frames.stacks], "modules": torchhooks.modules(self.model),
                "aliases": g.aliases, "values": values, "ops": ops, "passes": passes, "guards": guards}  # fmt: skip

    def save(self, folder):
        """Writes program.json and program.safetensors into a folder."""
        if self.error:
            raise ModelError(f"the program was not recorded: {type(self.error).__name__}: {self.error}") from self.error
        if not self.passes:
            raise ModelError("the model was not called while its recorder was open")
        program = self.program()
        kept = programcut.constants(program["values"])
        safetensors.write(os.path.join(folder, CONSTANTS), [(k, *torchhooks.raw(c)) for k, c in sorted(self.graph.constants.items()) if k in kept])
        with open(os.path.join(folder, FILE), "w", encoding="utf-8") as f:
            _write(f, program)


def _write(f, program):
    """Compact, and each entry of a list on a line of its own."""
    parts = []
    for key, value in program.items():
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in value) + "\n]"
        else:
            text = json.dumps(value, separators=(",", ":"))
        parts.append(f"{json.dumps(key)}:{text}")
    f.write("{" + ",\n".join(parts) + "}\n")


class _Hooks(torchhooks.Recorder):
    """Labels as torchhooks has them; a record is (value, operators before it, operators when its call ended)."""

    def __init__(self, model, mode, ended):
        self.mode, self.graph, self._end = mode, mode.graph, ended
        self.calls = []  # layers that run, with their number of call
        self._step = 0
        self._others = tap.recorder()  # which keeps what is tapped, too
        super().__init__(model)

    def remove(self):
        super().remove()
        tap.set_recorder(self._others)

    def take(self):
        self._step += 1
        return super().take()

    def _guarded(self, hook):
        """A hook that never fails the model."""

        def guarded(*args):
            if self.mode.error is None:
                try:
                    hook(*args)
                except Exception as e:
                    self.mode.error = e

        return guarded

    def _copy(self, layer, port, t):
        if t.layout != torch.strided or t.is_quantized or t.is_nested:
            return None
        if t.is_complex():
            t = torch.view_as_real(t.resolve_conj())
        return self.graph.read(t), len(self.graph.ops), len(self.graph.ops)

    def _before(self, layer):
        inner = super()._before(layer)

        def hook(module, args, kwargs):
            self.calls.append((layer, self._calls.get(layer, 0) + 1))
            if len(self.calls) == 1:
                self.graph.frames.begin()
                if layer == "model":
                    self._arguments(args, kwargs)
            self._runs()
            inner(module, args, kwargs)

        return self._guarded(hook)

    def _after(self, layer):
        inner = super()._after(layer)

        def hook(module, args, kwargs, output):
            _, inputs = self._waiting[-1]
            for i, (port, (value, at, _)) in enumerate(inputs):
                inputs[i] = (port, (value, at, len(self.graph.ops)))
            inner(module, args, kwargs, output)
            self.mode.guards.leave(len(self.calls), output, len(self.graph.ops))
            self.calls.pop()
            self._runs()
            if not self.calls:
                self.graph.frames.end()
                if layer == "model":
                    self._end()

        return self._guarded(hook)

    def _tap(self, name, value):
        if self._others is not None:
            self._others(name, value)
        self._guarded(super()._tap)(name, value)

    def _runs(self):
        self.graph.layer, self.graph.call = self.calls[-1] if self.calls else ("", 1)

    def _arguments(self, args, kwargs):
        """Makes the tensors that the model is called with its inputs, but those of a pass before."""
        found = []
        self._each(found, [(str(i), a) for i, a in enumerate(args)] + list(kwargs.items()))
        for name, t in found:
            if t.layout == torch.strided and self.graph.held(t) is None:
                self.graph.input(t, name, str(self._step))

    def _each(self, found, named, depth=0):
        for name, value in named:
            if isinstance(value, torch.Tensor):
                found.append((name, value))
            elif depth < torchhooks.DEPTH:
                self._each(found, [(f"{name}.{k}", v) for k, v in self.fields(value)], depth + 1)
