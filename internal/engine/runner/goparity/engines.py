"""The engines. Each is a Python file: one of this package, NAMErun.py, or a user's own. It has

    CAN                    a table of what it can do, see KEYS
    check(job)             refuses what the table cannot say, before anything is imported
    load(job, out, cases)  returns the model, ready to run these cases, or a context manager of it
    run(model, dump, case) runs a case: its tensors go to the dump, by dump.tensors or dump.add
    weights(model)         lists what was loaded, (name, dtype, shape, bytes, function that returns them); [] where that is not known

Everything else is done here, once: what the job asks for is compared with the table, cases are run in their order, and
run.json is written. parity doctor lists them.
"""

import glob
import importlib
import importlib.util
import json
import os
import sys
from contextlib import ExitStack

from . import installed, loaded
from .errors import UsageError

KEYS = {
    "does": "what it is for, in a few words",
    "packages": "what must be installed, by the names of pip; the first is what the engine is known by",
    "tasks": "what it runs: text-generation, embeddings, text-classification, module",
    "encodings": "types that it computes in; empty: it says itself what it does not have",
    "paths": "execution paths: decode, chunked, turns, batch, padding, prefix, repeat, lengths, mask",
    "settings": "keys of engine in fixture.yaml; None: all are passed on",
    "records": "besides tensors: steps, text, images (it takes them), weights, kv_cache, attention, costs, program, injected, activations, kv_type, adapter",
}

_FUNCTIONS = ("check", "load", "run", "weights")
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def names():
    """The engines of this package."""
    return sorted(os.path.basename(f).removesuffix("run.py") for f in glob.glob(os.path.join(_FOLDER, "?*run.py")))


def engine(name, file=""):
    """The module of an engine, of this package or of a file."""
    if file:
        if not os.path.isfile(file):
            raise UsageError(f"there is no engine file {file}")
        spec = importlib.util.spec_from_file_location("parity_engine", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["parity_engine"] = module
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        spec.loader.exec_module(module)
    elif name in names():
        module = importlib.import_module(f"{__package__}.{name}run")
    else:
        raise UsageError(f"unknown engine {name!r}", f"{', '.join(names())} are known; a file of yours is ./engine.py")
    _complete(module, file or name)
    return module


def _complete(module, name):
    lacking = [f for f in _FUNCTIONS if not callable(getattr(module, f, None))]
    if lacking or not isinstance(getattr(module, "CAN", None), dict):
        raise UsageError(f"{name} is no engine: it lacks {', '.join(lacking) or 'the table CAN'}", f"an engine has CAN and {', '.join(_FUNCTIONS)}")
    if wrong := set(module.CAN) ^ set(KEYS):
        raise UsageError(f"{name}: CAN lacks, or does not know, {', '.join(sorted(wrong))}", f"it has {', '.join(KEYS)}")


def check(module, job):
    """Refuses what an engine's table does not have."""
    can, name = module.CAN, job.engine

    def wants(kind, value, what):
        if value not in can[kind]:
            raise UsageError(f"{name} has no {what}", f"it has {', '.join(can[kind]) or 'none'}")

    wants("tasks", job.task, f"task {job.task!r}")
    if job.encoding and can["encodings"]:
        wants("encodings", job.encoding, f"encoding {job.encoding!r}")
    for asked, record, what in ((job.injected, "injected", "injected runs"), (job.program, "program", "program of what it runs"),
                                (job.activations, "activations", "rounded activations"), (job.kv_type, "kv_type", "rounded cache"),
                                (job.adapter, "adapter", "adapter at run time")):  # fmt: skip
        if asked:
            wants("records", record, what)
    for case in job.cases:
        if kind := (case.get("path") or "").partition(":")[0]:
            wants("paths", kind, f"path {case['path']} (case {case['name']})")
        if (case.get("steps") or 1) > 1:
            wants("records", "steps", f"decode steps (case {case['name']})")
        if case.get("images") and not job.oracle:
            wants("records", "images", f"images (case {case['name']})")
    for key in job.config if can["settings"] is not None else ():
        wants("settings", key, f"setting {key}")


def run(job, out):
    """Does a job. An injected run has a model for each case: the goldens are part of it."""
    module = engine(job.engine, job.engine_file)
    check(module, job)
    for p in module.CAN["packages"][:1]:
        installed.need(p)
    module.check(job)
    out.versions = installed.versions(*module.CAN["packages"])
    for cases in [[c] for c in job.cases] if job.injected else [job.cases]:
        with ExitStack() as stack:
            model = module.load(job, out, cases)
            if hasattr(model, "__enter__"):
                model = stack.enter_context(model)
            for case in cases:
                dump = out.case(case)
                try:
                    module.run(model, dump, case)
                except Exception as e:
                    e.case = case["name"]  # with its path, for what is said of it
                    raise
                loaded.keep(job, dump, lambda: module.weights(model))


def table(files):
    """What parity doctor lists: of each engine its table, and the versions that are installed."""
    out = []
    for name, file in [(n, "") for n in names()] + [(os.path.basename(f), f) for f in files]:
        can = engine(name, file).CAN
        out.append({"name": name, **can, "versions": installed.versions(*can["packages"])})
    return json.dumps(out)
