"""Commands of the jail: their command lines, and functions that run them and return their exit codes.

The first line of a function's docstring is its help.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from jail_tools import admin, claim, collect, layout
from jail_tools.accounts.account_sync import AccountSync
from jail_tools.copying import verification
from jail_tools.copying.parallel import default_processes
from jail_tools.errors import EXIT_REFUSED, RefusedError, TryAgainError, bounded
from jail_tools.populating.populate import Request
from jail_tools.populating.populate import populate as fill
from jail_tools.probing import storage_probe
from jail_tools.probing.catalogue import ACCEPTABLE, EMPTIED
from jail_tools.progress import log
from jail_tools.switching import tree_switch
from jail_tools.switching.tree_switch import Policy
from jail_tools.tree import manifest

EXIT_TERMINATED = 128 + signal.SIGTERM
FILLED_BEFORE = "JAIL_FILLED_BEFORE"
"""Environment variable with the tree, claim and time of the last filling that has ended."""

POLL_SECONDS = 1.0
"""Time between two looks at the accounts."""

Command = Callable[[argparse.Namespace], int]


def install(arguments: argparse.Namespace) -> int:
    """Copy this program into a volume, so that it runs in a container of any image."""
    copy_folder(arguments.origin, arguments.target)
    log(f"install: {arguments.origin} is in {arguments.target}, Python {sys.version.split()[0]}")
    return 0


def populate(arguments: argparse.Namespace) -> int:
    """Fill a tree from an image's root filesystem or a tarball. You can stop it at any moment, and run it again."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(EXIT_TERMINATED))  # PID 1 would ignore it; a kill does no harm
    tree = layout.tree_of(arguments.jail, arguments.tree)
    if not tree.complete.exists():
        accepted = dict(arguments.accept)
        claim.require_contents(arguments.jail, os.environ.get(FILLED_BEFORE, ""), accepted.get(EMPTIED, ""))
        storage_probe.require_storage(arguments.jail, accepted)
    fill(
        Request(
            tree=tree,
            source=arguments.source,
            root=None if arguments.tarball else arguments.root.resolve(),
            url=arguments.tarball,
            sha256=arguments.sha256,
            limit_mib_per_second=arguments.limit_mib_per_second,
            processes=arguments.processes,
        )
    )
    return 0


def probe(arguments: argparse.Namespace) -> int:
    """Test the volume for what a jail needs, in a separate directory, and print the findings as text and JSON."""
    accepted = dict(arguments.accept)
    report = storage_probe.probe(arguments.jail)
    for line in report.lines(accepted):
        log(f"storage: {line}")
    log(report.as_json(accepted))
    return EXIT_REFUSED if report.refused(accepted) else 0


def verify(arguments: argparse.Namespace) -> int:
    """Compare a tree with its manifest and list every difference: changed, damaged, removed or added paths.

    All differences go to standard output; the message has as many as fit.
    """
    tree = layout.tree_of(arguments.jail, arguments.tree)
    if not tree.complete.exists():
        raise RefusedError(f"tree {tree.name} of {tree.jail} is not complete: there is nothing to compare it with.")
    entries = list(manifest.read(tree.manifest))
    found = verification.differences(tree.root, entries, arguments.processes or default_processes())
    lines = [str(difference) for difference in found]
    for line in lines:
        log(line)
    if lines:
        raise TryAgainError(bounded(f"tree {tree.name} has {len(lines):,} differences from its manifest:", lines))
    log(f"verify: tree {tree.name} is as it was populated")
    return 0


