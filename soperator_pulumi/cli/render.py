"""`soperator render FILE`: writes the manifests that a deployment of a stack's file would apply."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, add_stack_outputs, stack_outputs_in
from soperator_pulumi.errors import Problem, SoperatorError, SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.simulation.manifests import manifests_of
from soperator_pulumi.stack.dry_run import dry_run
from soperator_pulumi.stack.stack_file import read_stack_file
from soperator_pulumi.wording import counted

_NO_KUBERNETES = Access(kubeconfig="none")
"""Placeholder for the stack's kubeconfig, which may be encrypted or another stack's. No manifest needs it."""

_OWN = re.compile(r"\d{3}-.*\.yaml|README\.md|secrets\.md")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", type=Path, help="file of a stack: Pulumi.NAME.yaml")
    parser.add_argument("--output", metavar="FOLDER", type=Path, help="folder (default: manifests/NAME)")
    add_stack_outputs(parser)


def run(given: argparse.Namespace) -> int:
    """Write the manifests of a stack's file."""
    stack = read_stack_file(given.file, stack_outputs_in(given), _NO_KUBERNETES)
    if stack is None:
        raise SpecError(str(given.file), [Problem("config", "is missing: this is not the file of a stack. Name one.")])
    rendered = manifests_of(dry_run(stack))
    folder: Path = given.output or Path("manifests") / stack.stack
    write(rendered.files(stack.stack), folder)
    secrets = f"{counted(len(rendered.secrets), 'Secret')} left out: {folder / 'secrets.md'}"
    say(f"{counted(len(rendered.objects), 'object')} in {folder}; {secrets}")
    return 0


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write the files into a folder, and remove those of an earlier run.

    Raises:
        SoperatorError: The folder holds files of others, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(folder.iterdir())
        if others := [file.name for file in there if not _OWN.fullmatch(file.name)]:
            raise SoperatorError(
                f"{folder} holds other files: {', '.join(others[:3])}. Name an empty folder, or one of an earlier "
                "rendering: make render STACK=... DIR=..., or soperator render FILE --output FOLDER"
            )
        for file in there:
            file.unlink()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SoperatorError(f"{folder}: {error.strerror}. Name a folder that can be written.") from None


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator render stacks/Pulumi.prod.yaml --output manifests/prod",
    statuses={0: "written", 2: "refused, or wrong use"},
)
