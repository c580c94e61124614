"""Kernel settings are put back."""

import json
from pathlib import Path

import pytest

from tools.console import UserError
from tools.kube.sysctls import BRIDGE_CALLS, FORWARDING, NEEDED, OF_THE_KUBELET, RAISED, ROOT, Sysctls

READ_ONLY = ROOT / "kernel/cap_last_cap"
"""A low number that root can't write either."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*NEEDED, *RAISED, *OF_THE_KUBELET):
        file = tmp_path / "sys" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("0\n")
    return tmp_path / "sys"


def test_what_was_there_before_the_first_start_is_restore(root: Path, tmp_path: Path) -> None:
    (root / BRIDGE_CALLS).write_text("1\n")
    sysctls = Sysctls(tmp_path / "memory.json", root)
    for _ in range(2):  # as two `up` in a row
        sysctls.remember()
        sysctls.set_needed()
        (root / "kernel/panic").write_text("10\n")
    assert (root / FORWARDING).read_text() == "1"
    raised = [f"{name.replace('/', '.')} = 0" for name in RAISED]
    assert sorted(sysctls.restore()) == ["kernel.panic = 0", "net.ipv4.ip_forward = 0", *raised]
    assert (root / FORWARDING).read_text() == "0"
    assert (root / BRIDGE_CALLS).read_text() == "1\n"


def test_what_is_not_in_the_kernel_is_passed_over(root: Path, tmp_path: Path) -> None:
    (root / "vm/panic_on_oom").unlink()
    sysctls = Sysctls(tmp_path / "memory.json", root)
    sysctls.remember()
    assert sysctls.before("vm/panic_on_oom") is None
    assert sysctls.restore() == []


def test_without_memory_nothing_is_restore(root: Path, tmp_path: Path) -> None:
    assert Sysctls(tmp_path / "memory.json", root).restore() == []


def test_one_that_cannot_be_set_is_named(root: Path, tmp_path: Path) -> None:
    (root / FORWARDING).unlink()
    (root / FORWARDING).mkdir()
    with pytest.raises(UserError, match=r"net/ipv4/ip_forward must be 1 and cannot be set"):
        Sysctls(tmp_path / "memory.json", root).set_needed()


def test_a_table_of_neighbors_is_never_made_smaller_and_one_that_cannot_be_set_is_passed_over(
    root: Path, tmp_path: Path
) -> None:
    larger, fixed = RAISED
    (root / larger).write_text("1000000\n")
    (root / fixed).unlink()
    (root / fixed).symlink_to(READ_ONLY)
    sysctls = Sysctls(tmp_path / "memory.json", root)

    sysctls.set_needed()

    assert (root / larger).read_text() == "1000000\n"
    assert (root / FORWARDING).read_text() == "1"


def test_what_an_older_version_did_not_record_is_recorded_before_it_is_set(root: Path, tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text(json.dumps(dict.fromkeys(NEEDED, "1")))
    sysctls = Sysctls(tmp_path / "memory.json", root)
    sysctls.remember()
    sysctls.set_needed()

    sysctls.restore()

    assert {(root / name).read_text() for name in RAISED} == {"0"}
    assert {(root / name).read_text() for name in NEEDED} == {"1"}


def test_settings_are_raised_to_what_all_pods_of_a_machine_need(root: Path, tmp_path: Path) -> None:
    Sysctls(tmp_path / "memory.json", root).set_needed()

    assert {name: (root / name).read_text() for name in RAISED} == {name: str(least) for name, least in RAISED.items()}
