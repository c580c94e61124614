"""`python -m soperator_pulumi.cli`: the command `soperator` of this interpreter's package."""

import sys

from soperator_pulumi.cli import main

if __name__ == "__main__":
    sys.exit(main())
