"""What the caller is told while a job runs: phases, warnings, the model, the error that ended it."""

import json
import os
import sys
import time
from contextlib import contextmanager


def _open():
    fd, handle = os.environ.get("PARITY_PROGRESS_FD", ""), os.environ.get("PARITY_PROGRESS_HANDLE", "")
    if handle.isdigit():
        import msvcrt

        fd = str(msvcrt.open_osfhandle(int(handle), 0))
    if not fd.isdigit():
        return None
    try:
        return os.fdopen(int(fd), "w", encoding="utf-8", closefd=False)
    except OSError:
        return None


_pipe = _open()


def emit(**event):
    """Writes one JSON line to the pipe of PARITY_PROGRESS_FD (PARITY_PROGRESS_HANDLE on Windows).

    It does not fail where no one reads the pipe any more.
    """
    if _pipe is None:
        return
    try:
        _pipe.write(json.dumps(event) + "\n")
        _pipe.flush()
    except (OSError, ValueError):
        pass


def warn(text):
    print("warning: " + text, file=sys.stderr, flush=True)
    emit(warning=text)


class Clock:
    """Seconds by phase: import, load, compile, sanity, forward, write."""

    def __init__(self):
        self.seconds = {}

    @contextmanager
    def phase(self, name):
        emit(phase=name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start
        emit(phase=name, seconds=round(self.seconds[name], 3))
