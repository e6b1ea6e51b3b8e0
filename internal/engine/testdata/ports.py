"""ports.py LABEL… JOB: an engine that has these ports, each a float, and writes those that the job wants."""

import sys

from goparity import safetensors
from goparity.output import Output
from goparity.job import Job

*labels, file = sys.argv[1:]
job = Job.load(file)
with Output(job) as out:
    case = out.case(job.cases[0])
    wanted = [label for label in labels if job.wants(*label.rsplit("-", 1))]
    safetensors.write(case.step(0) + "/all.safetensors", [(label, "F32", [1], bytes(4)) for label in wanted])
    for label in wanted:
        case.add(0, *label.rsplit("-", 1), "all.safetensors", label)
