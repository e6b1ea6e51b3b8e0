"""The dump folder: what a run leaves, as package dump of the Go side reads it."""

import json
import math
import os
import shutil
import sys
from datetime import datetime, timezone

from . import arrays, safetensors
from .errors import ModelError, UsageError
from .job import BLIND
from .progress import Clock

try:
    import resource
except ImportError:  # Windows
    resource = None


class Output:
    """The folder of a job, OUT/<case>/<step>/… with OUT/<case>/run.json.

    It is written as OUT.tmp and renamed when complete.
    """

    def __init__(self, job):
        self.job = job
        self.clock = Clock()
        self.versions = {}
        self.about = {}  # of the model, in every run.json
        self.has_weights = False  # a case has those that were loaded
        self.tmp = job.out + ".tmp"
        self._cases = []

    def __enter__(self):
        if os.path.exists(self.job.out):
            raise UsageError(f"{self.job.out} exists already", "a run is written to a new folder, never over an old one")
        shutil.rmtree(self.tmp, ignore_errors=True)
        os.makedirs(self.tmp)
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            shutil.rmtree(self.tmp, ignore_errors=True)
            return
        with self.clock.phase("write"):
            if not self.job.programs_only and not any(c.order for c in self._cases):
                raise ModelError("the run recorded no tensor", "see the patterns of capture, and whether the model calls its layers")
            for c in self._cases:
                c.finish()
            os.rename(self.tmp, self.job.out)

    def case(self, case):
        c = CaseOutput(self, case, os.path.join(self.tmp, case["name"]))
        self._cases.append(c)
        return c


class CaseOutput:
    """The dump of one case."""

    def __init__(self, out, case, path):
        self.out, self.case, self.path = out, case, path
        self.order, self.info = [], {}
        os.makedirs(path)

    def step(self, step):
        """Makes the folder of a step and returns it."""
        path = os.path.join(self.path, str(step))
        os.makedirs(path, exist_ok=True)
        return path

    def returned(self, step, values):
        """Keeps what the model returns, a list of (dtype as .safetensors names it, shape, bytes).

        A blind run has nothing else. A run with hooks has it beside its layers, outside the order.
        """
        job, file = self.out.job, "returned.safetensors"
        safetensors.write(os.path.join(self.step(step), file), [(f"returned-output_{i}", *v) for i, v in enumerate(values)])
        if job.observer == BLIND:
            for i in range(len(values)):
                self.add(step, "returned", f"output_{i}", file, f"returned-output_{i}")

    def token_ids(self):
        """The tokens of the case, a list for each sequence, of the model's own tokenizer where they are not given."""
        from . import tokens

        self.info["token_ids"] = tokens.encode(self.out.job, self.case, tokens.tokenizer_of(self.out.job))
        return self.info["token_ids"]

    def tensors(self, step, tensors):
        """Writes the arrays of a forward pass, of any library, by label: {"encoder.layer.0-output": array}, in their order."""
        file, written = "all.safetensors", []
        for label, value in tensors.items():
            layer, _, port = label.rpartition("-")
            if not layer:
                layer, port = label, "output"
            if self.out.job.wants(layer, port):
                written.append((f"{layer}-{port}", *arrays.raw(value)))
                self.add(step, layer, port, file, f"{layer}-{port}")
        safetensors.write(os.path.join(self.step(step), file), written)

    def add(self, step, layer, port, file, name=None):
        """Lists a tensor as the next in execution order.

        name is that in the file, if it holds several.
        """
        self.order.append([str(step), layer, port, file] + ([name] if name else []))

    def along(self, fed, masks):
        """Keeps which passes of an execution path were fed, and how they were padded."""
        self.info.update(token_ids=self.case["token_ids"], path=self.case["path"], passes=fed)
        self.padded(masks)

    def padded(self, masks):
        """Keeps the masks of the padding, [sequence][token] by pass."""
        masks = dict(masks)
        if 0 in masks:
            self.info["pad_mask"] = masks.pop(0)
        if masks:
            self.info["pad_masks"] = {str(k): m for k, m in masks.items()}

    def finish(self):
        """Writes run.json."""
        job, out = self.out.job, self.out
        run = {
            "schema": 2,
            "engine": job.engine,
            "versions": out.versions,
            "device": job.device,
            "encoding": job.encoding,
            "mode": "injected" if job.injected else "standard",
            "case": self.case["name"],
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "nonce": job.nonce,
            "seconds": {k: round(v, 3) for k, v in out.clock.seconds.items()},
            "peak_rss_bytes": peak_rss(),
            "order": self.order,
            "load_audit": job.load_audit,
        }
        if len(self.case.get("prompts") or []) == 1:
            run["prompt"] = self.case["prompts"][0]
        run.update(out.about)
        run.update(self.info)
        write_json(os.path.join(self.path, "run.json"), run)


def peak_rss():
    """The most memory that this process has had, in bytes; 0 where the system does not say."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _finite(value):
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path, value):
    """Writes an object, each entry of a list of lists on a line of its own. Numbers that JSON has not are names."""
    value = _finite(value)
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        lines = []
        for k, v in value.items():
            if isinstance(v, list) and v and all(isinstance(e, list) for e in v):
                text = "[\n  " + ",\n  ".join(json.dumps(e) for e in v) + "\n ]"
            else:
                text = json.dumps(v, indent=1).replace("\n", "\n ")
            lines.append(f" {json.dumps(k)}: {text}")
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".tmp", path)
