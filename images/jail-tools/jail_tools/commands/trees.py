"""List the trees of the jail as JSON: which there are, what they were made from, and which one is active."""

import argparse
import json
from pathlib import Path

from jail_tools import claim
from jail_tools.progress import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("--jail", type=Path, required=True, help="root of the jail's claim")


def run(arguments: argparse.Namespace) -> int:
    """Do the command."""
    say(json.dumps(listing(arguments.jail)))
    return 0


def listing(jail: Path) -> list[dict[str, object]]:
    """Return the complete trees, the one populated last first."""
    active = claim.active_tree(jail)
    found = [each for tree in claim.all_trees(jail) if (each := claim.complete(tree)) is not None]
    return [
        {
            "tree": each.tree.name,
            "source": each.source,
            "populated": each.populated,
            "active": each.tree == active,
            "files": each.files,
            "bytes": each.bytes,
        }
        for each in sorted(found, key=lambda each: each.populated, reverse=True)
    ]
