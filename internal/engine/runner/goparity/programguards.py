"""Numbers of tensors that went into Python: what runs then may hang on them.

A guard says that for some operators of a program it was these numbers that a value had: where a replay
makes others of it, the model would have run other operators, or with other sizes. It holds for what runs until
the module has returned in which Python was given the numbers, and on in the module around it if that returned
numbers. Numbers that hang on no weight and no float are those of whoever runs the same case, and need no guard.
"""

import contextlib

import torch
from torch._C import _len_torch_dispatch_stack
from torch.utils._python_dispatch import _disable_current_modes

from . import torchhooks

_MOST = 4096  # numbers of a guard; one of more never holds, and has none


class Guards:
    def __init__(self):
        self.list = []  # {"value": number of a value, "equal": numbers or None, "ops": [first, end]}
        self._open = []  # (guard, how many calls run of which the innermost may use it)

    def add(self, value, numbers, at, depth):
        """Notes that in a call of depth a value had these numbers; None for what a replay cannot make."""
        if any(g["value"] == value and g["equal"] == numbers for g, d in self._open if d <= depth):
            return
        guard = {"value": value, "equal": numbers, "ops": [at, at]}
        self.list.append(guard)
        self._open.append((guard, depth))

    def leave(self, depth, returned, at):
        """To be called when the call of depth ends, after at operators."""
        kept = [(g, d) for g, d in self._open if d < depth]
        for g, d in self._open:
            if d < depth:
                continue
            g["ops"][1] = at
            if depth > 1 and _has_numbers(returned):
                kept.append((g, depth - 1))
        self._open = kept


def _has_numbers(x, depth=0):
    if isinstance(x, (int, float)):
        return True
    return depth < torchhooks.DEPTH and not isinstance(x, torch.Tensor) and any(_has_numbers(v, depth + 1) for _, v in torchhooks.Recorder.fields(x))


@contextlib.contextmanager
def lists(left):
    """Calls left(tensor, numbers) for lists that are made of a tensor, which is no operator of torch.

    Text is none of these, nor what a recorder makes of its copies, with all modes off.
    """
    shown = 0
    own = {name: torch.Tensor.__dict__.get(name) for name in ("tolist", "numpy")}  # of a recording around this one
    to_list, to_numpy = torch.Tensor.tolist, torch.Tensor.numpy

    def tolist(t):
        numbers = to_list(t)
        if not shown and _len_torch_dispatch_stack():
            left(t, numbers)
        return numbers

    def numpy(t, **options):
        array = to_numpy(t, **options)
        if _len_torch_dispatch_stack():
            left(t, array.tolist())
        return array

    def silent(text):
        def made(*args, **options):
            nonlocal shown
            shown += 1
            try:
                with _disable_current_modes():
                    return text(*args, **options)
            finally:
                shown -= 1

        return made

    texts = torch.Tensor.__repr__, torch.Tensor.__format__
    torch.Tensor.tolist, torch.Tensor.numpy = tolist, numpy
    torch.Tensor.__repr__, torch.Tensor.__format__ = map(silent, texts)
    try:
        yield
    finally:
        for name, before in own.items():
            setattr(torch.Tensor, name, before) if before else delattr(torch.Tensor, name)
        torch.Tensor.__repr__, torch.Tensor.__format__ = texts


def flat(numbers):
    """The numbers of lists in lists, in order; None if they are too many."""
    found, todo = [], [numbers]
    while todo:
        x = todo.pop()
        if isinstance(x, list):
            todo += reversed(x)
        else:
            found.append(x)
        if len(found) > _MOST:
            return None
    return found
