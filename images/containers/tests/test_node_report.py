"""A node's report: starts that the plugin counted, and copies on the disk, of users who may be gone."""

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from container_images import node_report
from container_images.bounded_removal import remove_entries
from container_images.node_report import NodeReport, has_processes, is_known

OWN = os.geteuid()
HOUR = 3600.0


class Node:
    """A node whose only user is the one of this process."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.counts, self.disk, self.reports = (folder / name for name in ("starts", "disk", "reports"))
        self.copies = self.disk / str(OWN) / "images"
        self.is_known = True
        self.has_processes: Callable[[int], bool] = lambda _: False
        self.report = NodeReport(
            "gpu-0",
            counts=self.counts,
            disk=self.disk,
            reports=self.reports,
            say=self.said.append,
            is_known=lambda _: self.is_known,
            has_processes=self._has_processes,
            unused_seconds=lambda: HOUR,
        )

    def _has_processes(self, user: int) -> bool:
        return self.has_processes(user)

    def count(self, *lines: str) -> None:
        with self.counts.open("a") as counts:
            counts.writelines(f"{line}\n" for line in lines)

    def copy(self, name: str, size: object) -> None:
        (self.copies / name).mkdir(parents=True)
        (self.copies / name / "size").write_text(str(size))

    def reported(self, now: float = 0, *, rounds: int = 2) -> dict[str, Any]:
        for _ in range(rounds):
            self.report.round(now)
        found: dict[str, Any] = json.loads((self.reports / "gpu-0.json").read_text())
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_starts_are_added_up_by_their_result(node: Node) -> None:
    node.count("present 0 90", "brought 4096 1500", "failed 0 10", "brought 1000 500")
    node.reported()
    node.count("present 0 80")

    report = node.reported()
    assert report["starts"] == {"present": 2, "brought": 2, "failed": 1}
    assert (report["brought_bytes"], report["brought_seconds"]) == (5096, 2.0)


def test_a_start_that_opened_the_file_before_it_was_taken_counts(node: Node) -> None:
    node.count("present 0 90")
    with node.counts.open("a") as slow:
        node.report.round(0)
        slow.write("failed 0 10\n")

    assert node.reported()["starts"] == {"present": 1, "brought": 0, "failed": 1}


@pytest.mark.parametrize("line", ["", "present", "stolen 1 1", "brought -5 1", "brought 1e9 1", "brought 5", "\0"])
def test_a_line_of_another_form_counts_as_nothing(node: Node, line: str) -> None:
    node.count(line, "present 0 90")

    report = node.reported()
    assert (sum(report["starts"].values()), report["brought_bytes"]) == (1, 0)


def test_other_pods_can_read_a_report_and_write_none(node: Node) -> None:
    node.reported()

    assert [stat.S_IMODE(path.stat().st_mode) for path in (node.reports, node.reports / "gpu-0.json")] == [0o755, 0o644]
    assert [path.name for path in node.reports.iterdir()] == ["gpu-0.json"]


def test_a_report_without_a_change_is_written_every_ten_minutes(node: Node) -> None:
    node.reported()
    (node.reports / "gpu-0.json").write_text("of before")

    node.report.round(599)
    assert (node.reports / "gpu-0.json").read_text() == "of before"
    assert node.reported(600)["starts"] == {"present": 0, "brought": 0, "failed": 0}


def test_a_volume_that_refuses_is_told_once_and_loses_no_count(node: Node) -> None:
    node.reports.write_text("in the place of the folder")
    node.count("present 0 90")
    for _ in range(3):
        node.report.round(0)
    node.reports.unlink()

    assert node.reported()["starts"]["present"] == 1
    assert node.said == [f"{node.reports}: File exists. Metrics of this node's containers are old."]


def test_a_node_without_a_disk_reports_no_copies(node: Node) -> None:
    assert node.reported()["copies"] is None


def test_copies_have_a_number_and_bytes(node: Node) -> None:
    node.copy("a", 100)
    node.copy("b", 20)

    assert node.reported()["copies"] == {"images": 2, "bytes": 120}


def test_a_copy_is_seen_when_its_start_is(node: Node) -> None:
    node.reported()
    node.copy("a", 100)
    node.count("present 0 90")

    assert node.reported()["copies"] == {"images": 1, "bytes": 100}


def test_a_user_who_lies_about_a_copy_adds_no_more_than_the_disk_holds(node: Node) -> None:
    node.copy("a", "9" * 30)

    disk = os.statvfs(node.disk)
    assert node.reported()["copies"]["bytes"] <= disk.f_blocks * disk.f_frsize


def test_a_link_in_place_of_a_users_folder_is_neither_followed_nor_removed(node: Node, tmp_path: Path) -> None:
    node.copy("a", 100)
    (node.disk / str(OWN)).rename(tmp_path / "elsewhere")
    (node.disk / str(OWN)).symlink_to(tmp_path / "elsewhere")
    node.is_known = False

    node.reported()
    assert node.reported(2 * HOUR)["copies"] == {"images": 0, "bytes": 0}
    assert (tmp_path / "elsewhere/images/a/size").read_text() == "100"


def test_copies_of_a_user_who_is_gone_for_an_hour_are_removed(node: Node) -> None:
    node.copy("a", 100)
    node.is_known = False

    assert node.reported()["copies"] == {"images": 1, "bytes": 100}
    assert node.reported(HOUR)["copies"] == {"images": 0, "bytes": 0}
    assert [*node.disk.iterdir()] == []
    assert node.said == [f"removed the copies of container images of the user {OWN}, who is gone"]


@pytest.mark.parametrize(
    ("user", "jail", "known"),
    [
        (0, "", True),
        (54321, "root:x:0:0::/root:/bin/sh\nCarol:x:54321:54321::/home/Carol:/bin/sh\n", True),
        (54321, "root:x:0:0::/root:/bin/sh\nother:x:5432:54321::/home/other:/bin/sh\n", False),
        (54321, None, True),
    ],
)
def test_users_of_the_node_and_of_the_jail_are_known_and_all_if_the_jail_cannot_be_read(
    tmp_path: Path, user: int, jail: str | None, known: bool
) -> None:
    if jail is not None:
        (tmp_path / "passwd").write_text(jail)

    assert is_known(user, tmp_path / "passwd") == known


def test_copies_of_a_user_who_starts_nothing_more_are_removed_after_their_time(node: Node) -> None:
    node.copy("a", 100)
    node.copy("b", 20)
    for name in ("uses", "trash"):
        (node.copies.parent / name).mkdir()
    for name in ("a", "b"):
        (node.copies.parent / "uses" / name).touch()
    os.utime(node.copies / "a", (0, 0))

    assert node.reported()["copies"] == {"images": 1, "bytes": 20}
    assert node.said == [f"removed 1 copies of container images of the user {OWN}: not started for too long"]


def test_a_user_who_comes_back_keeps_the_copies(node: Node) -> None:
    node.copy("a", 100)
    node.is_known = False
    node.reported()
    node.is_known = True
    node.reported(0.9 * HOUR)
    node.is_known = False

    assert node.reported(1.5 * HOUR)["copies"] == {"images": 1, "bytes": 100}


def test_copies_that_cannot_be_removed_stop_no_report_and_are_tried_an_hour_later(node: Node) -> None:
    def it_goes_meanwhile(_user: int) -> bool:
        shutil.rmtree(node.copies.parent)
        return False

    node.copy("a", 100)
    node.is_known = False
    node.reported()
    node.has_processes = it_goes_meanwhile
    node.count("present 0 90")

    assert node.reported(HOUR)["starts"]["present"] == 1
    folder = node.disk / str(OWN)
    (told,) = node.said
    assert told.startswith(f"{folder}, of a user who is gone, stays for another hour: [Errno 2] No such file")


def test_folders_in_folders_without_end_are_removed_with_their_user(node: Node) -> None:
    node.copy("a", 100)
    node.is_known = False
    node.reported()
    place = os.open(node.copies, os.O_DIRECTORY)
    for _ in range(3 * sys.getrecursionlimit()):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_DIRECTORY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    node.count("present 0 90")

    assert node.reported(HOUR)["starts"]["present"] == 1
    assert [*node.disk.iterdir()] == []
    assert node.said == [f"removed the copies of container images of the user {OWN}, who is gone"]


def test_of_a_user_who_is_gone_a_look_removes_only_so_much(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.copy("a", 100)
    node.copy("b", 100)
    node.is_known = False
    node.reported()
    monkeypatch.setattr(node_report, "remove_entries", lambda folder: remove_entries(folder, 4))

    node.reported(HOUR)
    assert [*node.disk.iterdir()] != []
    for look in range(1, 9):
        node.reported(HOUR + look * 600)
    assert [*node.disk.iterdir()] == []
    assert node.said == [f"removed the copies of container images of the user {OWN}, who is gone"]


def test_copies_of_a_user_who_is_gone_stay_while_a_process_runs(node: Node) -> None:
    node.copy("a", 100)
    node.is_known, node.has_processes = False, has_processes  # the kernel is asked: this process is one
    node.reported()

    assert node.reported(2 * HOUR)["copies"] == {"images": 1, "bytes": 100}


def test_files_in_the_disk_that_are_no_users_folders_stay(node: Node) -> None:
    node.disk.mkdir()
    names = ["lost+found", "+1", f"0{OWN}", str(OWN + 1), "²"]
    for name in names:
        (node.disk / name).mkdir()
    node.is_known = False
    node.reported()
    node.reported(2 * HOUR)

    assert {path.name for path in node.disk.iterdir()} == set(names)
