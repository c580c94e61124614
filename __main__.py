"""The Pulumi program: it stands here because Pulumi looks for the program's virtual environment beside it."""

import gc

from stacks import program

gc.disable()  # it lives for seconds: with 100 node sets, collections would take a quarter of its time
program.run()
