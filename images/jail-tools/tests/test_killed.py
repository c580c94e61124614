"""A populate that is killed at any moment, again and again, ends with a whole tree, never with a partial one."""

import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import pytest
from jail_testing import trees

from tests.soak import times
from tests.waiting import wait_until

KILLS = times(5, 50)
"""How many times each kind of populate is killed before it may end; 50 in `make soak`."""
SEED = 4


@pytest.fixture(scope="module")
def source() -> Iterator[Path]:
    """A tree of a thousand files, as large as a kill needs to hit something."""
    folder = Path(tempfile.mkdtemp(prefix="jail-tools-"))
    source = folder / "source"
    chance = Random(SEED)  # noqa: S311 - the same kills every time
    for number in range(25):
        below = source / f"usr/lib/{number % 7}/{number}"
        below.mkdir(parents=True)
        for file in range(40):
            (below / f"file{file}").write_bytes(chance.randbytes(chance.choice([0, 100, 5_000, 70_000])))
        os.link(below / "file1", below / "further")
        (below / "symlink").symlink_to("file2")
        os.setxattr(below / "file3", "user.comment", b"x" * 40)
    (source / "large").write_bytes(chance.randbytes(24 * 2**20))
    (source / "large").chmod(0o4755)
    for path in sorted(source.rglob("*"), reverse=True):
        os.utime(path, ns=(0, 1_000_250_000_000), follow_symlinks=False)  # exact as a float, as tarfile writes it
    yield source
    shutil.rmtree(folder)


@pytest.fixture
def jail() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="jail-tools-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def tarball(source: Path) -> Iterator[list[str]]:
    """The same as a tarball on a web server: what to say on the command line."""
    file = source.parent / "source.tar.gz"
    with tarfile.open(file, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as archive:
        for path in sorted(source.iterdir()):
            archive.add(path, path.name, filter=_with_attributes)
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = Forgiving(("127.0.0.1", 0), partial(handler, directory=str(file.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield [
        "--tarball",
        f"http://127.0.0.1:{server.server_port}/{file.name}",
        "--sha256",
        sha256(file.read_bytes()).hexdigest(),
    ]
    server.shutdown()
    thread.join()
    server.server_close()


class Forgiving(ThreadingHTTPServer):
    """A server whose clients are killed."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


def _with_attributes(member: tarfile.TarInfo) -> tarfile.TarInfo:
    if member.name.endswith("/file3"):
        member.pax_headers = {"SCHILY.xattr.user.comment": "x" * 40}
    return member


def killed_after(seconds: float, arguments: list[str]) -> bool:
    """Run a command, kill it after a time; tell whether it had come to its end by itself."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, words = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return False
    assert process.returncode == 0, words
    return True


def assert_never_partial(jail: Path, source: Path) -> None:
    """A tree that is marked complete is whole, one that is not is not active."""
    if trees.is_complete(jail):
        whole = trees.seen(jail / "trees" / trees.NAME)
        expected = trees.seen(source)
        assert {path: whole.get(path) for path in expected} == expected
    else:
        assert not os.path.lexists(jail / "active")


@pytest.mark.parametrize("kind", ["root", "tarball"])
def test_whatever_the_moment_of_the_kill_the_tree_is_whole_or_not_complete(
    kind: str, source: Path, jail: Path, tarball: list[str]
) -> None:
    arguments = trees.populate(jail, *(["--root", str(source), "--processes", "3"] if kind == "root" else tarball))
    started = time.monotonic()
    trees.summary(trees.run(trees.populate(jail, *arguments[arguments.index("test:source") + 1 :], tree="f" * 12)))
    whole_seconds = time.monotonic() - started
    (jail / "active").unlink()
    chance = Random(SEED)  # noqa: S311 - the same kills every time
    kills = 0
    while kills < KILLS:
        if killed_after(chance.uniform(0.05, 1.1 * whole_seconds), arguments):
            assert_never_partial(jail, source)
            shutil.rmtree(jail / "trees" / trees.NAME)
            shutil.rmtree(jail / "meta" / trees.NAME)
            (jail / "active").unlink()
        else:
            kills += 1
            assert_never_partial(jail, source)
    print(f"killed {kills} times")
    done = trees.run(arguments)
    assert done.returncode == 0, done.stderr
    assert_never_partial(jail, source)
    assert trees.is_complete(jail)
    assert (jail / "active").readlink() == Path("trees", trees.NAME)
    assert not (jail / "meta" / trees.NAME / "in-progress.json").exists()


def test_no_process_outlives_a_killed_populate(source: Path, jail: Path) -> None:
    process = subprocess.Popen(
        trees.populate(jail, "--root", source, "--limit-mib-per-second", "2"), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("populate:"))  # it copies, with its processes
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.communicate()
    assert children
    wait_until(
        lambda: not any(Path("/proc", child).exists() for child in children), "its processes end", timeout_seconds=10
    )
    assert trees.run(trees.populate(jail, "--root", source)).returncode == 0


def test_what_is_whole_is_not_written_again(source: Path, jail: Path) -> None:
    arguments = trees.populate(jail, "--root", source)
    trees.summary(trees.run(arguments))
    tree = jail / "trees" / trees.NAME
    before = {path: (tree / path).lstat().st_ino for path in trees.seen(source)}
    meta = jail / "meta" / trees.NAME
    marker = {"tree": trees.NAME, "source": "test:source", "began_ns": 10**18}
    (meta / "complete.json").unlink()
    (meta / "in-progress.json").write_text(json.dumps(marker))
    (tree / "large").write_bytes(b"half")
    (tree / "usr/lib/0/0/file1").unlink()
    (tree / "usr/lib/leftover").mkdir()
    trees.summary(trees.run(arguments))
    after = {path: (tree / path).lstat().st_ino for path in trees.seen(source)}
    again = {path for path in before if before[path] != after[path]}
    assert again <= {"large", "usr/lib/0/0/file1", "usr/lib/0/0/further"}
    assert not (tree / "usr/lib/leftover").exists()
    assert_never_partial(jail, source)


def test_a_complete_tree_is_left_alone(source: Path, jail: Path) -> None:
    arguments = trees.populate(jail, "--root", source)
    trees.summary(trees.run(arguments))
    (jail / "trees" / trees.NAME / "etc/motd").write_text("of a user")
    done = trees.run(arguments)
    assert done.returncode == 0
    assert "is complete already" in done.stdout
    assert (jail / "trees" / trees.NAME / "etc/motd").read_text() == "of a user"
