"""A deployment of a stack's file against mocks, which creates nothing."""

from soperator_pulumi.simulation.deployment import Deployment, deploy
from soperator_pulumi.stack import program
from soperator_pulumi.stack.stack_file import StackFile


def dry_run(stack: StackFile) -> Deployment:
    """Return the registrations of a stack's program.

    Raises:
        SoperatorError: The program refuses the configuration.
        RunError: The program refuses it with Pulumi's own error.
    """
    return deploy(program.run, config=stack.texts(), project=stack.project, stack_name=stack.stack)
