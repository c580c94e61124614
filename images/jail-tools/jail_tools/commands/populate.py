"""Fill a tree from an image's root filesystem or a tarball; it can be killed at any moment and run again."""

import argparse
import os
import signal
from pathlib import Path

from jail_tools import layout
from jail_tools.populating.populate import Request, populate

EXIT_TERMINATED = 128 + signal.SIGTERM


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("--jail", type=Path, required=True, help="root of the jail's claim")
    parser.add_argument("--tree", required=True, help="the tree's name, 12 hexadecimal digits")
    parser.add_argument("--source", required=True, help="the source's name, for messages and markers")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--root", type=Path, default=Path("/"), help="copy the root filesystem here (default: /)")
    source.add_argument("--tarball", metavar="URL", default="", help="unpack a tarball (plain, gz, xz, bz2) instead")
    parser.add_argument("--sha256", metavar="HEX", default="", help="the tarball's checksum")
    parser.add_argument("--limit-mib-per-second", type=positive, help="write no faster (default: no limit)")
    parser.add_argument("--processes", type=int, help="copy with so many processes (default: the CPUs available)")


def positive(text: str) -> float:
    """Return a number that is more than nothing."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


def run(arguments: argparse.Namespace) -> int:
    """Do the command."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(EXIT_TERMINATED))  # PID 1 would ignore it; a kill does no harm
    populate(
        Request(
            tree=layout.tree_of(arguments.jail, arguments.tree),
            source=arguments.source,
            root=None if arguments.tarball else arguments.root.resolve(),
            url=arguments.tarball,
            sha256=arguments.sha256,
            limit_mib_per_second=arguments.limit_mib_per_second,
            processes=arguments.processes,
        )
    )
    return 0
