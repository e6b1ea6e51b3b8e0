"""What is installed, and what was loaded of it."""

import functools
import importlib.metadata
import importlib.util
import inspect
import os
import sys

from .errors import InfraError
from .progress import emit

# The versions with which goparity was tried, as in requirements*.txt.
WORKS = {"max": "26.7.0", "torch": "2.15.0", "transformers": "5.12.1", "mlx": "0.32.4", "mlx-lm": "0.32.2"}

# What pip installs a package with.
_EXTRAS = {"max": "[serve]", "mlx": "[cpu]"}


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
    package = package.replace("_", "-")
    return f"pip install '{package}{_EXTRAS.get(package, '')}=={WORKS[package]}'"


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


def places(classes):
    """Of each layer by its class: [class, file, line], as run.json's modules have it.

    A class without source has no entry.
    """
    return {layer: place for layer, cls in classes.items() if (place := _place(cls))}


@functools.cache
def _place(cls):
    try:
        return [cls.__qualname__, os.path.basename(inspect.getsourcefile(cls)), inspect.getsourcelines(cls)[1]]
    except (OSError, TypeError):
        return None
