"""Shared images: filled by the real skopeo and umoci from a registry, and started without asking it."""

import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers_testing.image_registry import (
    layer,
    log_in,
    make_layout,
    running,
    special,
    variables_of_programs,
)

from container_images import import_command, program_running, publish_command, published_images
from container_images.image_store import STORE
from container_images.program_running import ADMIN_HINTS, USER_HINTS
from container_images.published_images import PublishedImages, read_names, write_names
from tests.soak import times

FOLDER = Path(__file__).parents[1]

MEMBERS: list[tarfile.TarInfo | tuple[str, bytes]] = [
    special("closed", tarfile.DIRTYPE, mode=0o700),
    special("setuid", tarfile.REGTYPE, mode=0o6700),
    special("link", tarfile.SYMTYPE, "/etc/passwd"),
    ("it", b"x"),
]


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """An image of a registry that lets alice in."""
    with running(tmp_path, make_layout(tmp_path / "served", [layer(MEMBERS)])) as (host, _):
        yield f"{host}/team/image:1.0"


@pytest.fixture
def variables(tmp_path: Path, image: str) -> dict[str, str]:
    """Variables of a fill that may pull the image."""
    log_in(tmp_path / "admin", image.partition("/")[0], "secret")
    return {
        **variables_of_programs(),
        "SSL_CERT_FILE": str(tmp_path / "ca.crt"),
        "HOME": str(tmp_path / "admin"),
    }


def publish(tmp_path: Path, variables: dict[str, str], *images: str) -> int:
    return publish_command.main(images, variables, tmp_path / "none", tmp_path / "published")


def start(tmp_path: Path, variables: dict[str, str], image: str, *name: str, job: str = "7") -> int:
    """Start an image as a user without a password."""
    home = {**variables, "HOME": str(tmp_path / "home")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_command, "_leave_to_step", lambda lock, *_: os.close(lock))  # the step ends at once
        return import_command.main([job, image, *name], home, tmp_path / "none", tmp_path / "published")


def move_tag(tmp_path: Path, *, keep: bool = False) -> None:
    """Give the image's tag another image, and keep the former one in the registry or not."""
    (tmp_path / "served").rename(tmp_path / "former")
    make_layout(tmp_path / "served", [layer([("it", b"new")])])
    if keep:
        shutil.copytree(tmp_path / "former/blobs", tmp_path / "served/blobs", dirs_exist_ok=True)


def only_image(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "published/images").iterdir()
    return folder


def test_a_published_image_is_started_by_who_may_not_pull_it_and_is_not_brought(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path, variables, image) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    for walk in ("opens its files to their owner", "opens its files to all users", "waits until", "measures its files"):
        assert f"\n{walk}" in said, "a walk over a million of files takes longer than a silence may last"

    assert start(tmp_path, variables, image.replace("/", "#", 1)) == 0
    assert capsys.readouterr().out == f"image={only_image(tmp_path)}\n"
    assert (only_image(tmp_path) / "rootfs/it").read_text() == "x"
    assert list((tmp_path / "home" / STORE / "images").iterdir()) == []


