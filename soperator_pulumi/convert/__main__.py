"""`python -m soperator_pulumi.convert FILE...`: writes a stack file from another project's description of a cluster."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from soperator_pulumi.convert import convert
from soperator_pulumi.errors import ConversionError

EXIT_REFUSED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the files named on the command line, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m soperator_pulumi.convert",
        description="Write a stack file from Helm values or custom resources of soperator (5.x) or Slinky (1.x).",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="values or resources, in YAML")
    parser.add_argument("--output", metavar="Pulumi.NAME.yaml", type=Path, help="stack file (default: standard output)")
    parser.add_argument("--report", metavar="FILE", type=Path, help="file of the report (default: standard error)")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    given = parser.parse_args(arguments)
    try:
        _convert(given.files, given.output, given.report, force=given.force)
    except ConversionError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_REFUSED
    return 0


def _convert(files: Sequence[Path], output: Path | None, report: Path | None, *, force: bool) -> None:
    for file in filter(None, (output, report)):
        if file.exists() and not force:
            raise ConversionError(f"{file}: exists already. Give another file, or overwrite it with --force.")
    converted = convert(files)
    _write(converted.stack_file(), output, sys.stdout)
    _write(converted.report(), report, sys.stderr)


def _write(text: str, file: Path | None, otherwise: TextIO) -> None:
    if file is None:
        otherwise.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}. Give a file that can be written.") from None


if __name__ == "__main__":
    sys.exit(main())
