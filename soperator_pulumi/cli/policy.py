"""`soperator policy`: the policies of the package, their levels and their cures."""

import argparse
import sys
from typing import Any

from soperator_pulumi.cli.any_command import Command, add_json, print_json
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.policy.definition import AnyPolicy
from soperator_pulumi.policy.levels import Environment
from soperator_pulumi.policy.registry import POLICIES
from soperator_pulumi.wording import did_you_mean


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list all policies with their levels")
    listing.add_argument(
        "--environment",
        choices=[str(environment) for environment in Environment],
        default=str(Environment.PROD),
        help="environment of the levels (default: prod)",
    )
    add_json(listing)
    explain = commands.add_parser("explain", help="print the rule of a policy, its levels and its cure")
    explain.add_argument("policy", metavar="POLICY", help="name of the policy, as `list` prints it")
    add_json(explain)


def run(given: argparse.Namespace) -> int:
    """List the policies, or explain one."""
    if given.command == "list":
        _list(Environment(given.environment), as_json=given.json)
        return 0
    policies = {policy.name: policy for policy in POLICIES}
    if given.policy not in policies:
        hint = did_you_mean(given.policy, policies, "List them: soperator policy list.")
        raise SoperatorError(f'there is no policy "{given.policy}". {hint}')
    policy = policies[given.policy]
    if given.json:
        print_json(_described(policy))
    else:
        sys.stdout.write(explanation(policy))
    return 0


def explanation(policy: AnyPolicy) -> str:
    """Return everything that a person needs to fix a violation of a policy."""
    levels = ", ".join(f"{environment} {policy.levels.in_(environment)}" for environment in Environment)
    settings = [name for name in policy.settings.model_fields if name != "level"]
    lines = [
        f"{policy.name}: {policy.description}",
        f"Violated by: {policy.violated_by}",
        f"Cure: {policy.cure}",
        f"Levels: {levels}. Severity: {policy.severity}.",
        *([f"Settings, under soperator:policy.settings.{policy.name}: {', '.join(settings)}."] if settings else []),
        (
            f"Exception: soperator:policy.exceptions.{policy.name}, with a reason."
            if policy.exceptable
            else "No exception counts."
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


def _list(environment: Environment, *, as_json: bool) -> None:
    if as_json:
        print_json([_described(policy) for policy in POLICIES])
        return
    names = max(len(policy.name) for policy in POLICIES)
    for policy in POLICIES:
        sys.stdout.write(f"{policy.name:{names}}  {policy.levels.in_(environment):9}  {policy.description}\n")


def _described(policy: AnyPolicy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "description": policy.description,
        "violated_by": policy.violated_by,
        "cure": policy.cure,
        "severity": str(policy.severity),
        "levels": {str(where): str(policy.levels.in_(where)) for where in Environment},
        "settings": [name for name in policy.settings.model_fields if name != "level"],
        "exceptable": policy.exceptable,
    }


COMMAND = Command(configure=configure, run=run, example="soperator policy explain host-paths")
