"""Switch the jail to another of its trees: new jobs and logins enter that one, nothing that users did is forgotten."""

import argparse
import json
from pathlib import Path

from jail_tools import layout
from jail_tools.progress import say
from jail_tools.switching.tree_switch import Policy, switch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("--jail", type=Path, required=True, help="root of the jail's claim")
    parser.add_argument("--to", required=True, help="name of the tree to switch to, 12 hexadecimal digits")
    parser.add_argument(
        "--changes",
        type=Policy,
        choices=list(Policy),
        default=Policy.REFUSE,
        help="what becomes of users' changes (default: refuse when there are any)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do the command."""
    done = switch(layout.tree_of(arguments.jail, arguments.to), arguments.changes)
    say(json.dumps({"from": done.old, "to": done.new, "changed": done.changed, "carried": done.carried}))
    return 0
