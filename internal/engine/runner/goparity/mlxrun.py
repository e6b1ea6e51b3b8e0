"""A candidate: a model in MLX (mlx-lm), in this process, every module recorded. Needs no torch."""

import importlib
import sys
from contextlib import contextmanager

from . import installed, loaded
from .errors import InfraError, UsageError

CAN = {
    "does": "a candidate: mlx-lm, or a module of MLX",
    "packages": ["mlx", "mlx-lm", "transformers", "tokenizers", "numpy"],
    "tasks": ["text-generation", "module"],
    "encodings": ["float32", "bfloat16", "float16"],
    "paths": ["decode", "chunked", "turns", "batch", "padding", "prefix", "repeat", "lengths"],
    "settings": ["max_kv_size", "kv_bits", "kv_group_size", "quantized_kv_start"],
    "records": ["steps", "text", "kv_cache", "weights", "attention", "costs"],
}


def check(job):
    for case in job.cases:
        if case.get("path") == "padding:right":
            raise UsageError(f"case {case['name']}: mlx-lm pads in front", "write padding: left")


@contextmanager
def load(job, out, cases):
    packages = ["mlx.core"] if job.task == "module" else ["mlx.core", "mlx_lm"]
    with out.clock.phase("import"), _without("torch"):
        for p in packages:
            try:
                importlib.import_module(p)
            except (ImportError, OSError) as e:
                raise InfraError(f"{p} cannot be imported: {e}", installed.how(p.partition(".")[0])) from e
        import mlx.core as mx

        from . import mlxtasks
    mx.set_default_device(_device(mx, job))
    mx.random.seed(0)
    try:
        if job.task == "module":
            yield mlxtasks.Modules(job, out)
        else:
            with mlxtasks.generate(job, out) as model:
                yield model
    except RuntimeError as e:
        if "memory" in str(e).lower():
            raise InfraError(f"out of memory: {e}", "use fewer layers, a shorter case, or patterns of capture") from e
        raise


def run(model, dump, case):
    model.run(dump, case)


def weights(model):
    return loaded.of_mlx(model.model)


@contextmanager
def _without(package):
    """Hides a package: transformers, of which mlx-lm takes the tokenizers, imports torch where it finds it, for seconds."""
    hidden = package not in sys.modules
    if hidden:
        sys.modules[package] = None
    try:
        yield
    finally:
        if hidden:
            del sys.modules[package]


def _device(mx, job):
    if job.device == "cpu":
        return mx.cpu
    if not mx.is_available(mx.gpu):
        raise InfraError("MLX sees no GPU", "run on a Mac, install mlx[cuda], or run with the device cpu")
    return mx.gpu
