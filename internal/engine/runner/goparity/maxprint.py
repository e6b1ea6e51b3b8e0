"""Where MAX writes tensors, as checkpoints of its own, and what lies there afterwards."""

import os
from contextlib import contextmanager


class Printer:
    """Tells all sessions where to write. The folder can change between any two executions."""

    def __init__(self, folder):
        self.folder = folder
        self._sessions = []

    def add(self, session):
        self._sessions.append(session)
        self._direct(self.folder)

    @contextmanager
    def into(self, folder):
        """Sends what is printed meanwhile to another folder, and yields it."""
        os.makedirs(folder, exist_ok=True)
        before = self.folder
        self._direct(folder)
        try:
            yield folder
        finally:
            self._direct(before)

    def found(self, folder, labels):
        """What was printed into a folder: label → file."""
        files = set(os.listdir(folder))
        return {label: label + ".max" for label in labels if label + ".max" in files}

    def _direct(self, folder):
        self.folder = folder
        for s in self._sessions:
            s.set_debug_print_options("BINARY_MAX_CHECKPOINT", output_directory=folder)
