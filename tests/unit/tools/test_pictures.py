"""`make pictures`: terminals as pictures, from recorded text."""

import xml.etree.ElementTree as ET

from tools import paths, pictures


def words(picture: str) -> str:
    return "".join(ET.fromstring(picture).itertext()).replace("\N{NO-BREAK SPACE}", " ")  # noqa: S314 - drawn here


def test_a_terminal_shows_the_command_and_every_line_of_its_output() -> None:
    shown = words(pictures.terminal("preview", "$ make preview\n  slurm/cpu: 2 -> 1 node. Leaving: cpu-1\nlast"))
    assert all(line in shown for line in ("$ make preview", "  slurm/cpu: 2 -> 1 node. Leaving: cpu-1", "last"))


def test_a_picture_loads_nothing_from_elsewhere() -> None:
    assert 'url("http' not in pictures.terminal("preview", "$ true\n")


def test_the_picture_of_the_preview_is_drawn_from_its_text() -> None:
    folder = paths.ROOT / "docs" / "pictures"
    assert (folder / "preview.svg").read_text() == pictures.terminal("preview", (folder / "preview.txt").read_text())
