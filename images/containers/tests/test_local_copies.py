"""Copies of images on a node's disk: made once, whole or not at all, and of their user alone."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from container_images import import_command
from container_images.image_store import STORE, folder_name
from container_images.local_copies import LocalCopies, LocalLimits
from container_images.published_images import write_names
from container_images.store_cleaning import NO_LIMITS, StoreLimits
from tests.soak import times

FOLDER = Path(__file__).parents[1]
ENVIRONMENT = {"PATH": os.environ["PATH"]}
BLOCK = 4096
DAY = 86_400
FILES = 200


def an_image(folder: Path, letter: str = "a", *, blocks: int = 1) -> Path:
    """Make an image as a store has it: some small files and one of the given blocks."""
    image = folder / folder_name(letter * 64, os.uname().machine)
    (image / "rootfs/bin").mkdir(parents=True)
    for number in range(FILES):
        (image / "rootfs/bin" / str(number)).write_text(f"whole {number}")
    (image / "rootfs/bin/0").chmod(0o755)
    (image / "rootfs/same").hardlink_to(image / "rootfs/bin/0")
    (image / "rootfs/link").symlink_to("/etc/passwd")
    (image / "rootfs/large").write_bytes(bytes(blocks * BLOCK))
    for name, content in {"environment": "A=1\0", "entrypoint": "", "workdir": "/", "reference": letter}.items():
        (image / name).write_text(content)
    (image / "size").write_text(str((blocks + FILES + 4) * BLOCK))
    return image


class Node:
    """A node with a disk, and one user's images on the shared volume."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.shared = folder / "shared"
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.disk.chmod(0o1777)
        self.own = self.disk / str(os.geteuid())
        self.lock = os.open(folder, os.O_RDONLY)

    def start(
        self, image: Path, limits: StoreLimits = NO_LIMITS, *, free_percent: float = 0, **variables: str
    ) -> tuple[Path, int]:
        copies = LocalCopies(
            LocalLimits(limits, free_percent), {**ENVIRONMENT, **variables}, self.said.append, self.disk
        )
        return copies.use(image, self.lock)

    def run(self, image: Path, limits: StoreLimits = NO_LIMITS, *, days_ago: float = 0) -> Path:
        """Start a task from an image, and end it."""
        folder, lock = self.start(image, limits)
        if lock != self.lock:
            os.close(lock)
        os.utime(folder, (time.time() - days_ago * DAY,) * 2)
        return folder

    def is_copy(self, folder: Path) -> bool:
        return folder.is_relative_to(self.own / "images")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with an empty disk."""
    return Node(tmp_path)


def is_whole(folder: Path) -> bool:
    texts = [(folder / "rootfs/bin" / str(number)).read_text() for number in range(FILES)]
    return texts == [f"whole {number}" for number in range(FILES)] and (folder / "workdir").read_text() == "/"


def test_the_first_start_makes_a_copy_and_later_ones_take_it(node: Node) -> None:
    image = an_image(node.shared)

    copy = node.run(image)

    assert node.is_copy(copy)
    assert is_whole(copy)
    assert os.access(copy / "rootfs/bin/0", os.X_OK)
    assert (copy / "rootfs/same").samefile(copy / "rootfs/bin/0")
    assert (copy / "rootfs/link").readlink() == Path("/etc/passwd")
    assert node.said == ["copies the image to this node's disk: 0.00 GiB", "waits until the disk has its files"]
    node.said.clear()
    (image / "rootfs/bin/1").write_text("only a new copy would have this")
    assert node.run(image) == copy
    assert is_whole(copy)
    assert node.said == []


def test_a_node_without_a_disk_starts_from_the_shared_volume(node: Node) -> None:
    node.disk.rmdir()
    image = an_image(node.shared)

    assert node.start(image) == (image, node.lock)
    assert node.said == []


PROGRAM = """
import os, sys
from pathlib import Path
from container_images.local_copies import LocalCopies, LocalLimits
from container_images.store_cleaning import StoreLimits
limits = LocalLimits(StoreLimits(), 0)
folder, _ = LocalCopies(limits, dict(os.environ), print, Path(sys.argv[1])).use(Path(sys.argv[2]), 0)
print("started", folder, flush=True)
sys.stdin.read()
"""


def starting(node: Node, image: Path, **variables: str) -> subprocess.Popen[str]:
    """Return another process that starts the image, and uses it until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, node.disk, image],
        env={**ENVIRONMENT, "PYTHONPATH": str(FOLDER), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_of_many_starts_at_once_one_makes_the_copy(node: Node) -> None:
    image = an_image(node.shared)
    processes = [starting(node, image) for _ in range(times(8, 40))]

    said = "".join(process.communicate(timeout=120)[0] for process in processes)

    assert len(re.findall(r"(?m)^copies the image", said)) == 1
    assert set(re.findall(r"(?m)^started (.*)$", said)) == {str(node.own / "images" / image.name)}


@pytest.mark.parametrize("moment", range(times(4, 50)))
def test_a_killed_copier_leaves_the_lock_free_and_nothing_half(node: Node, moment: int) -> None:
    image = an_image(node.shared, blocks=2000)
    with starting(node, image) as process:
        time.sleep(moment * 0.4 / times(4, 50))  # the moment of the kill is what varies
        os.killpg(process.pid, signal.SIGKILL)

    copy = node.run(image)

    assert node.is_copy(copy), node.said
    assert is_whole(copy)
    assert (copy / "rootfs/large").stat().st_size == 2000 * BLOCK
    assert list((node.own / "parts").iterdir()) == []


def test_a_copy_has_its_name_only_after_the_disk_has_its_files(node: Node, tmp_path: Path) -> None:
    image = an_image(node.shared)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/sync"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/synced; ls {node.own}/images > {tmp_path}/named\n')
    program.chmod(0o755)

    assert node.is_copy(node.start(image, PATH=f"{tmp_path}/bin:{ENVIRONMENT['PATH']}")[0])

    assert (tmp_path / "synced").read_text().startswith(f"--file-system {node.own}/parts/")
    assert (tmp_path / "named").read_text() == ""


ROOM_FOR_TWO = StoreLimits(images_bytes=int(2.5 * (FILES + 5) * BLOCK), origin="containers.local.images_gib")


def test_the_copy_that_was_not_started_for_longest_makes_room(node: Node) -> None:
    first, second, third = (an_image(node.shared, letter) for letter in "abc")
    node.run(first, ROOM_FOR_TWO, days_ago=1)
    node.run(second, ROOM_FOR_TWO, days_ago=2)

    assert node.is_copy(node.run(third, ROOM_FOR_TWO))

    assert {folder.name for folder in (node.own / "images").iterdir()} == {first.name, third.name}
    assert second.is_dir(), "the shared volume keeps it"


def test_a_copy_in_use_stays_and_the_image_starts_from_the_shared_volume(node: Node) -> None:
    first, second, third = (an_image(node.shared, letter) for letter in "abc")
    with starting(node, first) as one, starting(node, second) as other:
        for process in (one, other):
            assert process.stdout
            assert any(line.startswith("started") for line in process.stdout)

        assert node.start(third, ROOM_FOR_TWO) == (third, node.lock)

        one.communicate(timeout=30)
        other.communicate(timeout=30)
    assert is_whole(node.own / "images" / first.name)
    assert "starts from the shared store, as this node can have no copy of the image." in node.said[-1]
    assert "(containers.local.images_gib)" in node.said[-1]


def test_a_copy_that_was_not_started_for_too_long_goes_with_the_next_start(node: Node) -> None:
    old, new = an_image(node.shared, "a"), an_image(node.shared, "b")
    limits = StoreLimits(unused_seconds=7 * DAY)
    node.run(old, limits, days_ago=8)

    node.run(new, limits)
    assert [folder.name for folder in (node.own / "images").iterdir()] == [new.name]


def test_a_full_disk_gets_no_copy(node: Node) -> None:
    image = an_image(node.shared)

    assert node.start(image, free_percent=100) == (image, node.lock)

    assert "(100 % of the disk stay free, containers.local.free_percent)" in node.said[-1]
    assert list((node.own / "images").iterdir()) == list((node.own / "parts").iterdir()) == []


def test_a_copy_that_fails_leaves_nothing_and_the_image_starts(node: Node, tmp_path: Path) -> None:
    image = an_image(node.shared)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cp").write_text('#!/bin/sh\n"mkdir" "$4"; echo "cp: No space left on device" >&2; exit 1\n')
    (tmp_path / "bin/cp").chmod(0o755)

    assert node.start(image, PATH=f"{tmp_path}/bin:{ENVIRONMENT['PATH']}") == (image, node.lock)

    assert "No space left on device" in node.said[-1]
    assert [*(node.own / "images").iterdir(), *(node.own / "parts").glob("*/*")] == []


def test_other_users_reach_no_copy(node: Node) -> None:
    node.run(an_image(node.shared))

    assert node.own.stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_disk_on_which_users_could_replace_folders_of_others_gets_no_copy(node: Node, mode: int) -> None:
    node.disk.chmod(mode)
    image = an_image(node.shared)

    assert node.start(image) == (image, node.lock)
    assert "the mode 1777" in node.said[-1]
    assert not node.own.exists()


def test_a_link_in_the_place_of_the_users_folder_is_not_followed(node: Node, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    node.own.symlink_to(tmp_path / "elsewhere")
    image = an_image(node.shared)

    assert node.start(image) == (image, node.lock)
    assert "Ask the cluster's admin to remove it." in node.said[-1]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_another_user_has_made_is_not_used(node: Node) -> None:
    assert os.geteuid() == 0, "only root gives files away"
    node.own.mkdir()
    os.chown(node.own, 4712, 4712)
    image = an_image(node.shared)

    assert node.start(image) == (image, node.lock)
    assert "belongs to the user 4712" in node.said[-1]


def test_who_may_not_start_an_image_may_not_start_its_copy_either(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    published = tmp_path / "published"
    digest = "sha256:" + "a" * 64
    an_image(published / "images")
    (published / "uses").mkdir()
    (published / "uses" / folder_name(digest, os.uname().machine)).touch()
    write_names(published, {"registry.invalid/image:1": digest})
    settings = tmp_path / "settings.json"
    settings.write_text(
        '{"images_bytes": null, "unused_seconds": null, "registries": [], "allowed_registries": [], "variables": {},'
        ' "local": {"images_bytes": null, "unused_seconds": null, "free_percent": 0}}'
    )
    home = {**ENVIRONMENT, "HOME": str(tmp_path / "home")}
    monkeypatch.setattr(import_command, "_leave_to_step", lambda lock, *_: os.close(lock))  # the step ends at once

    def start() -> tuple[int, str]:
        code = import_command.main(["7", "registry.invalid/image:1"], home, settings, published, node.disk)
        return code, capsys.readouterr().out

    code, said = start()
    assert (code, said.splitlines()[-1]) == (0, f"image={node.own}/images/{folder_name(digest, os.uname().machine)}")
    assert list((tmp_path / "home" / STORE / "images").iterdir()) == []
    write_names(published, {})
    monkeypatch.setattr(import_command, "_own", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no login")))
    code, said = start()
    assert code == 1
    assert "image=" not in said
