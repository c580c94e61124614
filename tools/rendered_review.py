"""`make rendered-review STACK=prod BASE=main`: prints how a change alters a stack's manifests, without credentials.

Base and change are rendered by their own programs and compared. The policies judge the change. No live system is
contacted, so the program may be one that no one has reviewed.
"""

import argparse
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from soperator_pulumi.cli import markdown
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.policy.recorded import Violation, judge
from soperator_pulumi.testing import manifests_of
from tools import console, paths
from tools.console import UserError, say, step
from tools.engine import Target
from tools.engine.project import load
from tools.render import rendered_deployment

_PLACE = re.compile(r"^\d+-")
"""Position in the order of creation, which begins the name of a manifest's file: one more object moves all that follow.
"""


def main() -> None:
    """Print the review of the stack that the command line names. Fail if a policy refuses the change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="local", help="name of the stack (default: local)")
    parser.add_argument("--base", default="main", help="commit that the change is compared with (default: main)")
    given = parser.parse_args()
    stack: str = given.stack
    with step(f"Rendering stack {stack} of {given.base}"):
        before = manifests_at(paths.ROOT, given.base, stack)
    with step(f"Rendering stack {stack} of the change"):
        after, violations = _judged(stack)
    print(page(stack, before, after, violations))
    if any(violation.level.fails for violation in violations):
        raise UserError(f"Stack {stack} is refused. The page gives the reasons.")


def manifests_at(root: Path, commit: str, stack: str) -> dict[str, str] | None:
    """Return the manifests of a stack at a commit, by file; None if the stack does not exist, or does not render.

    Raises:
        UserError: The commit is not in this clone.
    """
    with TemporaryDirectory() as temporary:
        tree, folder = Path(temporary, "tree"), Path(temporary, "manifests")
        added = _git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        if added.returncode:
            raise UserError(f"BASE={commit} is not a commit of this clone. Fetch it, or name another: {added.stderr}")
        try:
            command = ["make", "--silent", "-C", str(tree), "render", f"STACK={stack}", f"DIR={folder}"]
            if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
                say(f"Stack {stack} does not render at {commit}: all of it counts as new.")
                return None
            return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))


def page(
    stack: str, before: Mapping[str, str] | None, after: Mapping[str, str], violations: Sequence[Violation] = ()
) -> str:
    """Return the comparison as Markdown.

    Args:
        stack: Name of the stack.
        before: Manifests of the base by file; None if it has none.
        after: Manifests of the change by file.
        violations: Findings of the policies in the change.
    """
    old, new = _by_name(before or {}), _by_name(after)
    changes = {
        "create": sorted(new.keys() - old.keys()),
        "update": sorted(name for name in new.keys() & old.keys() if new[name] != old[name]),
        "delete": sorted(old.keys() - new.keys()),
    }
    counts = ", ".join(f"{len(names)} to {operation}" for operation, names in changes.items() if names)
    refused = any(violation.level.fails for violation in violations)
    parts = [f"## Manifests of `{stack}`: {'refused' if refused else counts or 'no change'}"]
    if before is None:
        parts.append("The base does not render this stack: all of it counts as new.")
    parts += [
        markdown.block([f"[{violation.level}] {violation.policy}: {violation.message}"]) for violation in violations
    ]
    rows = [f"| {operation} | {markdown.code(name)} |" for operation, names in changes.items() for name in names]
    if rows:
        parts.append("\n".join(["| step | file |", "|---|---|", *rows]))
    changed = [name for names in changes.values() for name in names]
    lines = [line for name in changed for line in _difference(name, old.get(name, ""), new.get(name, ""))]
    if lines:
        parts.append(markdown.block(lines, "diff"))
    return markdown.short("\n\n".join(parts))


def _judged(stack: str) -> tuple[dict[str, str], tuple[Violation, ...]]:
    """Return the manifests of the change by file, and the policies' findings about it."""
    deployment = rendered_deployment(paths.ROOT, stack)
    config = load(Target(project=paths.ROOT, stack=stack, state=paths.state_dir())).config
    try:
        found = judge(deployment, policy=json.loads(config.get("soperator:policy", "{}")), stack=stack, variables={})
        return manifests_of(deployment).files(stack), found.violations
    except SoperatorError as error:
        raise UserError(str(error)) from None


def _by_name(files: Mapping[str, str]) -> dict[str, str]:
    return {_PLACE.sub("", name): text for name, text in files.items() if name != "README.md"}


def _difference(name: str, old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"base/{name}", f"change/{name}", lineterm="")
    return [*lines]


def _git(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["git", "-C", str(root), *arguments], check=False, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(console.run(main))
