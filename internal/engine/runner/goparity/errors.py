"""What can go wrong with a job, and who is to blame for an exception that no one expected."""

import os
import re
import traceback


class JobError(Exception):
    """A job that cannot be done. kind is the class by which the caller tells causes apart."""

    kind = "model"

    def __init__(self, message, hint=""):
        super().__init__(message)
        self.hint = hint


class ModelError(JobError):
    """The model, its weights or its configuration."""


class InfraError(JobError):
    """The installation or the machine: no engine, no driver, no memory."""

    kind = "infra"


class UsageError(JobError):
    """What was asked for: a wrong token id, too many tokens, an unknown option."""

    kind = "usage"


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_RUNNER = os.path.dirname(_OURS[:-1]) + os.sep  # with __main__.py
_DRIVER = re.compile(r"CUDA|cuDNN|cuBLAS|NCCL|HIP error|hipError|ROCm|driver version|out of memory|OUT_OF_MEMORY", re.I)
_PASSED_ON = re.compile(r"\boriginal\(")


def blame(error):
    """Returns whose fault an unexpected exception is, and where, as "file:line".

    "infra" is the installation or the machine, "bug" is ours, all else is "model". The frame that
    counts is the innermost one outside the standard library: ours, that of an installed package, or
    the user's own. A hook of ours that calls what it stands for, original(…), is not to blame for that.
    """
    frames = [(_owner(f.filename), f) for f in traceback.extract_tb(error.__traceback__)]
    frames = [(owner, f) for owner, f in frames if owner != "ours" or not _PASSED_ON.search(f.line or "")]
    frames = [(owner, f) for owner, f in frames if owner != "python"] or [("ours", f) for _, f in frames[-1:]]
    if not frames:
        return "bug", ""
    owner, last = frames[-1]
    mine = [f for o, f in frames if o == "user"]
    at = mine[-1] if mine else last
    place = f"{at.filename}:{at.lineno}"
    if isinstance(error, ImportError) or owner != "user" and (isinstance(error, OSError) or _DRIVER.search(str(error))):
        return "infra", place
    return "bug" if owner == "ours" else "model", place


def _owner(file):
    path = os.path.abspath(file)
    if path.startswith(_OURS):
        return "ours"
    if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
        return "package"
    if file.startswith("<") or path.startswith(os.path.dirname(os.path.abspath(os.__file__)) + os.sep) or path.startswith(_RUNNER):
        return "python"
    return "user"
