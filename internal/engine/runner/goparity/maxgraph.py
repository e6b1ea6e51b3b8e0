"""What MAX's hooks see: labels of tensors, and tensors of the graph in a layer's arguments."""

import dataclasses
import re
from collections.abc import Mapping

_LABEL = re.compile(r"^(.+)-(input_[^-]+|computed_[^-]+|output(?:[_.][^-]+)?)$")


def split_label(label):
    """Returns the layer and the port of a label."""
    m = _LABEL.match(label)
    return (m[1], m[2]) if m else (label, "tap")


def plain_name(layer):
    """Leaves out the words that MAX's lists add: layers.layers.3 is layers.3.

    Patterns are written for this name.
    """
    return re.sub(r"\b(\w+)\.layers\.(\d+)", lambda m: f"{m[1]}.{m[2]}" if m[1].startswith("layer") else m[0], layer)


def unwrapped(value):
    """Returns the TensorValue of a tensor of the graph, and how to make a new one look like it.

    It returns (None, None) for everything else.
    """
    from max.graph import TensorValue

    if isinstance(value, TensorValue):
        return value, lambda new: new
    try:
        from max.experimental.tensor import Tensor
    except ImportError:
        return None, None
    if isinstance(value, Tensor) and not value.real and len(value.graph_values) == 1:
        return TensorValue(value), Tensor.from_graph_value
    return None, None


def holds_tensors(value, depth=3):
    """Whether a value holds a buffer, or tensors in an object such as a cache: no hook records them."""
    from max.graph import BufferValue

    if isinstance(value, BufferValue) or unwrapped(value)[0] is not None:
        return True
    if depth == 0 or isinstance(value, type):
        return False
    if isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, Mapping):
        parts = value.values()
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, f.name, None) for f in dataclasses.fields(value)]
    else:
        return False
    return any(holds_tensors(v, depth - 1) for v in parts)
