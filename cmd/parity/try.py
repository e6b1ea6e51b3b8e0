"""Calls predict(inputs, run) of a user's file, once for each side, and saves what it returns.

The first argument is the job, a JSON file.
"""

import inspect
import json
import os
import runpy
import sys
import traceback


class Run(dict):
    """Tensors by label, read when they are asked for; weights by key and config as attributes."""

    def __init__(self, files, weights, config):
        super().__init__(files)
        self.weights, self.config = weights, config

    def __getitem__(self, label):
        import numpy as np

        if label not in self:
            raise KeyError(f"{label}: there are {', '.join(sorted(self))}")
        return np.load(super().__getitem__(label), allow_pickle=False)


def main(path):
    with open(path, encoding="utf-8") as f:
        job = json.load(f)
    try:
        import numpy as np
    except ImportError:
        sys.exit("numpy is missing in this Python: install it, or point PARITY_PYTHON to an interpreter that has it")
    sys.path.insert(0, os.path.dirname(os.path.abspath(job["file"])))
    try:
        predict = runpy.run_path(job["file"]).get("predict")
        if not callable(predict):
            sys.exit(f"{job['file']} defines no predict(inputs, run)")
        for side in job["sides"]:
            run = Run(side["files"], Run(job["weights"], {}, {}), job["config"])
            inputs = {port: run[label] for port, label in side["inputs"].items()}
            takes = len(inspect.signature(predict).parameters)
            out = np.asarray(predict(inputs, run) if takes > 1 else predict(inputs))
            if out.dtype.kind not in "fiub":
                sys.exit(f"predict returned {out.dtype}, want numbers")
            np.save(side["out"], np.ascontiguousarray(out, dtype=np.float64), allow_pickle=False)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


main(sys.argv[1])
