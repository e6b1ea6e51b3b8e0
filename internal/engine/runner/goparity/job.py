"""The job: what the caller asks for, read from a JSON file and checked."""

import json
import os
import re

from .errors import ModelError, UsageError

# Observers: what the model returns is written beside the layers' tensors (SEEN), or alone, from a
# model without hooks (BLIND).
SEEN, BLIND = "seen", "blind"


class Job:
    """A job. Keys that the file does not have are the zero value of their kind."""

    def __init__(self, raw):
        get = raw.get
        self.engine = get("engine", "")
        self.engine_file = get("engine_file", "")  # of the user's own
        self.nonce = get("nonce", "")
        self.out = get("out", "")
        self.model = get("model", "")
        self.local = get("local", False)
        self.revision = get("revision") or None
        self.task = get("task", "")
        self.trust_remote_code = get("trust_remote_code", False)
        self.tokenizer = get("tokenizer") or self.model
        self.oracle = get("oracle", "")
        self.device = get("device") or "cpu"
        self.encoding = get("encoding", "")
        self.max_layers = get("max_layers") or 0
        self.overrides = get("hf_config_overrides") or {}
        self.config = get("engine_config") or {}
        self.injected = get("mode") == "injected"
        self.programs_only = get("mode") == "program"  # of token ids, without weights
        self.program = get("program", False) or self.programs_only  # record what the reference runs
        self.frames = {"none": None}.get(get("frames"), get("frames") or "text")  # of the source that ran
        self.observer = get("observer", "")
        self.activations = get("activations")  # how the inputs of products are rounded
        self.kv_type = get("kv_type")  # how the cache rounds what it keeps
        self.adapter = get("adapter", "")  # folder of a LoRA that is added at run time
        self.kv_cache = get("kv_cache", False)  # record the keys and values that the cache holds
        self.weights = get("weights", 0)  # how many bytes of weights are kept in the dump at most; less than 0: all
        self.weight_hashes = get("weight_hashes", False)  # their hashes are
        self.load_audit = {"missing": [], "unused": [], "allowed": []}
        self.sanity = get("sanity_tokens", 0)
        self.skip_sanity = get("skip_sanity", "")
        self.cases = get("cases") or []
        # The patterns of capture and allow_missing, as the caller has translated them.
        expressions = get("expressions") or {}
        self._layers, self._ports, self._missing = ([re.compile(e) for e in expressions.get(k) or []]
                                                    for k in ("layers", "ports", "allow_missing"))  # fmt: skip
        self._check()

    @classmethod
    def load(cls, path):
        try:
            with open(path, encoding="utf-8") as f:
                raw = json.load(f)
        except (OSError, ValueError) as e:
            raise UsageError(f"{path}: {e}") from e
        if not isinstance(raw, dict) or raw.get("schema") != 1:
            raise UsageError(f"{path}: not a job of schema 1", "the runner and the program that calls it are of different versions")
        return cls(raw)

    def _check(self):
        if not self.out or not self.cases:
            raise UsageError("the job names no output folder or no case")
        if self.device not in ("cpu", "gpu"):
            raise UsageError(f"unknown device {self.device!r}", "cpu and gpu are known")
        if self.observer not in ("", SEEN, BLIND):
            raise UsageError(f"unknown observer {self.observer!r}", f"{SEEN} and {BLIND} are known")
        if (self.kv_cache or self.kv_type) and self.task != "text-generation":
            raise UsageError(f"a model of task {self.task} has no KV cache")
        if (self.activations or self.adapter) and self.oracle:
            raise UsageError("activations are rounded, and adapters added, in models that torch loads from a folder")
        if self.frames not in ("text", "lines", None):
            raise UsageError(f"unknown frames {self.frames!r}", "text, lines and none are known")
        if self.programs_only:
            self._check_program()
        if self.injected and not all(c.get("golden") for c in self.cases):
            raise UsageError("an injected run needs the golden inputs of each case")
        if self.task == "module" and not self.oracle:
            raise UsageError("task module needs an oracle file")
        if self.task != "module" and not self.model:
            raise UsageError("the job names no model")
        for c in self.cases:
            if not c.get("passes"):
                continue
            if self.task == "module" or self.injected:
                what = "an injected run" if self.injected else "a module"
                raise UsageError(f"case {c['name']}: {what} has no execution paths: its inputs are not tokens alone")
            if not c.get("path") or not c.get("token_ids"):
                raise UsageError(f"case {c['name']}: passes need path and token_ids")
        if self.local:
            if not os.path.isdir(self.model):
                raise ModelError(f"there is no model folder {self.model}", "model.path is relative to fixture.yaml")
            if not os.path.isfile(os.path.join(self.model, "config.json")):
                raise ModelError(f"{self.model} has no config.json", "a model folder holds config.json, *.safetensors and the tokenizer's files")

    def _check_program(self):
        for c in self.cases:
            if c.get("passes"):
                raise UsageError(f"case {c['name']}: a program is recorded of one forward pass over a whole sequence, not of passes")
            if self.task == "module":
                continue
            if not c.get("token_ids"):
                raise UsageError(f"case {c['name']} has no token_ids, of which its program is recorded")
            if (c.get("steps") or 1) > 1 and not c.get("forced"):
                raise UsageError(f"case {c['name']}: decode steps need forced tokens: a program without weights chooses none")

    def wants(self, layer, port):
        """Whether a port is to be recorded.

        An element output_0.1 is, too, if its whole port output_0 is.
        """
        if self.observer == BLIND:
            return False
        if self._layers and not _any(self._layers, layer):
            return False
        return not self._ports or _any(self._ports, port) or _any(self._ports, port.split(".")[0])

    def may_miss(self, weight):
        """Whether a weight may be absent from the checkpoint, or left over in it."""
        return _any(self._missing, weight)


def _any(expressions, name):
    return any(e.fullmatch(name) for e in expressions)
