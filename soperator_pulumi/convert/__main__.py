"""`python -m soperator_pulumi.convert FILE...`: writes a stack file from what another project describes."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from soperator_pulumi.convert import convert
from soperator_pulumi.errors import ConversionError

EXIT_REFUSED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the files that the command line names, and return the exit code."""
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
        for file in filter(None, (given.output, given.report)):
            if file.exists() and not given.force:
                raise ConversionError(f"{file}: exists. Name another file, or overwrite it with --force.")
        converted = convert(given.files)
        _write(converted.stack_file(), given.output, sys.stdout)
        _write(converted.report(), given.report, sys.stderr)
    except ConversionError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_REFUSED
    return 0


def _write(text: str, file: Path | None, otherwise: object) -> None:
    if file is None:
        otherwise.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}. Name a file that can be written.") from None


if __name__ == "__main__":
    sys.exit(main())
