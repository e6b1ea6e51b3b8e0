"""Oracle files: Python of the user's own that builds a model."""

import importlib.util
import os
import sys

from .errors import UsageError


class Spec:
    """What an oracle is told: the case, its inputs, and what the job asks of the model."""

    def __init__(self, job, case):
        self.case = case["name"]
        self.prompts = case.get("prompts") or []
        self.messages = case.get("messages") or []
        self.token_ids = case.get("token_ids") or []
        self.images = [path for paths in case.get("images") or [] for path in paths]
        self.steps = case.get("steps") or 1
        self.model = job.model
        self.revision = job.revision
        self.device = job.device
        self.dtype = job.encoding or "float32"
        self.max_layers = job.max_layers
        self.hf_config_overrides = dict(job.overrides)


def load(job, function):
    """Loads the job's oracle file and returns its function of this name."""
    if not os.path.isfile(job.oracle):
        raise UsageError(f"there is no oracle file {job.oracle}")
    spec = importlib.util.spec_from_file_location("parity_oracle", job.oracle)
    module = importlib.util.module_from_spec(spec)
    sys.modules["parity_oracle"] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(job.oracle)))
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise UsageError(f"{job.oracle} has no function {function}(spec)")
    return getattr(module, function)
