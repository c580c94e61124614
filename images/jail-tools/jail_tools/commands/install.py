"""Copy this program into a volume, so that it runs in a container of any image."""

import argparse
import os
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
    """Do the command. What an init container that was stopped left is written over."""
    copy(arguments.origin, arguments.target)
    say(f"install: {arguments.origin} is in {arguments.target}, Python {sys.version.split()[0]}")
    return 0


def copy(origin: Path, target: Path) -> None:
    """Copy what is in a folder into another one, in place of what has the same names there."""
    for where, folders, files in os.walk(origin):
        below = target / Path(where).relative_to(origin)
        below.mkdir(exist_ok=True)
        links = [name for name in folders if Path(where, name).is_symlink()]
        for name in (*files, *links):
            (below / name).unlink(missing_ok=True)
            shutil.copy2(Path(where, name), below / name, follow_symlinks=False)
