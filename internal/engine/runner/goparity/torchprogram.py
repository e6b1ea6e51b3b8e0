"""The program of a run of the reference, beside the run's tensors."""

import contextlib
import os

import torch

from . import program, programfake, safetensors, torchhooks
from .job import BLIND
from .progress import warn

# How far two implementations of a module may be apart in a port, by its type: their sums have another order.
_APART = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
_STATIC = ("grouped_mm", "batched_mm")  # implementations of experts whose shapes do not depend on what is routed where


def built(job, dtype, settings, auto):
    """The model of a configuration, without weights."""
    return programfake.build(settings, auto, dtype=dtype, trust_remote_code=job.trust_remote_code,
                             attn_implementation=job.config.get("attn_implementation", "eager"))  # fmt: skip


class Recording:
    """Records the program of a case while it is open, where the job asks for it.

    What goes wrong does not end the run: run.json says it as program_error. In a job of programs alone,
    it does.
    """

    def __init__(self, job, dump, model):
        self.job, self.dump, self.model = job, dump, model
        self.asked = job.program and job.observer != BLIND and not job.injected and not dump.case.get("passes")
        self.recorder = None

    def _new(self):
        return program.Recorder(self.model, self.dump.case["name"], self.job.frames)

    def __enter__(self):
        def enter():
            self.recorder = self._new().__enter__()

        self._guarded(enter)

    def __exit__(self, *error):
        self._guarded(lambda: self.recorder.__exit__(*error))

    def ports(self, records):
        """Labels tensors that were made of the last step's: [(layer, port, tensor)]."""
        self._guarded(lambda: [self.recorder.port(*r) for r in records])

    def save(self, again):
        """Writes the program. One whose shapes depend on data is recorded anew by again(save), if the model can do without."""
        self._guarded(lambda: self._save(again))

    def _save(self, again):
        self.recorder.save(self.dump.path)
        if not self.recorder.depends or again is None or self.job.programs_only:
            return
        for name in _STATIC:
            with _experts(self.model, name) as changed:
                if changed and (other := self._anew(again)):
                    other.save(self.dump.path)
                    return

    def _anew(self, again):
        """The program of another run, if its ports are what the first run recorded."""
        recorder, hooks, right = self._new(), torchhooks.Recorder(self.model, self.job.wants), []

        def compare(step, result, n=0):
            alike, reshaped = self._alike(step, hooks.take())
            right.append(alike)
            for label in reshaped:  # it is called otherwise now
                recorder.passes[step]["ports"].pop(label, None)

        try:
            with recorder:
                again(compare)
        except Exception as e:
            warn(f"case {self.dump.case['name']}: no program without shapes that depend on data: {e}")
            return None
        finally:
            hooks.remove()
        return recorder if all(right) and recorder.error is None and not recorder.depends else None

    def _alike(self, step, records):
        """Whether what was recorded is what the first run has, and the labels whose shapes are other ones."""
        kept, reshaped = safetensors.read(os.path.join(self.dump.path, str(step), "all.safetensors")), []
        for layer, port, t in records:
            entry = kept.get(f"{layer}-{port}")
            if entry is None:
                continue
            if tuple(entry[1]) != tuple(t.shape):
                reshaped.append(f"{layer}-{port}")
            elif port.startswith("output") and t.dtype in _APART and t.numel():
                golden = torch.frombuffer(bytearray(entry[2]), dtype=t.dtype).reshape(t.shape).double()
                if not (t.double() - golden).norm() <= _APART[t.dtype] * golden.norm():
                    return False, []
        return True, reshaped

    def _guarded(self, do):
        if not self.asked:
            return
        try:
            do()
        except Exception as e:
            if self.job.programs_only:
                raise
            self.asked = False
            self.dump.info["program_error"] = f"{type(e).__name__}: {e}".splitlines()[0]
            warn(f"case {self.dump.case['name']}: no program was recorded: {e}")


@contextlib.contextmanager
def _experts(model, name):
    """Gives a model's experts another implementation; yields whether it has that."""
    before = getattr(getattr(model, "config", None), "_experts_implementation", None)
    changed = before not in (None, name) and hasattr(model, "set_experts_implementation")
    try:
        if changed:
            model.set_experts_implementation(name)
    except ValueError:
        changed = False
    try:
        yield changed
    finally:
        if changed:
            model.set_experts_implementation(before)