def users(arguments: argparse.Namespace) -> int:
    """Keep the accounts that daemons look up: the declared ones and those that were made inside the jail.

    It runs in the pods of slurmctld and sshd until SIGTERM. In the controller's pod it also keeps the declared accounts
    in the active tree's own /etc (--write-tree), so that every program of any jail knows their names.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sync = AccountSync(arguments.jail, arguments.declared, arguments.out, write_tree=arguments.write_tree)
    while True:
        sync.look()
        if stop.wait(POLL_SECONDS):
            return 0


def switch(arguments: argparse.Namespace) -> int:
    """Switch the jail to another of its trees: new jobs and logins enter it, nothing that users did is forgotten."""
    done = tree_switch.switch(layout.tree_of(arguments.jail, arguments.to), arguments.changes)
    log(json.dumps({"from": done.old, "to": done.new, "changed": done.changed, "carried": done.carried}))
    return 0


def trees(arguments: argparse.Namespace) -> int:
    """List the complete trees of the jail as JSON, the one populated last first: source, size, whether it is active."""
    log(json.dumps(claim.listing(arguments.jail)))
    return 0


def collect_trees(arguments: argparse.Namespace) -> int:
    """Remove records of ended jobs, and the oldest trees that are unused and beyond the number to keep."""
    if arguments.keep < 1:
        raise RefusedError(f"--keep: got {arguments.keep}. At least 1 tree is kept: the active one.")
    in_use = {name for names in arguments.in_use for name in names.split(",") if name}
    for name in in_use:
        layout.tree_of(arguments.jail, name)
    collect.collect(arguments.jail, arguments.keep, in_use, collect.job_ids(arguments.live_jobs))
    return 0


def admin_shell(arguments: argparse.Namespace) -> int:
    """Run as the first process of the admin pod: make its root look like the jail's, then wait for SIGTERM."""
    return admin.run(arguments.root, arguments.tree)


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Declare all commands. The parsed arguments have the function of the chosen command as `run`."""
    chosen = parser.add_subparsers(dest="command", required=True)

    def add(name: str, run: Command, *, jail: bool = True) -> argparse.ArgumentParser:
        line = (run.__doc__ or "").splitlines()[0]
        command = chosen.add_parser(name, help=line, description=line)
        command.set_defaults(run=run)
        if jail:
            command.add_argument("--jail", type=Path, required=True, help="root of the jail's claim")
        return command

    command = add("install", install, jail=False)
    command.add_argument("target", type=Path, help="folder of the volume")
    command.add_argument("--from", dest="origin", type=Path, default=Path("/", layout.TOOLS), help=argparse.SUPPRESS)

    command = add("populate", populate)
    command.add_argument("--tree", required=True, help="the tree's name, 12 hexadecimal digits")
    command.add_argument("--source", required=True, help="the source's name, for messages and markers")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--root", type=Path, default=Path("/"), help="copy the root filesystem here (default: /)")
    source.add_argument("--tarball", metavar="URL", default="", help="unpack a tarball (plain, gz, xz, bz2) instead")
    command.add_argument("--sha256", metavar="HEX", default="", help="the tarball's checksum")
    command.add_argument("--limit-mib-per-second", type=positive, help="write no faster (default: no limit)")
    command.add_argument("--processes", type=int, help="copy with this many processes (default: the CPUs available)")
    add_accept(command)

    add_accept(add("probe", probe))

    command = add("verify", verify)
    command.add_argument("--tree", required=True, help="the tree's name, 12 hexadecimal digits")
    command.add_argument("--processes", type=int, help="read with this many processes (default: the CPUs available)")

    command = add("users", users)
    declared = "folder with the declared passwd, group and shadow"
    command.add_argument("--declared", type=Path, required=True, help=declared)
    command.add_argument("--out", type=Path, required=True, help="folder that libnss-extrausers reads")
    command.add_argument("--write-tree", action="store_true", help="keep the declared accounts in the active tree too")

    command = add("switch", switch)
    command.add_argument("--to", required=True, help="name of the tree to switch to, 12 hexadecimal digits")
    changes = "treatment of users' changes (default: refuse if there are any)"
    command.add_argument("--changes", type=Policy, choices=list(Policy), default=Policy.REFUSE, help=changes)

    add("trees", trees)

    command = add("collect", collect_trees)
    command.add_argument("--keep", type=int, required=True, help="complete trees to keep, the active one among them")
    command.add_argument("--in-use", action="append", default=[], help="trees that logins are in: names with commas")
    ids = "@FILE with the ids of all jobs, one a line; @- reads them here"
    command.add_argument("--live-jobs", required=True, help=ids)

    command = add("admin", admin_shell, jail=False)
    command.add_argument("--root", type=Path, default=Path("/"), help="where to make the links (default: /)")
    command.add_argument("--tree", type=Path, default=Path("/.tree"), help="the tree (default: /.tree)")


def add_accept(command: argparse.ArgumentParser) -> None:
    """Declare the option by which a user accepts findings of the storage's probe."""
    helped = "accept a finding of the storage's probe"
    command.add_argument("--accept", type=accepted, action="append", default=[], metavar="PROPERTY=REASON", help=helped)


def accepted(text: str) -> tuple[str, str]:
    """Return the name of a finding, and the reason to accept it."""
    name, _, why = text.partition("=")
    if not why or name not in ACCEPTABLE:
        raise ValueError(text)
    return name, why


def positive(text: str) -> float:
    """Return a number greater than 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


def copy_folder(origin: Path, target: Path) -> None:
    """Copy a folder's content into another folder, replacing what a stopped init container left there."""
    for where, folders, files in os.walk(origin):
        below = target / Path(where).relative_to(origin)
        below.mkdir(exist_ok=True)
        links = [name for name in folders if Path(where, name).is_symlink()]
        for name in (*files, *links):
            (below / name).unlink(missing_ok=True)
            shutil.copy2(Path(where, name), below / name, follow_symlinks=False)
