"""`soperator convert FILE...`: writes a stack file from another project's cluster description."""

import argparse
import sys
from pathlib import Path
from typing import TextIO

from soperator_pulumi.cli.any_command import Command
from soperator_pulumi.convert import convert
from soperator_pulumi.errors import ConversionError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="values or resources, in YAML")
    parser.add_argument("--output", metavar="Pulumi.NAME.yaml", type=Path, help="stack file (default: standard output)")
    parser.add_argument("--report", metavar="FILE", type=Path, help="file of the report (default: standard error)")
    parser.add_argument(
        "--release", metavar="X.Y", default="", help="release of Slinky's chart slurm (default: as the values tell)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")


def run(given: argparse.Namespace) -> int:
    """Convert the files that the command line names."""
    for file in filter(None, (given.output, given.report)):
        if file.exists() and not given.force:
            raise ConversionError(f"{file}: exists already. Give another file, or overwrite it with --force.")
    converted = convert(given.files, release=given.release)
    _write(converted.stack_file(), given.output, sys.stdout)
    _write(converted.report(), given.report, sys.stderr)
    return 0


def _write(text: str, file: Path | None, otherwise: TextIO) -> None:
    if file is None:
        otherwise.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}. Give a file that can be written.") from None


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator convert values.yaml --output Pulumi.hpc.yaml --report report.txt",
    statuses={0: "converted; the report says what is left to do", 1: "refused: the error says why", 2: "wrong use"},
    on_error=1,
)
