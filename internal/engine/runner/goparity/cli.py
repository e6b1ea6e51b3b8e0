"""Does the job of one JSON file, and says in one line of progress what went wrong."""

import os
import sys
import traceback

from . import engines, errors, installed, tokens
from .output import Output
from .job import Job
from .progress import emit


def main(args):
    if args[:1] == ["--engines"]:
        print(engines.table(args[1:]))
        return 0
    if len(args) != 1:
        print("usage: python RUNNER JOB.json, or --engines [FILE…]", file=sys.stderr)
        return 2
    job = None
    try:
        job = Job.load(args[0])
        tokens.check_early(job)
        with Output(job) as out:
            engines.run(job, out)
        return 0
    except BaseException as e:
        traceback.print_exc()
        emit(error=_describe(e, job))
    return 1


def _describe(e, job):
    """Returns what the caller is told of an exception."""
    if isinstance(e, errors.JobError):
        return {"class": e.kind, "message": str(e), "hint": e.hint}
    if isinstance(e, MemoryError):
        return {"class": "infra", "message": "out of memory", "hint": "use a smaller model, fewer layers or a shorter prompt"}
    kind, place = errors.blame(e)
    hint = ""
    if kind == "bug":
        hint = "a bug in goparity, please report it with the log"
        if engine := _other_version(job):
            kind, hint = "infra", f"goparity was not tried with {engine}"
    elif isinstance(e, ImportError):
        hint = "a package is missing or of another version: parity doctor says what to install"
    case = getattr(e, "case", "")
    said = f"case {case}: " if case else ""
    return {"class": kind, "message": f"{said}{type(e).__name__}: {e}"[:4000], "hint": hint, "where": place, "case": case}


def _other_version(job):
    """The version of MAX that is installed, if it is another than the one that is known to work."""
    version, works = installed.versions("max").get("max", ""), installed.WORKS["max"]
    return f"MAX {version}: {works} works" if job and job.engine == "max" and version and version != works else ""


def leave(code):
    """Ends the process at once.

    All is written by now: an engine that aborts while Python tears it down spoils no good run.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
