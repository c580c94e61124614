"""`make render STACK=prod`: writes the manifests that `pulumi up` would apply, for review and for GitOps."""

import argparse
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

import pulumi

from soperator_pulumi.cli.render import write
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.testing import Deployment, Manifests, deploy, manifests_of
from soperator_pulumi.wording import counted
from tools import console, paths
from tools.console import UserError, say, step
from tools.engine import Target
from tools.engine.project import Project, load

FOLDER = paths.ROOT / "manifests"


def main() -> None:
    """Render the stack that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="local", help="name of the stack (default: local)")
    parser.add_argument("--folder", type=Path, help="folder of the files (default: manifests/<stack>)")
    given = parser.parse_args()
    folder: Path = given.folder or FOLDER / given.stack
    with step(f"Rendering stack {given.stack} into {folder}"):
        rendered = render(paths.ROOT, given.stack)
        write(rendered.files(given.stack), folder)
    secrets = f"{counted(len(rendered.secrets), 'Secret')} left out: {folder / 'secrets.md'}"
    say(f"{counted(len(rendered.objects), 'object')}; {secrets}")


def render(root: Path, stack: str) -> Manifests:
    """Return the manifests of a stack.

    Args:
        root: Folder of `Pulumi.yaml`.
        stack: Name of the stack.

    Raises:
        UserError: The project, the stack's configuration or the program has problems.
    """
    try:
        return manifests_of(rendered_deployment(root, stack))
    except SoperatorError as error:
        raise UserError(str(error)) from None


def rendered_deployment(
    root: Path, stack: str, stack_outputs: Mapping[str, Mapping[str, str]] | None = None
) -> Deployment:
    """Return the registrations of a stack's program, run against mocks.

    Args:
        root: Folder of `Pulumi.yaml`.
        stack: Name of the stack.
        stack_outputs: Outputs of other stacks, by stack and name. Default: none.

    Raises:
        UserError: The project, the stack's configuration or the program has problems.
    """
    project = load(Target(project=root, stack=stack, state=paths.state_dir()))
    try:
        return deploy(
            lambda: _run(project), config=project.config, project=project.name, stack_name=stack, stacks=stack_outputs
        )
    except (SoperatorError, pulumi.RunError) as error:
        raise UserError(str(error)) from None
    except LookupError as error:  # an output of another stack
        raise UserError(
            f"{error.args[0]}\nA rendering reads no other stack. Put the value itself in place of `from_stack` in the "
            f"file of stack {stack}; or, in a preflight, give --stack-output <stack>:<output>=<value>."
        ) from None


def _run(project: Project) -> None:
    """Run the program in this process, as the language host does."""
    sys.path.insert(0, str(project.program))
    try:
        runpy.run_path(str(project.program / "__main__.py"), run_name="__main__")
    finally:
        sys.path.remove(str(project.program))


if __name__ == "__main__":
    sys.exit(console.run(main))
