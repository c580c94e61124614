"""Discovery of a GPU driver among a container's mounts: by content and place, never by a list of names."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_driver.discovery import find, mount_points

ELF_64, ELF_32 = 2, 1
SHARED_OBJECT = 3
INTERPRETER, LOAD = 3, 1


def elf(kind: int, *, interpreter: bool = False) -> bytes:
    """Return the headers of an ELF file with one segment (elf(5))."""
    segment = INTERPRETER if interpreter else LOAD
    ident = b"\x7fELF" + bytes([kind, 1, 1]) + bytes(9)
    if kind == ELF_64:
        head = struct.pack("<HHIQQQIHHHHHH", SHARED_OBJECT, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        return ident + head + struct.pack("<IIQQQQQQ", segment, 4, 0, 0, 0, 0, 0, 0)
    head = struct.pack("<HHIIIIIHHHHHH", SHARED_OBJECT, 3, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    return ident + head + struct.pack("<IIIIIIII", segment, 0, 0, 0, 0, 0, 4, 0)


LIBRARY, LIBRARY_32, PROGRAM = elf(ELF_64), elf(ELF_32), elf(ELF_64, interpreter=True)


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Make a file of a container's root, which is the test's folder."""

    def make(path: str, content: bytes, mode: int = 0o755) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in (file.parent, *file.parent.parents):
            if folder.is_relative_to(tmp_path):
                folder.chmod(0o755)
        file.write_bytes(content)
        file.chmod(mode)
        return file

    return make