def test_a_user_who_cannot_write_in_the_home_starts_published_images_alone(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    capsys.readouterr()

    def closed(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/home/soperator-health/.local")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_command, "ImageStore", closed)  # tests may run as root, whom no mode stops
        assert start(tmp_path, variables, image) == 0
        assert capsys.readouterr().out == f"image={only_image(tmp_path)}\n"
        assert start(tmp_path, variables, image.replace("image", "other")) == 1
        assert start(tmp_path, variables, image, "tools") == 1
    said = "/home/soperator-health/.local: Permission denied. Without a store there, only shared images start\n"
    assert capsys.readouterr().out == said * 2


def test_a_published_image_is_started_by_its_digest_too(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    (digest,) = read_names(tmp_path / "published").values()

    assert start(tmp_path, variables, f"{image.removesuffix(':1.0')}@{digest}") == 0
    assert start(tmp_path, variables, f"{image.replace('image', 'other').removesuffix(':1.0')}@{digest}") == 1


def test_an_image_with_a_tag_and_a_digest_is_started_by_its_tag_and_keeps_the_digest(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    (digest,) = read_names(tmp_path / "published").values()
    repository = image.removesuffix(":1.0")
    assert publish(tmp_path, variables, f"{image}@{digest}") == 0

    assert read_names(tmp_path / "published") == {image: digest, f"{repository}@{digest}": digest}
    for job, name in enumerate((image, f"{image}@{digest}", f"{repository}:other@{digest}")):
        assert start(tmp_path, variables, name, job=str(job)) == 0


@pytest.mark.parametrize("pinned_first", [True, False])
def test_a_tag_in_the_list_with_two_digests_is_refused(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str], *, pinned_first: bool
) -> None:
    publish(tmp_path, variables, image)
    (former,) = read_names(tmp_path / "published").values()
    move_tag(tmp_path, keep=True)
    images = [image, f"{image}@{former}"]

    assert publish(tmp_path, variables, *(reversed(images) if pinned_first else images)) == 1
    assert f"{image}: containers.images has it with two digests, sha256:" in capsys.readouterr().out
    names = read_names(tmp_path / "published")
    assert (names[image] == former) is pinned_first
    assert names[f"{image.removesuffix(':1.0')}@{former}"] == former


def test_an_image_that_is_not_published_is_the_users_to_pull(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path, variables) == 0
    capsys.readouterr()

    assert start(tmp_path, variables, image) == 1
    assert "are credentials for the registry" in capsys.readouterr().out


def test_a_name_that_is_no_image_stops_no_other_one(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path, variables, "myImage:1x", image, "ubuntu:a:b") == 1
    assert re.findall('^"(.*)" is not an image', capsys.readouterr().out, re.MULTILINE) == ["myImage:1x", "ubuntu:a:b"]
    assert start(tmp_path, variables, image) == 0


def test_the_admin_hears_of_fields_of_the_spec_and_not_of_files_of_a_user(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "admin/.docker/config.json").unlink()

    assert publish(tmp_path, variables, image) == 1
    said = capsys.readouterr().out
    assert "credentials for the registry in the Secret that containers.images_secret names?" in said
    assert "~" not in said
    assert list(ADMIN_HINTS) == list(USER_HINTS)


def test_a_named_container_is_a_copy_of_the_published_image(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)

    assert start(tmp_path, variables, image, "tools", "auto") == 0
    assert (tmp_path / "home" / STORE / "named/tools/rootfs/it").read_text() == "x"


def test_all_files_of_a_published_image_are_open_to_the_layer_of_any_user_and_raise_no_rights(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path, variables, image) == 0, capsys.readouterr().out

    folder = only_image(tmp_path)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder / "rootfs").iterdir() if path.exists()}
    assert modes["closed"] == modes["setuid"] == 0o777
    assert modes["it"] == 0o666
    assert (folder / "rootfs/link").is_symlink()
    assert stat.S_IMODE((folder / "rootfs").stat().st_mode) == 0o777
    assert all(path.stat().st_mode & 0o004 for path in folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
    assert [stat.S_IMODE((tmp_path / "published" / name).stat().st_mode) for name in ("parts", "locks", "trash")] == [
        0o700
    ] * 3


def test_an_image_that_left_the_list_goes_when_no_task_runs_in_it(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    uses = tmp_path / "published/uses" / only_image(tmp_path).name
    with uses.open() as task:
        fcntl.flock(task, fcntl.LOCK_SH)
        assert publish(tmp_path, variables) == 0
        assert "stays for now: a task runs in it" in capsys.readouterr().out
        assert only_image(tmp_path).is_dir()
        assert start(tmp_path, variables, image) == 1, "it has no name any more"

    assert publish(tmp_path, variables) == 0
    assert "removes docker://" in capsys.readouterr().out
    assert list((tmp_path / "published/images").iterdir()) == list((tmp_path / "published/trash").iterdir()) == []


def test_a_job_keeps_the_image_that_it_began_with_if_the_tag_moves_between_its_steps(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    former, (digest,) = only_image(tmp_path), read_names(tmp_path / "published").values()
    start(tmp_path, variables, image)
    move_tag(tmp_path)
    assert publish(tmp_path, variables, image) == publish(tmp_path, variables, image) == 0, capsys.readouterr().out
    capsys.readouterr()

    assert start(tmp_path, variables, image) == 0
    assert start(tmp_path, variables, f"{image.removesuffix(':1.0')}@{digest}", job="8") == 0
    assert capsys.readouterr().out == f"image={former}\n" * 2
    assert start(tmp_path, variables, image, job="9") == 0
    assert str(former) not in capsys.readouterr().out


def test_a_job_whose_image_has_gone_starts_the_one_that_has_its_name_and_says_so(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    start(tmp_path, variables, image)
    shutil.rmtree(only_image(tmp_path))
    move_tag(tmp_path)
    publish(tmp_path, variables, image)
    capsys.readouterr()

    assert start(tmp_path, variables, image) == 0
    said = capsys.readouterr().out
    assert "with which this job began, is not published any more: starts sha256:" in said
    assert said.splitlines()[-1] == f"image={only_image(tmp_path)}"


def publish_both(tmp_path: Path, variables: dict[str, str], image: str) -> None:
    """Publish an image, and the one to which its tag moves: the former stays for now."""
    publish(tmp_path, variables, image)
    move_tag(tmp_path)
    publish(tmp_path, variables, image)
    assert len(list((tmp_path / "published/images").iterdir())) == 2


def test_a_former_image_goes_with_the_first_fill_after_its_time(
    tmp_path: Path,
    variables: dict[str, str],
    image: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish_both(tmp_path, variables, image)
    monkeypatch.setattr(published_images, "FORMER_SECONDS", 0)

    publish(tmp_path, variables, image)
    assert (only_image(tmp_path) / "rootfs/it").read_text() == "new"


def test_a_name_that_left_the_list_takes_its_former_images_along(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_both(tmp_path, variables, image)

    publish(tmp_path, variables)
    assert list((tmp_path / "published/images").iterdir()) == []


def test_a_registry_that_does_not_answer_takes_no_image_away_and_all_problems_are_reported(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    capsys.readouterr()
    (tmp_path / "admin/.docker/config.json").unlink()

    assert publish(tmp_path, variables, "127.0.0.1:1/a:1", image, "127.0.0.1:1/b:1") == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in said[-3:]] == ["127.0.0.1:1/a:1", image, "127.0.0.1:1/b:1"]
    assert start(tmp_path, variables, image) == 0


def test_a_user_who_holds_the_lock_of_a_removal_keeps_no_one_else_from_an_image(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    capsys.readouterr()
    with (tmp_path / "published/uses" / only_image(tmp_path).name).open() as remover:
        fcntl.flock(remover, fcntl.LOCK_EX)
        assert start(tmp_path, variables, image) == 0
    assert "nothing keeps this image if it leaves the list\nimage=" in capsys.readouterr().out


def test_an_image_that_is_being_removed_is_not_started(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, variables, image)
    (digest,) = read_names(tmp_path / "published").values()
    published = PublishedImages(tmp_path / "published", say=print)
    with (tmp_path / "published/uses" / only_image(tmp_path).name).open() as remover:
        fcntl.flock(remover, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_names(tmp_path / "published", {})
        assert published.use(digest) is None


def volume(mib: int, free_kib: int) -> os.statvfs_result:
    return os.statvfs_result((1024, 1024, mib * 1024, free_kib, free_kib, 0, 0, 0, 0, 255))


def test_an_image_that_leaves_too_little_room_for_the_homes_is_not_pulled(
    tmp_path: Path,
    variables: dict[str, str],
    image: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: volume(50 * 1024, 1024 * 1024 + 1))

    assert publish(tmp_path, variables, image) == 1
    said = capsys.readouterr().out
    assert "has 1.00 GiB free, and needs 1.00 GiB, of which 1.00 GiB stay free for the homes" in said
    assert "pulls" not in said
    assert list((tmp_path / "published/parts").iterdir()) == list((tmp_path / "published/images").iterdir()) == []


@pytest.mark.parametrize("umoci", ["touch $FULL; exec sleep 60", "echo write: no space left on device >&2; exit 1"])
def test_a_volume_that_gets_full_meanwhile_is_left_as_it_was(
    tmp_path: Path,
    variables: dict[str, str],
    image: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    umoci: str,
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/umoci").write_text(f"#!/bin/sh\n{umoci}\n")
    (tmp_path / "bin/umoci").chmod(0o755)
    full = tmp_path / "full"
    monkeypatch.setattr(os, "statvfs", lambda _: volume(1024, 0 if full.exists() else 512 * 1024))
    monkeypatch.setattr(program_running, "_PROGRESS_SECONDS", 0.2)
    began = time.monotonic()

    assert (
        publish(tmp_path, {**variables, "PATH": f"{tmp_path}/bin:{variables['PATH']}", "FULL": str(full)}, image) == 1
    )
    assert time.monotonic() - began < 50, "the program was awaited"
    said = capsys.readouterr().out
    assert re.search(r"no space left on device\. The jail's volume is full: make it larger|0.00 GiB free", said)
    assert list((tmp_path / "published/parts").iterdir()) == list((tmp_path / "published/images").iterdir()) == []


@pytest.mark.parametrize("moment", range(times(4, 50)))
def test_a_fill_that_was_killed_is_repaired_by_the_next_one(
    tmp_path: Path, variables: dict[str, str], image: str, capsys: pytest.CaptureFixture[str], moment: int
) -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); from container_images.publish_command import main\n"
    script += "from pathlib import Path; main(sys.argv[3:], settings_file=Path('none'), folder=Path(sys.argv[2]))"
    command = [sys.executable, "-c", script, str(FOLDER), str(tmp_path / "published"), image]
    with subprocess.Popen(
        command, env={**variables, "PYTHONPATH": str(FOLDER)}, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        time.sleep(moment * 0.8 / times(4, 50))  # the moment of the kill is what varies
        os.killpg(process.pid, signal.SIGKILL)

    assert publish(tmp_path, variables, image) == 0, capsys.readouterr().out
    assert start(tmp_path, variables, image) == 0
    assert (only_image(tmp_path) / "rootfs/it").read_text() == "x"
    assert list((tmp_path / "published/parts").iterdir()) == []


def test_slurmstepd_gets_the_lock_and_learns_how_to_take_it_for_a_later_step(
    tmp_path: Path, variables: dict[str, str], image: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path, variables, image) == 0
    capfd.readouterr()
    arguments = (["7", image.replace("/", "#", 1)], {**variables, "HOME": str(tmp_path / "home")}, tmp_path / "none")
    stdin = os.dup(0)
    ours, slurmstepd = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, slurmstepd:
        os.dup2(ours.fileno(), 0)
        try:
            assert import_command.main(*arguments, tmp_path / "published") == 0
        finally:
            os.dup2(stdin, 0)
            os.close(stdin)
        _, (lock,), _, _ = socket.recv_fds(slurmstepd, 16, 1)
    mark = tmp_path / "published/uses" / only_image(tmp_path).name
    assert capfd.readouterr().out.splitlines() == [f"lock={mark}", f"image={only_image(tmp_path)}"]
    assert os.path.samestat(os.fstat(lock), mark.stat())
    os.close(lock)
