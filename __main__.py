"""The Pulumi program: it stands here because Pulumi looks for the program's virtual environment beside it."""

from stacks import program

program.run()
