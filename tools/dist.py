"""`make dist`: builds the wheel and the source distribution, from a tree without files that git does not know.

It refuses a tag that differs from the version.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import soperator_pulumi
from tools import console, paths
from tools.console import UserError, step

FOLDER = paths.ROOT / "dist"

_VERSION_TAG = re.compile(r"v\d.*")


def main() -> None:
    """Check the release, and build both distributions in `dist/`."""
    version = soperator_pulumi.__version__
    tags = _git("tag", "--points-at", "HEAD").split()
    changelog = (paths.ROOT / "CHANGELOG.md").read_text()
    changed = _git("status", "--porcelain").splitlines()
    untracked = _git("ls-files", "--others", "--exclude-standard").splitlines()
    if found := problems(version, tags, changelog, changed=changed, untracked=untracked):
        raise UserError("Nothing is built:\n  " + "\n  ".join(found))
    kind = f"release {version}" if versions_of(tags) else f"{version}, which no tag makes a release"
    with step(f"Building {kind}"):
        built = build(FOLDER)
    for file in built:
        print(file.relative_to(paths.ROOT))


def problems(
    version: str, tags: Sequence[str], changelog: str, *, changed: Sequence[str], untracked: Sequence[str]
) -> list[str]:
    """Return contradictions between a tagged commit and its content, and files that would be published by mistake.

    Args:
        version: `__version__` of the package.
        tags: Tags of the commit.
        changelog: Content of CHANGELOG.md.
        changed: Files that differ from the commit, in git's short form.
        untracked: Files that git neither knows nor ignores: the source distribution would contain them.
    """
    found = []
    if untracked:
        names = ", ".join(untracked)
        found.append(f"The source distribution would contain files that git does not know. Add or move them: {names}.")
    tagged = versions_of(tags)
    if not tagged:
        return found
    if tagged != [version]:
        names = ", ".join(f"v{text}" for text in tagged)
        found.append(
            f'soperator_pulumi/__init__.py: __version__ is "{version}", and the commit has the tag {names}. '
            f"Tag it v{version}, or set the version and commit."
        )
    if not re.search(rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog):
        found.append(
            f'CHANGELOG.md: "## [{version}] - <year>-<month>-<day>" is missing. Give Unreleased that heading, '
            'and put a new, empty "## [Unreleased]" above it.'
        )
    if changed:
        found.append(f"The tag has other content than this folder. Commit or undo: {', '.join(changed)}.")
    return found


def versions_of(tags: Sequence[str]) -> list[str]:
    """Return the versions that tags such as `v1.2.3` give."""
    return [tag.removeprefix("v") for tag in tags if _VERSION_TAG.fullmatch(tag)]


def build(folder: Path) -> list[Path]:
    """Build both distributions from this tree, with the build backend of this environment, and return their paths."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"hatchling ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return sorted(folder.glob(f"soperator_pulumi-{soperator_pulumi.__version__}[.-]*"))


def _git(*arguments: str) -> str:
    """Return git's answer; empty outside of a checkout, where there are no tags."""
    command = ["git", "-C", str(paths.ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(console.run(main))
