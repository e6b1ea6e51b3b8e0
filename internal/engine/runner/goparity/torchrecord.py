"""goparity.record of torch: every module's tensors, written while the model runs, and its program."""

import os
from collections import Counter

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import config, installed, program, tap, torchhooks
from .errors import JobError, UsageError
from .progress import warn


class Hooks(torchhooks.Recorder):
    """Records into a dump while it is open. Each call of the model is a step."""

    def __init__(self, model, dump, wants, with_program):
        self.closed, self._dump, self._step, self._outer = False, dump, 0, tap.recorder()
        dump.info |= about(model)
        super().__init__(model, wants)
        self._program = None
        if with_program and not torchhooks.compiled(model):  # a program's recorder makes torch.compile run nothing but eager code
            self._guarded(lambda: self._begin(model))

    def _begin(self, model):
        recorder = program.Recorder(model, self._dump.info["case"])
        recorder.__enter__()
        self._program = recorder

    def _copy(self, layer, port, t):
        with _disable_current_modes():  # what a recorder does is no part of the program
            return super()._copy(layer, port, t)

    def _keep(self, layer, records):
        with _disable_current_modes():
            for port, t in records:
                self._dump.add(self._step, layer, port, *torchhooks.raw(t))

    def _before(self, layer):
        inner = super()._before(layer)

        def hook(module, args, kwargs):
            if layer == "model":
                if self._program and torchhooks.called_compiled():
                    raise UsageError("the model is compiled, and while its program is recorded it runs as if it were not",
                                     "give goparity.record what torch.compile returned, or program=False")  # fmt: skip
                if self._waiting:
                    self._failed()
                self._tokens(args, kwargs)
            inner(module, args, kwargs)

        return hook

    def _after(self, layer):
        inner = super()._after(layer)

        def hook(module, args, kwargs, output):
            inner(module, args, kwargs, output)
            if layer == "model":
                self._end_step()

        return hook

    def _end_step(self):
        self.next_step()
        self._step += 1

    def _tokens(self, args, kwargs):
        """Keeps the ids of the first call, where it has some."""
        ids = kwargs.get("input_ids", args[0] if args else None)
        if self._step == 0 and isinstance(ids, torch.Tensor) and ids.dim() == 2 and ids.dtype in (torch.int32, torch.int64) and not ids.is_meta:
            with _disable_current_modes():
                self._dump.info.setdefault("token_ids", ids.tolist())

    def _flush(self):
        """Writes what modules were given that did not end, outermost first."""
        waiting, self._waiting = self._waiting, []
        for layer, records in waiting:
            self._keep(self._count(layer), records)

    def _failed(self):
        """Ends the step of a call that failed, and that the caller goes on from. A program has whole calls alone."""
        self._flush()
        self._end_step()
        if self._program:
            self._guarded(lambda: self._program.__exit__(None, None, None))
            self._program = None
            self._dump.info["program_error"] = "a call of the model failed"

    def close(self, error):
        """Ends the recording; error is what ended the run."""
        self.closed = True
        if self._program:
            self._guarded(lambda: self._program.__exit__(type(error) if error else None, error, None))
        self.remove()
        tap.set_recorder(self._outer)
        if error:
            self._flush()
        elif self._program:
            self._guarded(lambda: self._program.save(self._dump.folder))

    def _guarded(self, do):
        """A program that cannot be recorded does not end the run: run.json says why."""
        try:
            do()
        except Exception as e:
            self._program = None
            self._dump.info["program_error"] = f"{type(e).__name__}: {e}".splitlines()[0]
            warn(f"no program was recorded: {e}" + (f": {e.hint}" if isinstance(e, JobError) and e.hint else ""))


def about(model):
    """What run.json says of a model: who runs it, where, in which type, by which settings."""
    tensors = [t for t in list(model.parameters()) + list(model.buffers()) if t.is_floating_point()]
    run = {"engine": "torch", "versions": installed.versions("torch", "transformers"), "modules": torchhooks.modules(model)}
    if tensors:
        encodings = Counter()
        for t in tensors:
            encodings[t.dtype] += t.numel()
        run["encoding"] = str(encodings.most_common(1)[0][0]).removeprefix("torch.")
        run["device"] = "gpu" if tensors[0].is_cuda else tensors[0].device.type
    settings = getattr(model, "config", None)
    if hasattr(settings, "to_dict"):
        run["config"] = config.read_by(settings)
        kernel = getattr(settings, "_attn_implementation", None)
        if isinstance(kernel, str):
            run["attn_implementation"] = kernel
    return run
