"""`soperator`, the command that the package installs. Every subcommand is a module, imported when it runs."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from soperator_pulumi import __version__
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.wording import did_you_mean

if TYPE_CHECKING:
    from soperator_pulumi.cli.any_command import Command

EXIT_WRONG_USE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
EXIT_NOT_READ = 141  # 128 + SIGPIPE

COMMANDS: Mapping[str, str] = {
    "preflight": "check a Kubernetes before a cluster is deployed to it",
    "preview": "print what `up` would change, and the nodes and jobs it would touch",
    "up": "deploy a stack",
    "refresh": "record changes made behind Pulumi's back",
    "destroy": "drain the nodes of a stack, and delete what it has created",
    "drift": "list differences between a stack and its Kubernetes",
    "review": "print a preview as Markdown, for the summary of a job in CI",
    "render": "write the manifests that `up` would apply",
    "status": "show nodes, jobs, drains and failed checks of a cluster",
    "nodes": "drain nodes, undrain them, or explain their state",
    "ssh": "log in to a cluster, or run one command there",
    "admin": "open a root shell in the jail of a cluster",
    "containers": "list the images of containers in jobs",
    "dumps": "list, make and restore dumps of the accounting database",
    "alerts": "write rules of Prometheus and dashboards of Grafana",
    "policy": "list policies, or explain one",
    "convert": "write a stack file from values or resources of soperator or Slinky",
    "completion": "print the completion of a shell: bash or zsh",
}
"""Help of every command, in one line. The module has the command's name, unless `_MODULES` has another."""

_MODULES = {**dict.fromkeys(("preview", "up", "refresh", "destroy"), "pulumi_runs"), "containers": "container_list"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status. An error that a user can fix is one message on standard error.

    Args:
        arguments: Words after `soperator`. Default: those of this process.
    """
    if arguments is None:
        arguments = sys.argv[1:]
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that a CI cancels removes its probes, too
    name, *rest = [*arguments] or ["--help"]
    if name not in COMMANDS:
        _top_parser().parse_args([name])
        hint = did_you_mean(name, COMMANDS, f"Commands: {', '.join(COMMANDS)}.")
        say(f'error: there is no command "{name}". {hint}')
        sys.exit(EXIT_WRONG_USE)
    command = load(name)
    given = parser_of(name, command).parse_args(rest)
    try:
        status = command.run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        say(command.interrupted)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NOT_READ
    except Exception as error:
        if not _is_for_the_user(error):
            raise
        say(f"error: {error}")
        return command.on_error
    return status


def load(name: str) -> "Command":
    """Return a command, without importing the others."""
    command: Command = import_module(f"{__name__}.{_MODULES.get(name, name)}").COMMAND
    return command


def parser_of(name: str, command: "Command") -> argparse.ArgumentParser:
    """Return the parser of a command's arguments."""
    statuses = "\n".join(f"  {status}  {meaning}" for status, meaning in command.statuses.items())
    parser = argparse.ArgumentParser(
        prog=f"soperator {name}",
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=f"example:\n  {command.example.format(name=name)}\n\nexit status:\n{statuses}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command_name=name)
    command.configure(parser)
    return parser


def say(text: str) -> None:
    """Print progress and errors to standard error: standard output is for a command's answer."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _top_parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {meaning}" for name, meaning in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="soperator",
        usage="soperator COMMAND ...",
        description="Slurm on Kubernetes: check, deploy and run clusters.",
        epilog=f"commands:\n{listed}\n\n`soperator COMMAND --help` has its options, an example and its exit status.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"soperator {__version__}")
    parser.add_argument("command", metavar="COMMAND", nargs="?", help=argparse.SUPPRESS)
    return parser


def _is_for_the_user(error: Exception) -> bool:
    """Return True for an error whose message is complete for a user: from this package, or from Pulumi."""
    pulumi = sys.modules.get("pulumi")
    return isinstance(error, SoperatorError) or (pulumi is not None and isinstance(error, pulumi.RunError))
