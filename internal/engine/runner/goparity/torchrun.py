"""The reference: a model in torch, every module recorded, prefill and decode steps. Needs no MAX."""

import importlib
import re
from contextlib import contextmanager, nullcontext

from . import installed, loaded
from .errors import InfraError, ModelError

OLDEST = {"torch": (2, 5), "transformers": (4, 56)}  # torch.OutOfMemoryError; from_pretrained(dtype=…)


CAN = {
    "does": "the reference: makes goldens",
    "packages": ["torch", "transformers", "tokenizers", "safetensors", "numpy"],
    "tasks": ["text-generation", "embeddings", "text-classification", "module"],
    "encodings": ["float32", "float64", "bfloat16", "float16"],
    "paths": ["decode", "chunked", "turns", "batch", "padding", "prefix", "repeat", "lengths", "mask"],
    "settings": ["attn_implementation"],
    "records": ["steps", "text", "images", "kv_cache", "weights", "attention", "program", "activations", "kv_type", "adapter"],
}


def check(job):
    for p in _packages(job):
        _need(p)


def _packages(job):
    return ["torch"] if job.task == "module" else ["torch", "transformers"]


@contextmanager
def load(job, out, cases):
    with out.clock.phase("import"):
        for p in _packages(job):
            try:
                importlib.import_module(p)
            except (ImportError, OSError) as e:
                raise InfraError(f"{p} cannot be imported: {e}", installed.how(p)) from e
        import torch

        from . import torchkv, torchtasks
    dtype, device = getattr(torch, job.encoding or "float32"), _device(torch, job)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = False
    try:
        with torch.no_grad(), _throughout(torch, dtype), torchkv.rounding(job.kv_type):
            yield (torchtasks.Modules if job.task == "module" else torchtasks.Pretrained)(job, out, device, dtype)
    except torch.OutOfMemoryError as e:
        raise InfraError(f"out of memory on {device}: {e}", "use fewer layers, a shorter case, or another dtype") from e


def run(model, dump, case):
    model.run(dump, case)


def weights(model):
    return loaded.of_torch(model.model)


def _need(package):
    """Refuses a package that is absent or too old, before its import, which may fail in odd ways."""
    installed.need(package)
    version = installed.versions(package).get(package, "")
    if numbers := re.match(r"(\d+)\.(\d+)", version):
        if (int(numbers[1]), int(numbers[2])) < OLDEST[package]:
            oldest = ".".join(map(str, OLDEST[package]))
            raise InfraError(f"{package} {version} is too old: {oldest} or later is needed", installed.how(package))


def _throughout(torch, dtype):
    """Keeps a float64 run in float64.

    Models go to float32 and back in softmax, norms and rotary, which would be noise in the judge of
    noise. It is needed for masks as well: the lowest float64, which masks a row of padding, is -inf in
    float32, and a softmax of only those is NaN.
    """
    if dtype != torch.float64:
        return nullcontext()

    class Float64(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs, name = kwargs or {}, getattr(func, "__name__", "")
            if name == "float":
                func = torch.Tensor.double
            elif name != "view":  # which reads the same bytes in another way
                args = [torch.float64 if a is torch.float32 else a for a in args]
                kwargs = {k: torch.float64 if v is torch.float32 else v for k, v in kwargs.items()}
            try:
                return func(*args, **kwargs)
            except RuntimeError as e:
                if "double" not in str(e).lower():
                    raise
                raise ModelError(f"torch has no {name} in float64: {e}", "take float64 out of references, or give the model another kernel") from e

    return Float64()


def _device(torch, job):
    if job.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise InfraError("torch sees no GPU", "install a driver and a torch built for it, or run with the device cpu")
    return torch.device("cuda")
