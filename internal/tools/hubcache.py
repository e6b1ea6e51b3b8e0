"""hubcache.py MODULE REPO CACHE: puts a model from a Python package into a hub's cache.

It stands there as if it had been downloaded: for machines that reach a package index and no hub.
The files are linked, not copied.
"""

import importlib
import pathlib
import shutil
import sys

module, repo, cache = sys.argv[1:]
source = pathlib.Path(importlib.import_module(module).__file__).resolve().parent / "model"
root = pathlib.Path(cache, "models--" + repo.replace("/", "--"))
revision = "0" * 40
shutil.rmtree(root, ignore_errors=True)
(root / "refs").mkdir(parents=True)
(root / "refs/main").write_text(revision)
(root / "snapshots").mkdir()
(root / "snapshots" / revision).symlink_to(source)
