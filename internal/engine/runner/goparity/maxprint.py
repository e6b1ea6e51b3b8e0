"""How MAX writes tensors: the style, the folder, and what lies there afterwards."""

import ctypes
import os
import re
import sys
import tempfile
from contextlib import contextmanager

CHECKPOINT, BINARY, COMPACT, FULL = "BINARY_MAX_CHECKPOINT", "BINARY", "COMPACT", "FULL"  # styles
STYLES = {"compact": COMPACT, "full": FULL, "binary": BINARY, "max-checkpoint": CHECKPOINT}  # as a job names them
_LOG = "print.log"  # what COMPACT and FULL leave of a step
_WRITTEN = re.compile(r"Writing debug binary tensor (\S+) of \d+ bytes to '(.+)'")


class Printer:
    """Tells all sessions in which style to print, and where.

    The folder can change between any two executions.
    """

    def __init__(self, folder, style=CHECKPOINT, precision=6):
        self.folder, self.style, self.precision = folder, style, precision
        self.raw = {}  # of the last step of style BINARY: file → dtype and shape, "f32:1x7x32"
        self._sessions = []

    def add(self, session):
        self._sessions.append(session)
        self._configure(session)

    @contextmanager
    def into(self, folder):
        """Sends what is printed meanwhile to another folder, and yields it."""
        os.makedirs(folder, exist_ok=True)
        before = self.folder
        self._direct(folder)
        try:
            if self.style in (COMPACT, FULL):
                with _redirected(1, os.path.join(folder, _LOG)):
                    yield folder
            elif self.style == BINARY:
                with tempfile.TemporaryDirectory() as scratch:
                    written = os.path.join(scratch, "log")
                    with _redirected(2, written):
                        yield folder
                    self._read_written(written)
            else:
                yield folder
        finally:
            self._direct(before)

    def found(self, folder, labels):
        """What was printed into a folder: label → file, and the name in it if it holds several."""
        if self.style in (COMPACT, FULL):
            with open(os.path.join(folder, _LOG), encoding="utf-8", errors="replace") as f:
                printed = {line.split(" = tensor", 1)[0] for line in f if " = tensor" in line}
            return {label: (_LOG, label) for label in printed}
        end = ".max" if self.style == CHECKPOINT else ""
        files = set(os.listdir(folder))
        return {label: (label + end,) for label in labels if label + end in files}

    def _read_written(self, log):
        """Keeps what the engine says of the files without header that it writes, and passes it on."""
        self.raw = {}
        with open(log, encoding="utf-8", errors="replace") as f:
            for line in f:
                sys.stderr.write(line)
                if m := _WRITTEN.search(line):
                    *sizes, dtype = m[1].split("x")
                    self.raw[os.path.basename(m[2])] = re.sub(r"^([su])i", lambda s: "i" if s[1] == "s" else "u", dtype) + ":" + "x".join(sizes)

    def _direct(self, folder):
        self.folder = folder
        for s in self._sessions:
            self._configure(s)

    def _configure(self, session):
        session.set_debug_print_options(self.style, self.precision, output_directory=self.folder)


@contextmanager
def _redirected(fd, path):
    """Sends what this process writes to a file descriptor to a file, buffers of C included."""
    libc = ctypes.CDLL(None)
    libc.fflush(None)
    kept = os.dup(fd)
    with open(path, "wb") as f:
        os.dup2(f.fileno(), fd)
        try:
            yield
        finally:
            libc.fflush(None)
            os.dup2(kept, fd)
            os.close(kept)
