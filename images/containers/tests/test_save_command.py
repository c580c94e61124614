"""Containers that are saved as files of squashfs by the real mksquashfs as an ordinary user."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_images.image_settings import GivenSettings, settings_of_folder, settings_of_tree, write_settings
from tests import squashfs_tools
from tests.waiting import wait_until

COMMAND = "import sys; from container_images.save_command import main; sys.exit(main(sys.argv[1:]))"
USER = 4719

SETTINGS = GivenSettings(("PATH=/opt/bin", 'TEXT="a" b', "LINES=a\nb"), ("/entry", "it's"), "/work")


class Saver:
    """The command, between a task and a container, in a folder that becomes the user's."""

    variables: dict[str, str]
    """Variables with which the command finds its programs."""

    def __init__(self, folder: Path, target: str, path: str = "") -> None:
        self.root = folder / "image/rootfs"
        subprocess.run(["chown", "-hR", f"{USER}:{USER}", folder], check=True)
        self.task, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.process = subprocess.Popen(
                ["/usr/bin/python3", "-c", COMMAND, str(folder / "image"), target],
                env={
                    **self.variables,
                    "PATH": f"{path}{self.variables['PATH']}",
                    "PYTHONPATH": str(Path(__file__).parents[1]),
                },
                cwd=folder,
                user=USER,
                group=USER,
                extra_groups=[],
                stdin=other.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.answer = self.task.recv(1000).decode()

    def give(self, task: "subprocess.Popen[bytes]", *, starts: bool = True) -> None:
        """Give the container and its task, which then starts or not."""
        tree, process = os.open(self.root, os.O_PATH), os.pidfd_open(task.pid)
        socket.send_fds(self.task, [b"x"], [tree, process])
        os.close(tree)
        os.close(process)
        if starts:
            self.task.send(b"x")

    def end(self) -> tuple[int, str]:
        """Return the exit code and all that was printed."""
        self.task.close()
        said, _ = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture(scope="session", autouse=True)
def programs() -> Iterator[None]:
    """Let the command find its programs."""
    with squashfs_tools.variables_for_all() as Saver.variables:
        yield


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with an image's folder in it, whose settings are those of the tests."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "image/rootfs"
        (root / "etc").mkdir(parents=True)
        (root / "program").write_text("x")
        write_settings(folder / "image", SETTINGS)
        yield folder


@pytest.fixture
def sticky() -> Iterator[Path]:
    """A folder of root's like /tmp."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.fixture
def task() -> Iterator["subprocess.Popen[bytes]"]:
    """A task that runs until its standard input is closed."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        yield process


def end(task: "subprocess.Popen[bytes]") -> None:
    assert task.stdin
    task.stdin.close()
    task.wait()


def unpacked(image: Path) -> Path:
    tree = image.with_suffix(".tree")
    variables = squashfs_tools.variables(squashfs_tools.unpacked())
    subprocess.run(["unsquashfs", "-quiet", "-dest", tree, image], env=variables, check=True, capture_output=True)
    return tree


def test_a_container_is_saved_when_its_task_has_ended(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    saver = Saver(folder, "it.sqsh")
    assert saver.answer == "ready"
    saver.give(task)
    (saver.root / "late").write_text("before the end")
    end(task)
    code, said = saver.end()

    assert code == 0, said
    assert "has saved" in said
    tree = unpacked(folder / "it.sqsh")
    assert (tree / "late").read_text() == "before the end"
    assert (tree / "program").read_text() == "x"
    assert sorted(path.name for path in folder.iterdir()) == ["image", "it.sqsh", "it.tree"]


def test_nothing_is_saved_as_long_as_the_task_runs(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    saver = Saver(folder, "it.sqsh")
    saver.give(task)
    with pytest.raises(subprocess.TimeoutExpired):
        saver.process.wait(0.3)
    end(task)

    assert saver.end()[0] == 0


def test_a_saved_container_has_the_settings_of_its_image(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    saver = Saver(folder, "it.sqsh")
    saver.give(task)
    end(task)
    assert saver.end()[0] == 0

    settings = settings_of_tree(unpacked(folder / "it.sqsh"))
    assert settings == GivenSettings(SETTINGS.variables[:2], SETTINGS.entry_point, SETTINGS.directory)


@pytest.mark.parametrize("etc", ["missing", "files", "folder", "closed"])
def test_the_settings_leave_the_container_as_it_is(folder: Path, task: "subprocess.Popen[bytes]", etc: str) -> None:
    root = folder / "image/rootfs"
    if etc == "missing":
        (root / "etc").rmdir()
    elif etc == "folder":
        (root / "etc/rc").mkdir()
    else:
        (root / "etc/environment").write_text("OF=the task\n")
        (root / "etc/rc").write_text("of the task")
    if etc == "closed":
        (root / "etc").chmod(0o555)
    before = {path: path.is_file() and path.read_text() for path in root.rglob("*")}
    saver = Saver(folder, "it's \"$(1)\n#.sqsh")
    saver.give(task)
    end(task)
    code, said = saver.end()

    assert code == 0, said
    (image,) = folder.glob("it's*")
    settings = settings_of_tree(unpacked(image))
    assert settings == GivenSettings(SETTINGS.variables[:2], SETTINGS.entry_point, SETTINGS.directory)
    assert {path: path.is_file() and path.read_text() for path in root.rglob("*")} == before


@pytest.mark.parametrize("etc", ["file", "link"])
def test_a_container_without_a_folder_for_settings_is_saved_without_them(
    folder: Path, task: "subprocess.Popen[bytes]", etc: str
) -> None:
    place = folder / "image/rootfs/etc"
    place.rmdir()
    if etc == "file":
        place.write_text("x")
    else:
        place.symlink_to("program")
    saver = Saver(folder, "it.sqsh")
    saver.give(task)
    end(task)
    code, said = saver.end()

    assert code == 0, said
    assert "without variables, working directory and entry point: /etc in it is not a folder" in said
    assert (unpacked(folder / "it.sqsh") / "program").read_text() == "x"


def test_a_file_that_is_there_is_replaced_at_once(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    (folder / "it.sqsh").write_text("former")
    with (folder / "it.sqsh").open() as reader:
        saver = Saver(folder, "it.sqsh")
        saver.give(task)
        end(task)

        assert saver.end()[0] == 0
        assert reader.read() == "former"
    assert (folder / "it.sqsh").read_bytes().startswith(b"hsqs")


def test_a_task_that_does_not_start_is_not_saved(folder: Path) -> None:
    assert Saver(folder, "it.sqsh").end() == (0, "")
    assert not (folder / "it.sqsh").exists()


def test_a_task_that_fails_before_its_program_starts_leaves_the_former_file(
    folder: Path, task: "subprocess.Popen[bytes]"
) -> None:
    (folder / "it.sqsh").write_text("former")
    saver = Saver(folder, "it.sqsh")
    saver.give(task, starts=False)
    saver.task.close()
    end(task)

    assert saver.end() == (0, "")
    assert (folder / "it.sqsh").read_text() == "former"
    assert sorted(path.name for path in folder.iterdir()) == ["image", "it.sqsh"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("missing/it.sqsh", "missing is not a folder that you can write to: No such file or directory"),
        ("image/environment/it.sqsh", "is not a folder that you can write to: Not a directory"),
        ("x" * 250, "File name too long"),
        ("image", "is a folder"),
    ],
)
def test_a_place_where_no_file_can_be_is_reported_before_the_task_starts(folder: Path, target: str, words: str) -> None:
    saver = Saver(folder, target)

    assert words in saver.answer
    assert saver.end()[0] == 1


@pytest.mark.parametrize(("owner", "refused"), [(USER, False), (USER + 1, True)])
def test_a_file_of_another_user_that_cannot_be_replaced_is_reported_before_the_task_starts(
    sticky: Path, folder: Path, owner: int, refused: bool
) -> None:
    (sticky / "it.sqsh").write_text("former")
    os.chown(sticky / "it.sqsh", owner, owner)
    saver = Saver(folder, str(sticky / "it.sqsh"))

    assert ("it.sqsh is another user's" in saver.answer) == refused
    assert saver.end()[0] == int(refused)


def test_a_container_is_kept_if_another_user_has_taken_its_place_meanwhile(
    sticky: Path, folder: Path, task: "subprocess.Popen[bytes]"
) -> None:
    saver = Saver(folder, str(sticky / "it.sqsh"))
    saver.give(task)
    (sticky / "it.sqsh").write_text("of another")
    os.chown(sticky / "it.sqsh", USER + 1, USER + 1)
    end(task)
    code, said = saver.end()

    assert code == 1
    assert (sticky / "it.sqsh").read_text() == "of another"
    (kept,) = sticky.glob("it.sqsh.*/it.sqsh")
    assert f"What is there cannot be replaced: Operation not permitted. The container is in {kept}" in said
    assert (unpacked(kept) / "program").read_text() == "x"
    assert sorted(path.name for path in sticky.iterdir()) == ["it.sqsh", kept.parent.name]


def test_what_a_task_has_closed_to_its_own_user_is_saved_too(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    root = folder / "image/rootfs"
    (root / "closed/deep").mkdir(parents=True)
    (root / "closed/deep/file").write_text("kept")
    (root / "closed/deep/file").chmod(0o000)
    (root / "closed/deep").chmod(0o000)
    (root / "closed").chmod(0o500)
    saver = Saver(folder, "it.sqsh")
    saver.give(task)
    end(task)
    code, said = saver.end()

    assert code == 0, said
    assert (unpacked(folder / "it.sqsh") / "closed/deep/file").read_text() == "kept"
    modes = [(root / path).stat().st_mode & 0o777 for path in ("closed", "closed/deep", "closed/deep/file")]
    assert modes == [0o500, 0o500, 0o400], "nothing is opened further than the owner needs to read"


def test_links_of_an_image_lead_to_no_file_outside(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    (folder / "secret").write_text("of the user")
    (folder / "image/rootfs/etc/environment").symlink_to(folder / "secret")
    saver = Saver(folder, "it.sqsh")
    saver.give(task)
    end(task)

    assert saver.end()[0] == 0
    assert (folder / "secret").read_text() == "of the user"


def test_a_failure_leaves_the_former_file_and_is_reported(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    (folder / "it.sqsh").write_text("former")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "mksquashfs").write_text("#!/bin/sh\necho 'write failed because No space left on device' >&2\nexit 1\n")
    (programs / "mksquashfs").chmod(0o755)
    saver = Saver(folder, "it.sqsh", path=f"{programs}:")
    saver.give(task)
    end(task)
    code, said = saver.end()

    assert code == 1
    assert "it.sqsh was not saved. mksquashfs: write failed because No space left on device" in said
    assert (folder / "it.sqsh").read_text() == "former"


def test_a_killed_command_leaves_the_former_file(folder: Path, task: "subprocess.Popen[bytes]") -> None:
    (folder / "it.sqsh").write_text("former")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "mksquashfs").write_text(f"#!/bin/sh\ntouch {folder}/begun\nexec sleep 600\n")
    (programs / "mksquashfs").chmod(0o755)
    saver = Saver(folder, "it.sqsh", path=f"{programs}:")
    saver.give(task)
    end(task)
    wait_until((folder / "begun").exists, what="mksquashfs runs")
    saver.process.kill()
    saver.end()

    assert (folder / "it.sqsh").read_text() == "former"


def test_an_image_of_a_former_version_is_saved_without_an_entry_point(
    folder: Path, task: "subprocess.Popen[bytes]"
) -> None:
    (folder / "image/entrypoint").unlink()
    saver = Saver(folder, "it.sqsh")
    saver.give(task)
    end(task)

    assert saver.end()[0] == 0
    assert settings_of_tree(unpacked(folder / "it.sqsh")).directory == "/work"


def test_settings_that_cannot_be_read_are_reported_before_the_task_starts(folder: Path) -> None:
    (folder / "image/workdir").unlink()
    saver = Saver(folder, "it.sqsh")

    assert "workdir: No such file or directory" in saver.answer
    assert saver.end()[0] == 1


def test_settings_survive_the_way_into_a_folder_and_back(tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)

    assert settings_of_folder(tmp_path) == SETTINGS
