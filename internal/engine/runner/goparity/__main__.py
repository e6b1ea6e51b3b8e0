"""Does the job of one JSON file: python -m goparity JOB.json."""

import os
import sys
import traceback

from . import common


def main(args):
    if len(args) != 1:
        print("usage: python -m goparity JOB.json", file=sys.stderr)
        return 2
    try:
        job = common.Job.load(args[0])
        common.prepare_environment(job)
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


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # What is written is written: engines that abort while Python tears them down do not turn a good run into a crash.
    os._exit(code)
