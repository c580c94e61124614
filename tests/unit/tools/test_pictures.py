"""`make pictures`: terminals as pictures, from recorded text."""

import xml.etree.ElementTree as ET

import pytest

from tools import paths, pictures
from tools.console import UserError


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


def test_programs_that_are_missing_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=r"dot, chromium\. Run: apt-get install graphviz chromium"):
        pictures.main()


def test_the_picture_of_the_dashboard_has_its_page() -> None:
    folder = paths.ROOT / "docs" / "pictures"
    assert (folder / "dashboard.png").read_bytes().startswith(b"\x89PNG")
    assert "Slurm cluster" in (folder / "dashboard.html").read_text()
