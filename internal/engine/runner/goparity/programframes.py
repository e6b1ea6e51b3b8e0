"""The lines of a model's own source that made an operator."""

import inspect
import itertools
import linecache
import os
import re
import sys

import torch

MOST = 6  # frames of an operator
_LONGEST = 160  # characters of an expression
_TORCH, _HERE = os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep
_WRAPPER = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

# A word of letters and digits so long, or after such a name, is taken for a secret.
_SECRET = re.compile(r"(?i)\b(?:hf|sk|ghp|gho|github_pat|xox[a-z]|AKIA|glpat)[-_A-Za-z0-9]{12,}|(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_+/=-]{32,}|"
                     r"(?<=[\"'])(?=[A-Za-z]*[0-9])[A-Za-z0-9_+/=.-]{24,}(?=[\"'])")  # fmt: skip
_LONG = re.compile(r"[A-Za-z0-9_+/=.-]{24,}")
_PREFIX = re.compile(r"(?i)\b(?:hf|sk|gh|xox|AKIA|glpat)")


class Frames:
    """Numbers the stacks of a program. text is "text" for lines with their expressions, "lines" without; None for no stacks."""

    def __init__(self, text="text"):
        if text not in ("text", "lines", None):
            raise ValueError(f'frames are "text", "lines" or None, not {text!r}')
        self.text, self.frames, self.stacks = text, {}, {}
        self._runs, self._outer = False, None  # the frame that called the model: no frame of the model's
        # By the id of a code, whose hash is slow to calculate: whether it is the model's, and it, to be kept alive.
        self._ours = {}
        self._known = {}  # (id of a code, instruction) → [its frame, whether that only wraps what it calls, its number once a stack has it]

    def begin(self):
        """To be called in a hook, before the model runs: what called it is none of its source."""
        frame = sys._getframe(1)
        while frame is not None and not _own(frame.f_code.co_filename):
            frame = frame.f_back
        self._runs, self._outer = True, frame

    def end(self):
        self._runs, self._outer = False, None

    def stack(self):
        """The number of the stack that runs now; -1 for none."""
        if self.text is None:
            return -1
        frame, found, ours = sys._getframe(2) if self._runs else None, [], self._ours
        while frame is not None and frame is not self._outer and len(found) < MOST:
            code = frame.f_code
            own = ours.get(id(code))
            if own is None:
                own = ours[id(code)] = _own(code.co_filename), code
            if own[0]:
                known = self._frame(code, frame.f_lasti, frame.f_lineno)
                if not (found and known[1]):
                    if known[2] is None:
                        known[2] = self.frames.setdefault(known[0], len(self.frames))
                    found.append(known[2])
            frame = frame.f_back
        return self.stacks.setdefault(tuple(found), len(self.stacks))

    def _frame(self, code, at, line):
        known = self._known.get((id(code), at))
        if known is None:
            *place, text = _described(code, at, line)
            key = (*place, shown(text) if self.text == "text" else "")
            known = self._known[id(code), at] = [key, _wraps(code, text), None]
        return known


def _own(file):
    return not (file.startswith((_TORCH, _HERE, "<frozen")) or file.endswith("/contextlib.py"))


def _wraps(code, text):
    """Whether a frame is that of a decorator: it takes any arguments, or calls a function that it was made of."""
    flags = code.co_flags & _WRAPPER
    return flags == _WRAPPER or flags != 0 and text.partition("(")[0] in code.co_freevars


def _described(code, at, line):
    """(file, line, column, end, expression): columns are bytes of the line; 0 and its length where Python does not know them."""
    col = end = 0
    last = line
    if hasattr(code, "co_positions"):  # Python 3.11
        first, last, start, stop = next(itertools.islice(code.co_positions(), at // 2, None), (None,) * 4)
        if first is not None and start is not None and stop is not None:
            line, col, end = first, start, stop if last == first else 0
    lines = [linecache.getline(code.co_filename, n) for n in range(line, min(last or line, line + 8) + 1)]
    first = lines[0].rstrip("\n").encode() if lines else b""
    end = end or len(first)
    expression = first[col:end] if end > col else first
    rest = " ".join(x.strip() for x in lines[1:])
    return os.path.basename(code.co_filename), line, col, end, " ".join(f"{expression.decode(errors='ignore').strip()} {rest}".split())


def shown(text):
    """An expression without secrets, cut where it is long."""
    if _PREFIX.search(text) or any(any(c.isdigit() for c in w) for w in _LONG.findall(text)):  # else there is none, and that is told faster
        text = _SECRET.sub("[secret]", text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
