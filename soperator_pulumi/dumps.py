"""`python -m soperator_pulumi.dumps COMMAND`: lists, makes and restores dumps of a cluster's accounting database.

Exit status: 0 where it is done, 1 where it is refused or has failed, 130 where it is interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.access import Access
from soperator_pulumi.operations.database.administration import DatabaseAdministration
from soperator_pulumi.operations.database.dump_jobs import Dumps
from soperator_pulumi.operations.database.restore import REPLACED, Restore
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.kube_api import Cluster
from soperator_pulumi.operations.progress import MachineClock

EXIT_FAILED = 1
EXIT_CANCELLED = 130  # 128 + SIGINT, as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m soperator_pulumi.dumps",
        description="List, make and restore dumps of a cluster's accounting database.",
    )
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--namespace", "-n", required=True, help="namespace of the cluster")
    where.add_argument("--kubeconfig", help="kubeconfig file (default: KUBECONFIG)")
    where.add_argument("--context", help="context in it (default: its current one)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", parents=[where], help="list the dumps, the oldest first")
    commands.add_parser("make", parents=[where], help="dump now, beside the schedule")
    restore = commands.add_parser("restore", parents=[where], help="put a dump in the place of the live database")
    restore.add_argument("dump", metavar="DUMP", help="name of the dump, as `list` prints it")
    commands.add_parser("forget", parents=[where], help="remove the database that a restore has replaced")
    given = parser.parse_args(arguments)
    try:
        return _carry_out(given, Cluster(Access(given.kubeconfig, given.context)))
    except SoperatorError as error:
        say(f"error: {error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        say("interrupted: the live database is as it was. Run again to restore.")
        return EXIT_CANCELLED


def _carry_out(given: argparse.Namespace, kube: Kube) -> int:
    dumps = Dumps(kube, given.namespace, say, MachineClock())
    restore = Restore(DatabaseAdministration(kube, given.namespace, dumps.selector()), dumps, say)
    match given.command:
        case "list":
            for dump in dumps.listed():
                sys.stdout.write(f"{dump.name}  {dump.size_bytes} bytes\n")
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


def say(text: str) -> None:
    """Show progress and errors on standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
