"""Arrays of any library, as .safetensors has them: dtype, shape, bytes."""

from .errors import ModelError

# By the names of numpy and ml_dtypes.
DTYPES = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip


def library(value):
    """The package that the class of a value, or one that it is derived from, comes from: torch, mlx, or ""."""
    packages = [c.__module__.partition(".")[0] for c in type(value).__mro__]
    return next((p for p in ("torch", "mlx") if p in packages), "")


def raw(value):
    """Returns (dtype, shape, bytes) of an array of torch, MLX, numpy, or what numpy can read (__array__, DLPack, lists)."""
    match library(value):
        case "torch":
            from . import torchhooks

            kept = torchhooks.plain(value)
            if kept is None:
                raise ModelError(f"a tensor of {value.dtype} on {value.device} cannot be recorded")
            return torchhooks.raw(kept)
        case "mlx":
            from . import mlxhooks

            return mlxhooks.raw(value)
    import numpy

    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        value = numpy.from_dlpack(value)
    a = numpy.asarray(value)
    if a.dtype.kind == "c":  # one more axis: real and imaginary part
        a = numpy.stack([a.real, a.imag], -1)
    if a.dtype.name not in DTYPES:
        raise ModelError(f"an array of {a.dtype} cannot be recorded", f"convert it to one of {', '.join(DTYPES)}")
    shape = a.shape  # that of a scalar is ()
    a = numpy.ascontiguousarray(a.astype(a.dtype.newbyteorder("<"), copy=False))
    return DTYPES[a.dtype.name], shape, a.tobytes()
