"""`make site`: builds the documentation as a site. Broken links and anchors are errors."""

import argparse
import subprocess
import sys
from pathlib import Path

from tools import console, paths
from tools.console import UserError, step

SETTINGS = Path(__file__).parent


def build(folder: Path, sources: Path = paths.ROOT) -> Path:
    """Build the site in a folder, and return its first page.

    Args:
        folder: Folder of the site.
        sources: Folder with the README, whose table is the navigation.

    Raises:
        UserError: Sphinx has an error or a warning, which it has printed.
    """
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    folders = ["--conf-dir", str(SETTINGS), "--doctree-dir", str(folder / ".read"), str(sources), str(folder)]
    # cwd: Sphinx runs the settings, which import the package.
    if subprocess.run([*command, *folders], check=False, cwd=paths.ROOT).returncode:
        raise UserError("the site has the problems above: mend the pages or docstrings that they name")
    return folder / "index.html"


def main() -> None:
    """Build the site in the folder that the command line names, and print its first page."""
    parser = argparse.ArgumentParser(prog="make site", description=__doc__)
    parser.add_argument("--folder", type=Path, default=paths.ROOT / "site", help="folder of the site (default: site/)")
    with step("Building the documentation (about 20 seconds)"):
        page = build(parser.parse_args().folder.resolve())
    print(page)


if __name__ == "__main__":
    raise SystemExit(console.run(main))