def found(root: Path, *points: str, volumes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return what is found: place in the tree, and path in the container or name that a link leads to."""
    driver = find([root / point for point in points], [root / volume for volume in volumes], root)
    files = {place: str(path.relative_to(root)) for place, path in driver.files.items()}
    return {**files, **{place: f"-> {target}" for place, target in driver.links.items()}}


def test_mount_points_are_read_with_their_blanks() -> None:
    line = r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"

    assert mount_points(f"{line}\n") == [Path("/mnt 2")]


def test_files_go_where_their_content_belongs(tmp_path: Path, put: Callable[..., Path]) -> None:
    files = {
        "usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15": LIBRARY,
        "usr/lib/i386-linux-gnu/libcuda.so.550.54.15": LIBRARY_32,
        "usr/bin/nvidia-smi": PROGRAM,
        "usr/bin/nvidia-bug-report.sh": b"#!/bin/sh\n",
        "usr/share/nvidia/nvoptix.bin": b"data",
        "etc/vulkan/icd.d/nvidia_icd.json": b'{"ICD": {"library_path": "libcuda.so.1"}}',
    }
    for path, content in files.items():
        put(path, content)

    assert found(tmp_path, *files) == {
        "lib64/libcuda.so.550.54.15": "usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15",
        "lib/libcuda.so.550.54.15": "usr/lib/i386-linux-gnu/libcuda.so.550.54.15",
        "bin/nvidia-smi": "usr/bin/nvidia-smi",
        "bin/nvidia-bug-report.sh": "usr/bin/nvidia-bug-report.sh",
        "share/nvidia/nvoptix.bin": "usr/share/nvidia/nvoptix.bin",
        "etc/vulkan/icd.d/nvidia_icd.json": "etc/vulkan/icd.d/nvidia_icd.json",
    }


def test_nothing_that_kubernetes_mounts_is_taken(tmp_path: Path, put: Callable[..., Path]) -> None:
    files = {
        "etc/hosts": b"127.0.0.1 localhost\n",
        "etc/resolv.conf": b"nameserver 10.96.0.10\n",
        "etc/vault/token": b"s.secret",
        "run/secrets/kubernetes.io/serviceaccount/token": b"secret",
        "dev/termination-log": b"",
        "proc/driver/nvidia/params": b"ModifyDeviceFiles: 0\n",
    }
    for path, content in files.items():
        put(path, content)
    put("usr/lib/libcuda.so.1", LIBRARY)

    assert found(tmp_path, *files, "run/secrets", "usr/lib/libcuda.so.1") == {
        "lib64/libcuda.so.1": "usr/lib/libcuda.so.1"
    }
    assert found(tmp_path, *files, "run/secrets") == {}


def test_nothing_of_the_pods_own_volumes_is_taken(tmp_path: Path, put: Callable[..., Path]) -> None:
    put("data/lib64/libcuda.so.550.54.15", LIBRARY)
    put("data/inner/libcuda.so.550.54.15", LIBRARY)

    assert found(tmp_path, "data", "data/inner", volumes=("data",)) == {}
    assert found(tmp_path, "data", volumes=("dat",)) == {
        "lib64/libcuda.so.550.54.15": "data/lib64/libcuda.so.550.54.15"
    }


def test_a_file_that_others_may_change_is_left_out(tmp_path: Path, put: Callable[..., Path]) -> None:
    put("usr/lib/libopen.so.1", LIBRARY, mode=0o777)
    put("usr/lib/libgroup.so.1", LIBRARY, mode=0o775)
    shutil.chown(put("usr/lib/libusers.so.1", LIBRARY), user=2001)
    put("opt/driver/lib64/libcuda.so.1", LIBRARY)
    (tmp_path / "opt/driver/lib64").chmod(0o777)

    assert found(tmp_path, *(f"usr/lib/lib{name}.so.1" for name in ("open", "group", "users")), "opt/driver") == {}


def test_of_a_folder_libraries_and_programs_are_taken_with_their_links(
    tmp_path: Path, put: Callable[..., Path]
) -> None:
    put("usr/local/nvidia/lib64/libcuda.so.550.54.15", LIBRARY)
    put("usr/local/nvidia/bin/nvidia-smi", PROGRAM)
    put("usr/local/nvidia/bin/README", b"text")
    put("usr/local/nvidia/lib64/deeper/libother.so.1", LIBRARY)
    (tmp_path / "usr/local/nvidia/lib64/libcuda.so.1").symlink_to("libcuda.so.550.54.15")
    (tmp_path / "usr/local/nvidia/lib64/libcuda.so").symlink_to("libcuda.so.1")
    (tmp_path / "usr/local/nvidia/lib64/libnone.so").symlink_to("libnone.so.1")

    assert found(tmp_path, "usr/local/nvidia") == {
        "lib64/libcuda.so.550.54.15": "usr/local/nvidia/lib64/libcuda.so.550.54.15",
        "lib64/libcuda.so.1": "-> libcuda.so.550.54.15",
        "lib64/libcuda.so": "-> libcuda.so.550.54.15",
        "bin/nvidia-smi": "usr/local/nvidia/bin/nvidia-smi",
    }


@pytest.mark.parametrize("mark", ["usr/lib/os-release", "usr/lib/x86_64-linux-gnu/libc.so.6"])
def test_of_a_whole_system_only_what_has_the_drivers_version_is_taken(
    tmp_path: Path, put: Callable[..., Path], mark: str
) -> None:
    root = "run/nvidia/driver"
    put(f"{root}/{mark}", LIBRARY)
    put(f"{root}/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15", LIBRARY)
    put(f"{root}/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15", LIBRARY)
    put(f"{root}/usr/lib/x86_64-linux-gnu/libz.so.1", LIBRARY)
    put(f"{root}/usr/bin/nvidia-smi", PROGRAM + b"version 550.54.15\0")
    put(f"{root}/usr/bin/ls", PROGRAM + b"version 9.1\0")

    assert set(found(tmp_path, root)) == {
        "lib64/libcuda.so.550.54.15",
        "lib64/libnvidia-ml.so.550.54.15",
        "bin/nvidia-smi",
    }
    (tmp_path / f"{root}/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15").unlink()
    assert found(tmp_path, root) == {}


@pytest.mark.parametrize("content", [LIBRARY, LIBRARY_32])
def test_what_is_cut_short_is_no_library(tmp_path: Path, put: Callable[..., Path], content: bytes) -> None:
    points = [f"usr/lib/lib{size}.so" for size in range(len(content))]
    for size, point in enumerate(points):
        put(point, content[:size])

    assert found(tmp_path, *points) == {}
