"""python RUNNER JOB.json, where RUNNER is this folder."""

import sys

if sys.version_info < (3, 10):
    sys.exit("goparity needs Python 3.10 or later, this is " + sys.version.split()[0])

from goparity import cli  # noqa: E402

cli.leave(cli.main(sys.argv[1:]))
