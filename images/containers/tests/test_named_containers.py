"""Named containers: made once of an image, and kept with all that tasks change."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from container_images.image_reference import ImageError
from container_images.image_store import STORE, ImageStore
from container_images.import_command import main
from container_images.named_containers import NamedContainers
from container_images.store_cleaning import StoreLimits, clean
from tests.waiting import wait_until

ENVIRONMENT = {"PATH": os.environ["PATH"]}

PROGRAM = """
import os, sys
from pathlib import Path
from container_images.image_store import ImageStore
from container_images.named_containers import NamedContainers
store = ImageStore(Path(sys.argv[1]), print)
NamedContainers(store, dict(os.environ), print).use("tools", "auto", "1.0", lambda: Path(sys.argv[2]))
"""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder of an image as the store has it."""
    folder = tmp_path / "image"
    (folder / "rootfs/bin").mkdir(parents=True)
    (folder / "rootfs/bin/program").write_text("x")
    (folder / "rootfs/bin/program").chmod(0o755)
    (folder / "rootfs/bin/same").hardlink_to(folder / "rootfs/bin/program")
    (folder / "rootfs/bin/link").symlink_to("/etc/passwd")
    for name, content in {
        "environment": "A=1\0",
        "entrypoint": "",
        "workdir": "/",
        "reference": "x",
        "size": "1",
    }.items():
        (folder / name).write_text(content)
    return folder


class Containers:
    """The named containers of a store, as steps use them."""

    def __init__(self, folder: Path, image: Path) -> None:
        self.said: list[str] = []
        self.store = ImageStore(folder / "store", self.said.append)
        self.image = image

    def start(
        self, name: str = "tools", flag: str = "auto", step: str = "1.0", *, image: bool = True
    ) -> tuple[Path, int]:
        containers = NamedContainers(self.store, ENVIRONMENT, self.said.append)
        return containers.use(name, flag, step, (lambda: self.image) if image else None)

    def run(self, flag: str = "auto", step: str = "1.0", *, image: bool = True) -> Path:
        """Start a container, and end."""
        folder, lock = self.start(flag=flag, step=step, image=image)
        os.close(lock)
        return folder


@pytest.fixture
def containers(tmp_path: Path, image: Path) -> Containers:
    return Containers(tmp_path, image)


def test_a_container_is_a_copy_of_the_image_with_its_settings(containers: Containers, image: Path) -> None:
    folder = containers.run()
    programs = folder / "rootfs/bin"

    assert (folder / "environment").read_text() == "A=1\0"
    assert (programs / "program").stat().st_mode & 0o777 == 0o755
    assert (programs / "program").stat().st_ino == (programs / "same").stat().st_ino
    assert (programs / "program").stat().st_ino != (image / "rootfs/bin/program").stat().st_ino
    assert (programs / "link").readlink() == Path("/etc/passwd")


def test_what_tasks_change_is_there_for_later_jobs_without_an_image(containers: Containers) -> None:
    (containers.run() / "rootfs/new").write_text("kept")

    assert (containers.run(step="2.0", image=False) / "rootfs/new").read_text() == "kept"


def test_an_image_does_not_count_for_a_container_that_is_there(containers: Containers) -> None:
    containers.run()
    containers.said.clear()
    containers.run(step="2.0")

    assert containers.said == ["starts the container tools as it is: --container-image has no effect"]


def test_a_container_that_is_not_there_needs_an_image(containers: Containers) -> None:
    containers.run()
    with pytest.raises(
        ImageError, match=r"no container other\. Give --container-image to make it\. There are: tools\."
    ):
        containers.start("other", image=False)


def test_create_refuses_a_container_of_another_step_and_serves_all_nodes_of_its_own(containers: Containers) -> None:
    first = containers.run("create")

    assert containers.run("create") == first
    with pytest.raises(ImageError, match="there is a container tools already"):
        containers.run("create", "1.1")


def test_exec_needs_a_task_that_runs_in_the_container(containers: Containers) -> None:
    with pytest.raises(ImageError, match="no task runs in a container tools"):
        containers.run("exec")
    folder, lock = containers.start()
    assert containers.run("exec", "2.0") == folder
    os.close(lock)
    with pytest.raises(ImageError, match="no task runs"):
        containers.run("exec", "2.0")


def test_two_nodes_make_one_container(containers: Containers) -> None:
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(containers.run())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 4
    assert len(set(made)) == 1
    assert sum("makes a container" in line for line in containers.said) == 1


def test_a_container_whose_maker_is_killed_is_made_again(containers: Containers, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "cp").write_text(
        f'#!/bin/sh\nfor last; do :; done; mkdir "$last"; touch {tmp_path}/copies; exec sleep 600\n'
    )
    (slow / "cp").chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "store"), str(containers.image)],
        env={"PATH": f"{slow}:{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.DEVNULL,
    ) as maker:
        wait_until((tmp_path / "copies").exists, what="the copy has begun")
        assert containers.store.names() == []
        maker.kill()

    assert (containers.run() / "rootfs/bin/program").read_text() == "x"
    assert list((tmp_path / "store/parts").iterdir()) == []


def limited(folder: Path, bytes_: int) -> Callable[[int], None]:
    return ImageStore(folder / "store", lambda _: None, limits=StoreLimits(images_bytes=bytes_)).make_room


def test_named_containers_count_in_the_limit_and_are_never_removed(containers: Containers, tmp_path: Path) -> None:
    folder = containers.run()
    (folder / "rootfs/large").write_bytes(bytes(1_000_000))

    limited(tmp_path, 2_000_000)(900_000)
    with pytest.raises(ImageError, match=r"Named containers stay: tools \(0\.00 GiB\)\. Remove one by hand"):
        limited(tmp_path, 1_500_000)(900_000)
    os.utime(folder, (1, 1))
    clean(tmp_path / "store", StoreLimits(images_bytes=1, unused_seconds=1), lambda _: None)
    assert folder.is_dir()


def test_a_container_of_a_registry_that_is_no_longer_allowed_is_refused(
    containers: Containers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    store = ImageStore(home / STORE, lambda _: None)
    (containers.image / "reference").write_text("docker://quay.io/a/b:1")
    _, lock = NamedContainers(store, ENVIRONMENT, lambda _: None).use("tools", "auto", "1", lambda: containers.image)
    os.close(lock)
    settings = tmp_path / "settings.json"
    limits = '"images_bytes": null, "unused_seconds": null'
    settings.write_text(f'{{{limits}, "registries": [], "allowed_registries": ["nvcr.io"], "variables": {{}}}}')

    assert main(["7", "", "tools", "auto"], {**ENVIRONMENT, "HOME": str(home)}) == 0
    assert main(["7", "", "tools", "auto"], {**ENVIRONMENT, "HOME": str(home)}, settings) == 1
    assert "images may come from nvcr.io alone" in capsys.readouterr().out
