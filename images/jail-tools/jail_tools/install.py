"""Copy this program into a volume, so that it runs in a container of any image."""

import argparse
import shutil
import sys
from pathlib import Path

from jail_tools.layout import TOOLS
from jail_tools.progress import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("target", type=Path, help="folder of the volume")
    parser.add_argument("--from", dest="origin", type=Path, default=Path("/", TOOLS), help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Do the command."""
    shutil.copytree(arguments.origin, arguments.target, symlinks=True, dirs_exist_ok=True)
    say(f"install: {arguments.origin} is in {arguments.target}, Python {sys.version.split()[0]}")
    return 0
