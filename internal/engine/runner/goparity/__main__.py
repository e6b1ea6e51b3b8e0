"""The command parity, which the wheel of this package installs beside Python's scripts."""

import importlib.metadata
import os
import subprocess
import sys


def binary():
    """The path of the command that belongs to this package."""
    for file in importlib.metadata.files("goparity") or []:
        if file.stem == "parity" and file.suffix in ("", ".exe"):
            return os.path.abspath(file.locate())
    sys.exit("goparity: the command parity is not installed with this package: pip install --force-reinstall goparity")


def typed():
    """How the command was called, which the commands that it proposes begin with."""
    if os.path.basename(sys.argv[0]) == "__main__.py":
        return "python -m goparity"
    return "uvx goparity" if f"{os.sep}archive-v" in sys.prefix else "goparity"  # uv's cache


def main():
    os.environ.setdefault("PARITY_COMMAND", typed())
    command = [binary(), *sys.argv[1:]]
    if os.name == "nt":  # where a process cannot become another
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
