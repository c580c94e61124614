"""The programs of Slurm that a tree has links to are those that the images bring."""

import re
from pathlib import Path

from jail_tools.layout import CLIENTS

CONTAINERFILE = Path(__file__).parents[2] / "node" / "Containerfile"


def test_every_client_program_in_the_bundle_has_a_link_in_each_tree() -> None:
    bundled = re.search(r"for name in ([\w\s\\]+);", CONTAINERFILE.read_text())

    assert bundled
    assert sorted(CLIENTS) == sorted(bundled[1].replace("\\", "").split())
