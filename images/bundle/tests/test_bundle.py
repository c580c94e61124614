"""Content of a bundle and replaced paths in it. Tests of clusters run bundles in other roots."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.bundle.bundle import Bundle, BundleError, Modules, Patch, dependencies, is_elf

LISTED = """\
\tlinux-vdso.so.1 (0x00007ffd9a5f2000)
\tlibslurmfull.so => /usr/lib/x86_64-linux-gnu/slurm-wlm/libslurmfull.so (0x00007f0c1a400000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0c1a200000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f0c1a800000)
"""
PATHS = st.text("/abc", min_size=1, max_size=12)


def test_libraries_are_known_by_the_names_that_are_asked_for() -> None:
    assert dependencies(LISTED, Path("/usr/bin/srun")) == {
        "libslurmfull.so": Path("/usr/lib/x86_64-linux-gnu/slurm-wlm/libslurmfull.so"),
        "libc.so.6": Path("/lib/x86_64-linux-gnu/libc.so.6"),
    }


def test_a_static_program_needs_no_library() -> None:
    assert dependencies("\tstatically linked\n", Path("/bin/busybox")) == {}


def test_a_library_that_is_not_installed_is_named() -> None:
    with pytest.raises(BundleError, match=r"/usr/bin/srun needs libfoo\.so\.1, which is not installed"):
        dependencies("\tlibfoo.so.1 => not found\n", Path("/usr/bin/srun"))


@given(old=PATHS, new=PATHS, before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_a_replaced_path_leaves_everything_else_where_it_was(old: str, new: str, before: bytes, after: bytes) -> None:
    content = before + b"\0" + old.encode() + b"\0" + after
    if len(new) > len(old) or content.count(old.encode() + b"\0") != 1:
        with pytest.raises(BundleError):
            Patch("lib.so", old, new).apply(content)
        return

    patched = Patch("lib.so", old, new).apply(content)

    assert len(patched) == len(content)
    assert patched.startswith(before + b"\0" + new.encode() + b"\0")
    assert patched.endswith(after)


@pytest.mark.parametrize("content", [b"nothing", b"\0/etc/old\0 and \0/etc/old\0"])
def test_a_path_that_is_not_there_exactly_once_ends_the_build(content: bytes) -> None:
    with pytest.raises(BundleError, match=r"libc\.so\.6 has /etc/old (0|2) times, and one was expected"):
        Patch("libc.so.6", "/etc/old", "/opt/new").apply(content)


def test_a_path_that_only_begins_like_the_old_one_is_another() -> None:
    content = b"\0/etc/old.d\0/etc/old\0"

    assert Patch("libc.so.6", "/etc/old", "/new").apply(content) == b"\0/etc/old.d\0/new\0\0\0\0\0"


def test_a_longer_path_is_refused() -> None:
    with pytest.raises(BundleError, match="/opt/longer is longer than /old"):
        Patch("libc.so.6", "/old", "/opt/longer").apply(b"\0/old\0")


def test_programs_are_told_from_scripts_and_links(tmp_path: Path) -> None:
    program, script, link = tmp_path / "program", tmp_path / "script", tmp_path / "link"
    program.write_bytes(b"\x7fELF\x02\x01\x01")
    script.write_text("#!/bin/sh\n")
    link.symlink_to(program)

    assert [is_elf(path) for path in (program, script, link, tmp_path)] == [True, False, False, False]


def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"/nonexistent/srun.*is not installed"):
        Bundle(tmp_path).make([Path("/nonexistent/srun")], [], [])


def test_a_folder_of_modules_is_given_with_its_place() -> None:
    assert Modules.parse("/usr/lib/slurm=lib/slurm") == Modules(Path("/usr/lib/slurm"), Path("lib/slurm"))
