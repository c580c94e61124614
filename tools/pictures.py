"""`make pictures`: draws the pictures of `docs/pictures` from their sources there.

A `.dot` file is a diagram, drawn by Graphviz. A `.txt` file is what a terminal showed, drawn by Rich: the first line is
the command, the rest is its output. A `.html` file is a page of `make dashboard`, which Chromium shows.
"""

import io
import re
import shutil
import subprocess
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tools import console, paths
from tools.console import UserError

_FOLDER = paths.ROOT / "docs" / "pictures"
_PACKAGES = {"dot": "graphviz", "chromium": "chromium"}
"""Debian's packages of the programs that draw."""

_PAGE_SIZE = "1400,960"
"""Width and height in pixels of the part of a page that is shown."""

_OWN_FONTS = re.sub(r" *@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Rich's frame with the reader's own fonts, as a page loads nothing from elsewhere."""


def terminal(name: str, text: str) -> str:
    """Return a picture (SVG) of a terminal with a command and its output. The same text gives the same picture."""
    command, *output = text.splitlines()
    width = max(map(len, text.splitlines()), default=0)
    screen = Console(record=True, width=width + 1, file=io.StringIO(), color_system=None)
    screen.print(Text(command, style="bold green"))
    for line in output:
        screen.print(Text(line, style="yellow" if re.search(r"\bLeaving:|^ +\S+ s +\w+-\d+  ", line) else ""))
    return screen.export_svg(title=name, theme=MONOKAI, code_format=_OWN_FONTS, unique_id=name)


def draw(source: Path) -> Path:
    """Draw a source's picture next to it and return its path."""
    picture = source.with_suffix(".png" if source.suffix == ".html" else ".svg")
    if source.suffix == ".html":
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={_PAGE_SIZE}")
        subprocess.run(["chromium", *options, f"--screenshot={picture}", source.as_uri()], check=True)
    elif source.suffix == ".txt":
        picture.write_text(terminal(source.stem, source.read_text()))
    else:
        subprocess.run(["dot", "-Tsvg", "-o", str(picture), str(source)], check=True)
    return picture


def main() -> None:
    """Draw all pictures."""
    if missing := [name for name in _PACKAGES if not shutil.which(name)]:
        packages = " ".join(_PACKAGES[name] for name in missing)
        raise UserError(f"Not on PATH, but needed for pictures: {', '.join(missing)}. Run: apt-get install {packages}")
    for source in sorted(path for path in _FOLDER.iterdir() if path.suffix in {".dot", ".txt", ".html"}):
        print(draw(source).relative_to(paths.ROOT))


if __name__ == "__main__":
    raise SystemExit(console.run(main))
