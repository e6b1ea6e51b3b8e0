"""What is installed, and what was loaded of it."""

import importlib.metadata
import importlib.util
import inspect
import os
import sys

from .errors import InfraError
from .progress import emit

# The versions with which goparity was tried, as in requirements.txt and requirements-max.txt.
WORKS = {"max": "26.7.0", "torch": "2.15.0", "transformers": "5.12.1"}


def versions(*packages):
    """Returns the versions of Python and of those packages that are installed."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for p in packages:
        try:
            found[p] = importlib.metadata.version(p)
        except importlib.metadata.PackageNotFoundError:
            pass
    if "transformers" in found and os.environ.get("PARITY_TRANSFORMERS"):
        found["transformers"] += " (edited copy)"
    return found


def how(package):
    """The command that installs the version that works."""
    return f"pip install 'max[serve]=={WORKS['max']}'" if package == "max" else f"pip install {package}=={WORKS[package]}"


def need(package):
    """Says how to install an engine that is absent, before its import fails in some odd way."""
    if importlib.util.find_spec(package) is None:
        raise InfraError(f"{sys.executable} has no package {package}", f"install it: {how(package)}")


def too_old(name):
    """The error of a MAX that lacks something."""
    version = versions("max").get("max", "unknown")
    return InfraError(f"this MAX has no {name}: MAX {WORKS['max']} works; {how('max')} (installed is {version})")


def about(cls):
    """Reports a model's class and source file, and returns what run.json keeps: no folder's name."""
    try:
        file = inspect.getsourcefile(cls) or ""
    except (TypeError, OSError):
        file = ""
    name = f"{cls.__module__}.{cls.__qualname__}"
    emit(model={"class": name, "file": file})
    return {"model_class": name, "model_file": os.path.basename(file)}
