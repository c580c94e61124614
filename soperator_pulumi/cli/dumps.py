"""`soperator dumps`: lists, makes and restores dumps of a cluster's accounting database."""

import argparse
import sys

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, access_in, add_cluster, add_json, print_json
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.database.administration import DatabaseAdministration
from soperator_pulumi.operations.database.dump_jobs import Dumps
from soperator_pulumi.operations.database.restore import REPLACED, Restore
from soperator_pulumi.operations.progress import MachineClock


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    where = argparse.ArgumentParser(add_help=False)
    add_cluster(where)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_json(commands.add_parser("list", parents=[where], help="list the dumps, the oldest first"))
    commands.add_parser("make", parents=[where], help="dump now, in addition to the schedule")
    restore = commands.add_parser("restore", parents=[where], help="replace the live database with a dump")
    restore.add_argument("dump", metavar="DUMP", help="name of the dump, as `list` prints it")
    commands.add_parser("forget", parents=[where], help="remove the database that a restore has replaced")


def run(given: argparse.Namespace) -> int:
    """Carry out a command, and return the exit status."""
    return carry_out(given, Cluster(access_in(given)))


def carry_out(given: argparse.Namespace, kube: Kube) -> int:
    """Carry out a command on one Kubernetes cluster, and return the exit status."""
    dumps = Dumps(kube, given.namespace, say, MachineClock())
    restore = Restore(DatabaseAdministration(kube, given.namespace, dumps.selector()), dumps, say)
    match given.command:
        case "list":
            listed = dumps.listed()
            if given.json:
                print_json([{"name": dump.name, "size_bytes": dump.size_bytes} for dump in listed])
            else:
                sys.stdout.writelines(f"{dump.name}  {dump.size_bytes} bytes\n" for dump in listed)
        case "make":
            dumps.make()
        case "restore":
            restore.run(given.dump)
            say(
                f"restored. Start slurmdbd: kubectl scale statefulset/accounting -n {given.namespace} --replicas=1. "
                f"The replaced database is kept as {REPLACED} until `forget`."
            )
        case _:
            say("forgotten" if restore.forget() else "there is no replaced database")
    return 0


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator dumps list -n hpc",
    statuses={0: "done", 1: "refused, or failed: the error says why", 2: "wrong use"},
    on_error=1,
    interrupted="interrupted: the live database is as it was. Run again to restore.",
)
