"""Golden inputs in place of those that a MAX model computed, within one graph.

Each golden is a weight of the graph, so that no other golden of the same sizes compiles it again. An
axis that the graph knows by name only (a number of tokens) is stored with room to spare and cut to its
size when the graph runs.
"""

from . import safetensors

ROOM = 16  # tokens; more are rounded up to a power of two

# dtypes of goldens and of inputs that are replaced: as .safetensors calls them, as MAX does, and as
# numpy holds them. bfloat16 is 16 bits there.
DTYPES = {"F64": ("float64", "<f8"), "F32": ("float32", "<f4"), "F16": ("float16", "<f2"), "BF16": ("bfloat16", "<u2")}
BITS = dict(DTYPES.values())


class Injector:
    """Replaces inputs by their labels, "<layer>-<port>".

    injected has, by label, the golden's own label, and left, why an input was left alone.
    """

    def __init__(self, golden, room):
        self._golden = {i["label"]: i for i in golden["inputs"]}
        self._left = golden.get("left") or {}
        self._tensors = safetensors.read(golden["file"])
        self._room = room
        self._weights = {}  # name → (array, device of the graph)
        self.injected, self.left = {}, {}

    def replace(self, label, value, computed):
        """Returns what a layer gets in place of value, a TensorValue of the graph.

        It is the golden one, or value itself if none fits.

        computed(label, value) records what the input was before.
        """
        golden = self._golden.get(label)
        if golden is None:
            self.left[label] = self._left.get(label, "no golden input belongs to it")
            return value
        dtype, shape, data = self._tensors[golden["name"]]
        if reason := _misfit(value, dtype, shape):
            self.left[label] = reason
            return value
        computed(label.replace("-input_", "-computed_"), value)
        self.injected[label] = golden["golden"]
        return self._weight(label, value, dtype, shape, data)

    def _weight(self, label, value, dtype, shape, data):
        from max.graph import TensorValue, Weight, ops

        stored = [n if _static(d) else _spare(r) for n, d, r in zip(shape, value.shape, self._room[label])]
        name = "parity_golden." + label
        self._weights[name] = (_fill(stored, _cast(dtype, data, value.dtype.name).reshape(shape)), value.device)
        golden = TensorValue(Weight(name, value.dtype, stored, value.device))
        if list(golden.shape) == list(value.shape):
            return golden
        if any(not _static(d) for d in value.shape):
            size = ops.shape_to_tensor(value.shape)
            cuts = [slice(None) if _static(d) else (slice(0, size[i]), f"golden_{len(self._weights)}_{i}") for i, d in enumerate(value.shape)]
            golden = ops.slice_tensor(golden, cuts)
        return ops.rebind(golden, value.shape, f"the golden input {label} has another size")

    def weights(self, expected):
        """The values to bind, by name: those that a compiled graph expects, all if it does not say."""
        return {name: _bound(array, device) for name, (array, device) in self._weights.items() if expected is None or name in expected}


def room(cases):
    """By label, the largest size of each axis over all cases.

    One graph holds the goldens of any of them.
    """
    sizes = {}
    for case in cases:
        tensors = safetensors.read(case["golden"]["file"])
        for i in case["golden"]["inputs"]:
            shape = tensors[i["name"]][1]
            have = sizes.get(i["label"], shape)
            sizes[i["label"]] = [max(a, b) for a, b in zip(shape, have)]
    return sizes


def _misfit(value, dtype, shape):
    if dtype not in DTYPES or value.dtype.name not in BITS:
        return f"the graph has {value.dtype.name} here, the golden {dtype}: only floats are replaced"
    if len(shape) != len(value.shape) or any(_static(d) and int(d) != n for n, d in zip(shape, value.shape)):
        return f"the golden input has the shape {shape}, the graph has {[str(d) for d in value.shape]} here"
    return ""


def _static(dim):
    return type(dim).__name__ == "StaticDim"


def _spare(n):
    """How much is stored of an axis whose size the graph does not know."""
    size = ROOM
    while size < n:
        size *= 2
    return size


def _fill(stored, values):
    """Values at the beginning of each axis of an array of the stored shape, zeros after them."""
    import numpy as np

    array = np.zeros(stored, values.dtype)
    array[tuple(map(slice, values.shape))] = values
    return array


def _cast(dtype, data, want):
    """The golden's bytes as values of the graph's dtype.

    The bits are the same if it is the golden's own, else values are rounded to nearest, ties to even.
    """
    import numpy as np

    have, bits = DTYPES[dtype]
    values = np.frombuffer(data, bits)
    if have == want:
        return values
    if have == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    if want != "bfloat16":
        return values.astype(BITS[want])
    words = values.astype(np.float32).view(np.uint32)
    rounded = (words + 0x7FFF + (words >> 16 & 1)) >> 16
    return np.where(words & 0x7FFFFFFF > 0x7F800000, words >> 16 | 0x40, rounded).astype(np.uint16)  # NaN stays NaN


def _bound(array, device):
    from max.driver import Buffer
    from max.dtype import DType

    buffer = Buffer.from_numpy(array)
    if array.dtype == BITS["bfloat16"]:
        buffer = buffer.view(DType.bfloat16, array.shape)
    return buffer if device.is_cpu() else buffer.to(device.to_device())
