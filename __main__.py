"""The Pulumi program: it stands here because Pulumi looks for the program's virtual environment beside it."""

import gc

gc.disable()  # it lives for seconds: collections would take a tenth of its imports, and a quarter of 100 node sets

from stacks import program  # noqa: E402 - as above

program.run()
