"""Keep the accounts that daemons look up: the declared ones and those that were made inside the jail.

It runs beside slurmctld and sshd and looks once a second. In the controller's pod it also keeps the declared accounts
in the active tree's own /etc (--write-tree), so that every program of any jail knows their names.
"""

import argparse
import signal
import threading
from pathlib import Path

from jail_tools.accounts.account_sync import Keeper

POLL_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--jail", type=Path, required=True, help="where the jail's claim is mounted")
    parser.add_argument(
        "--declared", type=Path, required=True, help="folder with the declared passwd, group and shadow"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder that libnss-extrausers reads")
    parser.add_argument("--write-tree", action="store_true", help="keep the declared accounts in the active tree too")


def run(arguments: argparse.Namespace) -> int:
    """Run until SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    keeper = Keeper(arguments.jail, arguments.declared, arguments.out, write_tree=arguments.write_tree)
    while True:
        keeper.look()
        if stop.wait(POLL_SECONDS):
            return 0
