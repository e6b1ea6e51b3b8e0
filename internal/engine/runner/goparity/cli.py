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
        common.prepare_environment(job)
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
        message = f"{type(e).__name__}: {e}"
        common.emit(error={"class": "model", "message": message[:4000], "hint": "", "where": common.where(e)})
    return 1


def leave(code):
    """Ends the process at once. What is written is written: an engine that aborts while Python tears it down fails no good run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
