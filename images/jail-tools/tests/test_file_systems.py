"""The probe on real file systems: each gives the table of its own shortcomings."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jail_testing import file_systems
from jail_testing.file_systems import FileSystem, in_memory_with, mounted, passed_through

from jail_tools.probing.seen import FindingLevel
from jail_tools.probing.storage_probe import probe
from jail_tools.resolve_beneath import names

REFUSED, WARNING, NOTED = FindingLevel.REFUSED, FindingLevel.WARNING, FindingLevel.NOTED
SPEEDS = {"flush_latency", "file_creation"}
"""Figures of the machine that runs the tests, which may be a slow one."""

FUSE = {"flags": NOTED}
"""Mounts in user space are nosuid and nodev (fusermount3(1))."""
NO_XATTRS = {"user_attributes": WARNING, "access_lists": WARNING, "capabilities": NOTED}
SMALL = {"room": WARNING}

CASES: dict[str, tuple[FileSystem, dict[str, FindingLevel]]] = {
    "ext4": (file_systems.EXT4, SMALL),
    "xfs": (file_systems.XFS, SMALL),
    "btrfs": (file_systems.BTRFS, SMALL),
    "btrfs with few links": (file_systems.FEW_LINKS, {**SMALL, "hard_link_limit": WARNING}),
    "overlay": (file_systems.OVERLAY, {}),
    "tmpfs": (in_memory_with("size=4G"), {}),
    "noexec": (in_memory_with("size=4G,noexec"), {"execution": REFUSED}),
    "nosuid and nodev": (in_memory_with("size=4G,nosuid,nodev"), {"flags": NOTED}),
    "without attributes": (file_systems.NO_ATTRIBUTES, NO_XATTRS),
    "read-only": (in_memory_with("ro"), {"writable": REFUSED}),
    "full": (in_memory_with("size=2M"), {"room": REFUSED}),
    "no inodes left": (in_memory_with("size=4G,nr_inodes=100"), {"room": REFUSED}),
    "ext4 in user space": (file_systems.FUSE_EXT4, {**FUSE, **SMALL}),
    "passed through": (passed_through(), FUSE),
    "passed through without attributes": (passed_through("--xattr-none"), {**FUSE, **NO_XATTRS}),
    "squashed root": (passed_through("--chown-deny", "--create-for-user=nobody"), {**FUSE, "owners": REFUSED}),
    "owners forgotten": (passed_through("--chown-ignore", "--chgrp-ignore"), {**FUSE, "owners": REFUSED}),
    "modes forgotten": (passed_through("--chmod-ignore"), {**FUSE, "modes": REFUSED, "execution": REFUSED}),
    "no rename": (
        passed_through("--rename-deny"),
        {**FUSE, "unlink_open": REFUSED, "replace_open": REFUSED},  # an open file is renamed when it is unlinked
    ),
    "direct_io": (passed_through("-o", "direct_io"), {**FUSE, "shared_map": WARNING}),
    "exFAT": (
        file_systems.EXFAT,
        {
            **FUSE,
            **SMALL,
            **NO_XATTRS,
            **dict.fromkeys(("owners", "modes", "symbolic_links", "hard_links", "case", "characters"), REFUSED),
            **dict.fromkeys(("hard_link_limit", "symlink_links", "fifos_and_sockets"), WARNING),
        },
    ),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory: of the files of an image only blocks with content take space."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", CASES)
def test_a_file_system_has_exactly_its_own_findings_and_is_left_as_it_was(name: str, folder: Path) -> None:
    system, expected = CASES[name]
    if system is file_systems.FUSE_EXT4 and file_systems.numbers_names():
        expected = {**expected, "hard_links": REFUSED}
    if name == "direct_io" and not file_systems.takes_direct_io():
        pytest.skip(
            "bindfs of this machine stands on FUSE 3, which takes no direct_io. Run this test on Debian 12 or 13."
        )

    with mounted(system, folder) as claim:
        before = sorted(names(claim))
        report = probe(claim)
        after = sorted(names(claim))

    found = {finding.property: finding.level for finding in report.findings if finding.level is not FindingLevel.OK}
    assert {text: level for text, level in found.items() if text not in SPEEDS} == expected
    assert after == before


def test_words_of_the_volume_stand_in_the_findings(folder: Path) -> None:
    system, _ = CASES["squashed root"]

    with mounted(system, folder) as claim:
        lines = probe(claim).lines({})

    assert re.match(r"fuse(\.bindfs)?: ", lines[0])
    (owners,) = (line for line in lines if "owners" in line)
    assert "a file made by root belongs to 65534:" in owners
    assert "no_root_squash" in owners


def test_a_limit_of_hard_links_is_counted(folder: Path) -> None:
    system, _ = CASES["btrfs with few links"]

    with mounted(system, folder) as claim:
        (limit,) = (finding for finding in probe(claim).findings if finding.property == "hard_link_limit")

    assert limit.found.endswith(" names of a file at most")
    assert 20 < int(limit.found.split()[0]) < 200
