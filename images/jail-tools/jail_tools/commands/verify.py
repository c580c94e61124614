"""Compare a tree with its manifest and name every difference: what was changed, spoilt, removed or added."""

import argparse
from pathlib import Path

from jail_tools import layout
from jail_tools.copying import verification
from jail_tools.copying.parallel import default_processes
from jail_tools.errors import RefusedError, TryAgainError, bounded
from jail_tools.progress import say
from jail_tools.tree import manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("--jail", type=Path, required=True, help="root of the jail's claim")
    parser.add_argument("--tree", required=True, help="the tree's name, 12 hexadecimal digits")
    parser.add_argument("--processes", type=int, help="read with so many processes (default: the CPUs available)")


def run(arguments: argparse.Namespace) -> int:
    """Do the command. All differences go to standard output, as many as fit into the message."""
    tree = layout.tree_of(arguments.jail, arguments.tree)
    if not tree.complete.exists():
        raise RefusedError(f"tree {tree.name} of {tree.jail} is not complete: there is nothing to compare it with.")
    entries = list(manifest.read(tree.manifest))
    found = verification.differences(tree.root, entries, arguments.processes or default_processes())
    for difference in found:
        say(str(difference))
    if found:
        raise TryAgainError(
            bounded(
                f"tree {tree.name} has {len(found):,} differences from its manifest:", [str(item) for item in found]
            )
        )
    say(f"verify: tree {tree.name} is as it was populated")
    return 0
