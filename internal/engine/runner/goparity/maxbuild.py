"""Builds a model in MAX: settings, hooks, and hints for a model that MAX does not take."""

import os

from . import config, maxinject, tokens, weights
from .errors import InfraError, JobError, ModelError, UsageError, blame
from .job import BLIND
from .maxhooks import Capture
from .maxprint import Printer


class Prepared:
    """What every pipeline needs: tokenizer, token ids of each case, and the engine's settings."""

    def __init__(self, job, folder):
        limits = _limits(folder, job)
        self.tokenizer = tokens.tokenizer_of(job)
        self.ids = {c["name"]: tokens.encode(job, c, self.tokenizer) for c in job.cases}
        self.settings = _settings(job, limits, list(self.ids.values()))
        self.config = config.load(folder) if os.path.isdir(folder) else {}


def _limits(folder, job):
    if os.path.isdir(folder):
        return config.Limits(config.load(folder))
    from transformers import AutoConfig

    try:
        read = AutoConfig.from_pretrained(folder, revision=job.revision, trust_remote_code=job.trust_remote_code)
    except OSError as e:
        said = str(e).splitlines()[0]
        raise InfraError(f"{folder}: {said}", "get the model into the hub's cache first, allow the hub with HF_HUB_OFFLINE=0, or name a folder") from e
    return config.Limits(read.to_dict())


def _settings(job, model, ids_by_case):
    """The engine's settings: those of the job, completed by what a recorded run needs."""
    rows = max(max(map(len, c["passes"])) if c.get("passes") else len(ids) for c, ids in zip(job.cases, ids_by_case))
    longest = 1 + max(len(s) + (c.get("steps") or 1) for c, ids in zip(job.cases, ids_by_case) for s in ids)  # _decode asks for one more
    settings = dict(job.config)
    settings.setdefault("max_batch_size", rows)
    if "max_length" not in settings:
        length = 128
        while length < longest:
            length *= 2
        settings["max_length"] = min(length, model.longest) if model.longest else length
    if settings["max_batch_size"] < rows:
        raise UsageError(f"engine.max_batch_size is {settings['max_batch_size']}, but a case has {rows} sequences")
    for case, ids in zip(job.cases, ids_by_case):
        limit = min(x for x in (settings["max_length"], model.longest) if x) if model.longest else settings["max_length"]
        tokens.check(case, ids, model.vocab, limit, case.get("steps") or 1)
    if job.encoding:
        settings["quantization_encoding"] = job.encoding
    if job.revision:
        settings["huggingface_model_revision"] = job.revision
    if job.trust_remote_code:
        settings["trust_remote_code"] = True
    return settings


def capture(job, folder, case=None):
    """Returns the hooks for a model that is about to be built.

    folder takes what is printed outside the steps. With a case, layers get its golden inputs.
    """
    injector = maxinject.Injector(case["golden"], maxinject.room(job.cases)) if case else None
    return Capture(Printer(folder), job.wants, lambda missing, unused: weights.audit(job, missing, unused, "max"), injector)


def build(job, clock, hooks, make):
    """Returns make(), which compiles the model. Its errors are told in the words of the fixture."""
    with clock.phase("compile"):
        try:
            made = make()
        except (JobError, MemoryError):
            raise
        except Exception as e:
            if blame(e)[0] == "bug":
                raise
            raise _refusal(e) from e
    hooks.finish()
    if not hooks.labels and job.observer != BLIND:
        raise ModelError("MAX built the model, but no layer of it was recorded",
                         "see the patterns of capture; or its architecture builds layers in a way that the hooks do not see")  # fmt: skip
    return made


# What MAX says of a model that it does not take, and what to do about it.
_HINTS = [
    ("No architecture found", "MAX does not know this architecture: write the model with max.graph in oracle.py, task: module"),
    ("not supported on this device", "choose another encoding for this device in model.encodings"),
    ("not supported by MAX engine", "MAX has this architecture in other encodings only, max list shows which; those but q4_k, q4_0 and q6_k need a GPU"),
    ("compatible weights cannot be found", "the checkpoint has no weights in this encoding: name the one it has in model.encodings"),
    ("Unable to infer max_length", "engine.max_length is over the model's max_position_embeddings"),
    ("Failed to load tokenizer", "MAX needs the tokenizer's files beside the weights"),
    ("CUDA_ERROR_OUT_OF_MEMORY", "the GPU has too little free memory: fewer layers, a smaller engine.max_length, or another GPU"),
]


def _refusal(e):
    text = f"{type(e).__name__}: {e}"
    hint = next((h for known, h in _HINTS if known in text), "")
    if blame(e)[0] == "infra":
        return InfraError(f"MAX cannot build the model: {text[:3000]}", hint)
    return ModelError(f"MAX refuses the model: {text[:3000]}", hint)
