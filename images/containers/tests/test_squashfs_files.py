"""Images in files of squashfs, unpacked by the real unsquashfs as an ordinary user."""

import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_images.image_reference import ImageError
from container_images.image_settings import settings_of_tree
from container_images.image_store import STORE
from container_images.program_running import run_program
from tests import squashfs_tools

COMMAND = (
    "import os, pathlib, sys; from container_images.import_command import main; "
    "sys.exit(main(['7', sys.argv[1]], settings=pathlib.Path(sys.argv[2])))"
)
USER = 4719

RC = """mkdir -p "/work" 2> /dev/null
cd "/work" && unset OLDPWD || exit 1

if [ -s /etc/rc.local ]; then
    . /etc/rc.local
fi

if [ $# -gt 0 ]; then
    exec '/entry' 'two words' "$@"
else
    exec '/entry' 'two words' '/bin/sh'
fi
"""
"""`/etc/rc` as `enroot import` writes it."""


@pytest.fixture(scope="session")
def programs() -> Iterator[dict[str, str]]:
    with squashfs_tools.variables_for_all() as variables:
        yield variables


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of an ordinary user, with an image's tree in it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        (home / "tree/etc").mkdir(parents=True)
        Path(folder).chmod(0o755)
        os.chown(home, USER, USER)
        yield home


def pack(home: Path, *options: str) -> Path:
    image = home / "image.sqsh"
    squashfs_tools.pack(home / "tree", image, *options)
    image.chmod(0o644)
    return image


def start(home: Path, image: Path, programs: dict[str, str], settings: str = "{}") -> tuple[int, list[str]]:
    """Bring an image as the user; return the exit code, and what it has printed."""
    limits = home / "settings.json"
    if settings != "{}":
        limits.write_text(settings)
    done = subprocess.run(
        [
            *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
            *("/usr/bin/python3", "-c", COMMAND, image, limits),
        ],
        env={**programs, "HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def brought(home: Path, image: Path, programs: dict[str, str]) -> Path:
    code, said = start(home, image, programs)
    assert code == 0, said
    return Path(said[-1].removeprefix("image="))


@pytest.mark.parametrize("compression", ["gzip", "lzo", "zstd"])
def test_a_file_of_enroot_becomes_a_folder_with_files_and_settings(
    home: Path, programs: dict[str, str], compression: str
) -> None:
    (home / "tree/etc/environment").write_text('PATH=/opt/bin\nTEXT="with quotes"\n# a comment\nno variable\n')
    (home / "tree/etc/rc").write_text(RC)
    (home / "tree/program").write_text("x")

    folder = brought(home, pack(home, "-comp", compression, "-all-root"), programs)

    assert folder.parent == home / STORE / "images"
    assert (folder / "rootfs/program").read_text() == "x"
    assert (folder / "environment").read_bytes() == b"PATH=/opt/bin\0TEXT=with quotes\0"
    assert (folder / "entrypoint").read_bytes() == b"/entry\0two words\0"
    assert (folder / "workdir").read_text() == "/work"
    assert (folder / "reference").read_text() == f"squashfs:{home}/image.sqsh"


def test_a_file_that_was_written_again_is_another_image(home: Path, programs: dict[str, str]) -> None:
    first = brought(home, pack(home), programs)
    assert brought(home, home / "image.sqsh", programs) == first
    (home / "tree/new").write_text("x")

    assert (brought(home, pack(home), programs) / "rootfs/new").read_text() == "x"


def test_a_hostile_file_gets_no_device_no_set_user_id_bit_and_nothing_outside(
    home: Path, programs: dict[str, str]
) -> None:
    tree, secret = home / "tree", home / "secret"
    secret.write_text("KEY=secret\n")
    os.mknod(tree / "device", stat.S_IFCHR | 0o666, os.makedev(1, 8))
    (tree / "program").write_text("x")
    (tree / "program").chmod(0o6755)
    (tree / "closed").mkdir(mode=0)
    (tree / "etc/environment").symlink_to(secret)
    os.setxattr(tree / "program", "user.name", b"x")

    folder = brought(home, pack(home), programs)

    assert not (folder / "rootfs/device").exists()
    assert (folder / "rootfs/program").stat().st_mode & 0o7777 == 0o755
    assert os.listxattr(folder / "rootfs/program") == []
    assert (folder / "rootfs/closed").stat().st_mode & 0o700 == 0o700
    assert (folder / "environment").read_bytes() == b""


def test_a_name_that_leads_out_of_the_tree_is_refused(home: Path, programs: dict[str, str]) -> None:
    (home / "tree/QZ").mkdir()
    (home / "tree/QZ/planted").write_text("x")
    image = pack(home, "-noI", "-noD", "-noF")
    content = image.read_bytes()
    assert content.count(b"QZ") == 1
    image.write_bytes(content.replace(b"QZ", b".."))

    code, said = start(home, image, programs)

    assert code == 1, said
    assert list(home.rglob("planted")) == [home / "tree/QZ/planted"]


def test_a_file_that_is_cut_is_reported_and_leaves_no_image(home: Path, programs: dict[str, str]) -> None:
    (home / "tree/random").write_bytes(os.urandom(100_000))
    image = pack(home)
    os.truncate(image, 50_000)

    code, said = start(home, image, programs)

    assert code == 1
    assert said[-1].startswith("unsquashfs: ")
    assert list((home / STORE / "images").iterdir()) == []


def test_a_file_that_does_not_fit_into_the_store_is_refused(home: Path, programs: dict[str, str]) -> None:
    (home / "tree/large").write_bytes(bytes(10_000_000))
    settings = (
        '{"images_bytes": 5000000, "unused_seconds": null, "registries": [], "allowed_registries": [], "variables": {}}'
    )

    code, said = start(home, pack(home), programs, settings)

    assert code == 1
    assert "(containers.images_gib)" in said[-1]


def test_a_program_that_fails_without_words_has_failed() -> None:
    with pytest.raises(ImageError, match="sh: it said nothing"):
        run_program(["sh", "-c", "exit 1"], dict(os.environ), harmless=re.compile("harmless"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("    exec '/entry' \"$@\"", ("/entry",)),
        ("    exec '/it'\\''s' \"$@\"", ("/it's",)),
        ("    exec $'/a\\nb' \"$@\"", ()),
        ('    exec \'unbalanced "$@"', ()),
        ('    exec "$@"', ()),
        ("exec nothing", ()),
    ],
)
def test_an_entry_point_is_read_as_far_as_it_needs_no_shell(tmp_path: Path, line: str, words: tuple[str, ...]) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/rc").write_text(f"{line}\n")

    assert settings_of_tree(tmp_path).entry_point == words


@pytest.mark.parametrize("make", ["link", "fifo", "folder"])
def test_settings_are_taken_from_files_of_the_image_alone(tmp_path: Path, make: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/environment").write_text("A=1\n")
    root = tmp_path / "root"
    root.mkdir()
    if make == "link":
        (root / "etc").symlink_to(tmp_path / "outside")
    else:
        (root / "etc").mkdir()
        (os.mkfifo if make == "fifo" else os.mkdir)(root / "etc/environment")

    assert settings_of_tree(root).variables == ()
