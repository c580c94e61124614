"""The Pulumi program: it stands here because Pulumi looks for the program's virtual environment in the same folder."""

import gc

gc.disable()  # it lives for seconds: collections would take a tenth of its imports, and a quarter of 100 node sets

from soperator_pulumi.stack import program  # noqa: E402 - as above
from stacks import this_machine  # noqa: E402

program.run(this_machine.complete)
