"""Does the job of one JSON file and says what went wrong in one line of progress."""

import os
import sys
import traceback

from . import common


def main(args):
    if len(args) != 1:
        print("usage: python RUNNER JOB.json", file=sys.stderr)
        return 2
    try:
        job = common.Job.load(args[0])
        common.check_early(job)
        if job.engine == "torch":
            from . import torchrun as runner
        elif job.engine == "max":
            from . import maxrun as runner
        else:
            raise common.UsageError(f"unknown engine {job.engine!r}", "torch and max are known here")
        with common.Output(job) as out:
            runner.run(job, out)
        return 0
    except common.JobError as e:
        traceback.print_exc()
        common.emit(error={"class": e.kind, "message": str(e), "hint": e.hint})
    except MemoryError:
        traceback.print_exc()
        common.emit(error={"class": "infra", "message": "out of memory", "hint": "use a smaller model, fewer layers or a shorter prompt"})
    except BaseException as e:
        traceback.print_exc()
        kind, place = common.blame(e)
        message, hint = f"{type(e).__name__}: {e}"[:4000], ""
        if kind == "bug":
            hint = "a bug in goparity, please report it with the log"
            if engine := _other_version(args[0]):
                kind, hint = "infra", f"goparity was not tried with {engine}"
        elif isinstance(e, ImportError):
            hint = "a package is missing or of another version: parity doctor says what to install"
        common.emit(error={"class": kind, "message": message, "hint": hint, "where": place})
    return 1


def _other_version(job_file):
    """Says what is installed if it is another version of the engine than the one that is known to work."""
    from .maxrun import WORKS

    installed = common.versions("max").get("max", "")
    other = common.Job.load(job_file).engine == "max" and installed and installed != WORKS
    return f"MAX {installed}: {WORKS} works" if other else ""


def leave(code):
    """Ends the process at once. What is written is written: an engine that aborts while Python tears it down fails no good run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
