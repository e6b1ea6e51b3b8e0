"""The reference: a model in torch, every module recorded, prefill and decode steps. Needs no MAX."""

import importlib
import re
from contextlib import nullcontext

from . import installed
from .errors import InfraError, UsageError

OLDEST = {"torch": (2, 5), "transformers": (4, 56)}  # torch.OutOfMemoryError; from_pretrained(dtype=…)


def run(job, out):
    clock = out.clock
    packages = ["torch"] if job.task == "module" else ["torch", "transformers"]
    for p in packages:
        _need(p)
    with clock.phase("import"):
        try:
            for p in packages:
                importlib.import_module(p)
        except (ImportError, OSError) as e:
            raise InfraError(f"{p} cannot be imported: {e}", installed.how(p)) from e
        import torch

        from . import torchtasks
    out.versions = installed.versions("torch", "transformers", "tokenizers", "numpy", "safetensors")
    dtype = getattr(torch, job.encoding or "float32", None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise UsageError(f"unknown dtype {job.encoding!r} of the reference", "float32, float64, bfloat16 and float16 are known")
    device = _device(torch, job)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = False
    try:
        with torch.no_grad(), _throughout(torch, dtype):
            if job.task == "module":
                torchtasks.modules(job, out, device, dtype)
            else:
                torchtasks.pretrained(job, out, device, dtype)
    except torch.OutOfMemoryError as e:
        raise InfraError(f"out of memory on {device}: {e}", "use fewer layers, a shorter case, or another dtype") from e


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
            return func(*args, **kwargs)

    return Float64()


def _device(torch, job):
    if job.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise InfraError("torch sees no GPU", "install a driver and a torch built for it, or run with the device cpu")
    return torch.device("cuda")
