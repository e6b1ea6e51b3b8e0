"""A dump that is written while a model runs: each tensor at once, to a file of its own."""

import json
import os
import re
import secrets
import shutil
from datetime import datetime, timezone

from . import safetensors
from .errors import ModelError, UsageError
from .output import peak_rss, write_json

RUN = "run.json"
_LONGEST = 180  # of a file's name, in characters


class DumpFolder:
    """A dump of one case, FOLDER/<step>/<label>.safetensors with FOLDER/run.json.

    No tensor is kept in memory. run.json says "unfinished" until close: what is there by then can be
    read, whatever becomes of the process.
    """

    def __init__(self, folder, overwrite=False):
        self.folder, self.order, self.info = os.fspath(folder), [], {"case": "run", "nonce": secrets.token_hex(16)}
        self._files = set()  # of steps, without case: two labels that differ by it alone are one file on some systems
        self._labels = set()
        if os.path.exists(self.folder) and (not os.path.isdir(self.folder) or os.listdir(self.folder)):
            if not overwrite or not os.path.isfile(os.path.join(self.folder, RUN)):
                hint = "choose another folder" + ("" if overwrite else ", or say overwrite=True")
                raise UsageError(f"{self.folder} exists already: {hint}")
            shutil.rmtree(self.folder)
        os.makedirs(self.folder, exist_ok=True)
        self._write("the recorder was not closed: its process ended")

    @classmethod
    def reopen(cls, folder):
        """The dump in a folder, to which more is added; a new one where there is none."""
        path = os.path.join(folder, RUN)
        if not os.path.exists(path):
            return cls(folder)
        self = cls.__new__(cls)
        self.folder = os.fspath(folder)
        with open(path, encoding="utf-8") as f:
            self.info = json.load(f)
        if not isinstance(self.info.get("order"), list):
            raise UsageError(f"{path} is of another program: choose another folder")
        self.order = self.info.pop("order")
        self._files = {f"{e[0]}/{e[3]}".casefold() for e in self.order}
        self._labels = {(e[0], e[1], e[2]) for e in self.order}
        return self

    def add(self, step, layer, port, dtype, shape, data):
        """Writes a tensor, the next in execution order."""
        step, label = str(step), layer if port == "tap" else f"{layer}-{port}"
        if (step, layer, port) in self._labels:
            raise ModelError(f"{self.folder}: step {step} has {label} twice: names of layers and taps are unique within a step")
        self._labels.add((step, layer, port))
        file = self._file(step, label)
        os.makedirs(os.path.join(self.folder, step), exist_ok=True)
        safetensors.write(os.path.join(self.folder, step, file), [(label, dtype, shape, data)])
        self.order.append([step, layer, port, file, label])

    def _file(self, step, label):
        """A name that every file system has."""
        stem = re.sub(r"[^A-Za-z0-9._()-]", "_", label)[:_LONGEST]
        file, n = f"{stem}.safetensors", 1
        while f"{step}/{file}".casefold() in self._files:
            n += 1
            file = f"{stem}~{n}.safetensors"
        self._files.add(f"{step}/{file}".casefold())
        return file

    def close(self, error=None):
        """Writes run.json. With the error that ended the run, what was recorded up to there is kept, as unfinished."""
        self._write(f"{type(error).__name__}: {error}"[:500] if error else "")

    def _write(self, unfinished):
        run = {"schema": 2, **self.info, "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "peak_rss_bytes": peak_rss()}
        run.pop("unfinished", None)
        if unfinished:
            run["unfinished"] = unfinished
        write_json(os.path.join(self.folder, RUN), {**run, "order": self.order})
