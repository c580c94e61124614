"""Programs of the distribution: from PATH, or unpacked."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.console import UserError
from tools.kube import debs
from tools.kube.debs import Apt, Unpacked


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", (1, 6, 20)),
        ("containerd github.com/containerd/containerd v2.1.4 75cb2b7193e4e490", (2, 1, 4)),
        ("runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev", (1, 1, 5)),
        ("containerd-shim-runc-v2:\n  Version:  1.7.12\n  Revision:", (1, 7, 12)),
        ("nftables v1.0.6 (Lester Gooch #5)", (1, 0, 6)),
        ("buildah version 1.28.2 (image-spec 1.1.0-rc2, runtime-spec 1.0.2-dev)", (1, 28, 2)),
        ("mmdebstrap 1.3.5", (1, 3, 5)),
        ("no number at all", ()),
    ],
)
def test_versions_as_programs_print_them(printed: str, version: tuple[int, ...]) -> None:
    assert debs.parse_version(printed) == version


def test_the_closure_is_what_apt_would_install() -> None:
    simulated = """\
NOTE: This is only a simulation!
Reading package lists...
The following NEW packages will be installed:
  libnftables1 nftables
Inst libnftables1 (1.0.6-2+deb12u2 Debian:12.9/stable [amd64])
Inst nftables (1.0.6-2+deb12u2 Debian:12.9/stable [amd64]) []
Conf libnftables1 (1.0.6-2+deb12u2 Debian:12.9/stable [amd64])
Conf nftables (1.0.6-2+deb12u2 Debian:12.9/stable [amd64])
"""
    assert debs.parse_closure(simulated) == {"libnftables1", "nftables"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A PATH of one folder, and unpacked packages that have a runc."""
    program(tmp_path / "unpacked/usr/sbin/runc", "runc version 1.1.5")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(debs, "unpacked", lambda: Unpacked(tmp_path / "unpacked"))
    debs.tool.cache_clear()
    yield tmp_path / "bin"
    debs.tool.cache_clear()


def program(path: Path, prints: str, exit_code: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\nexit {exit_code}\n")
    path.chmod(0o755)


def test_a_program_on_path_that_is_new_enough_is_used_as_it_is(machine: Path) -> None:
    program(machine / "runc", "runc version 1.3.0")
    found = debs.tool("runc")
    assert found.path == machine / "runc"
    assert not found.environment


@pytest.mark.parametrize(("prints", "exit_code"), [("runc version 1.0.3", 0), ("runc version 1.3.0", 127)])
def test_one_that_is_too_old_or_does_not_run_is_passed_over(machine: Path, prints: str, exit_code: int) -> None:
    program(machine / "runc", prints, exit_code)
    assert debs.tool("runc").path == machine.parent / "unpacked/usr/sbin/runc"


@pytest.mark.parametrize("folder", ["usr/libexec/podman", "usr/lib/podman"])
def test_a_buildah_on_path_without_its_helper_gets_the_unpacked_one(
    machine: Path, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    monkeypatch.setattr(debs, "_HELPER_FOLDERS", tuple(str(root / name) for name in debs._HELPER_FOLDERS))
    program(machine / "buildah", "buildah version 1.39.3")
    found = debs.tool("buildah")
    assert found.path == machine / "buildah"
    assert found.environment["CONTAINERS_HELPER_BINARY_DIR"].startswith(str(machine.parent / "unpacked"))
    program(root / folder / "netavark", "netavark 1.14.0")
    debs.tool.cache_clear()
    assert debs.tool("buildah") == debs.Tool("buildah", machine / "buildah")


def test_an_unpacked_program_finds_its_libraries_and_helpers(machine: Path) -> None:
    found = debs.tool("runc")
    root = machine.parent / "unpacked"
    assert found.environment["PATH"].startswith(f"{root}/usr/sbin:")
    assert found.environment["LD_LIBRARY_PATH"].startswith(f"{root}/usr/lib/")
    assert found.environment["CONTAINERS_HELPER_BINARY_DIR"] == f"{root}/usr/lib/podman"  # of netavark
    assert found.run() == "runc version 1.1.5\n"


def test_a_program_that_no_package_has_is_named(machine: Path) -> None:
    assert machine.exists()
    with pytest.raises(UserError, match="conntrack is not in the packages unpacked at"):
        debs.tool("conntrack")


def test_absolute_links_of_packages_lead_to_the_unpacked_files(tmp_path: Path) -> None:
    program(tmp_path / "bin/kmod", "kmod")
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/modprobe").symlink_to("/bin/kmod")
    (tmp_path / "sbin/elsewhere").symlink_to("/etc/not-in-any-package")
    debs._keep_links_inside(tmp_path)
    assert (tmp_path / "sbin/modprobe").resolve() == tmp_path / "bin/kmod"
    assert (tmp_path / "sbin/elsewhere").readlink() == Path("/etc/not-in-any-package")


class AptGet:
    """Stands for apt-get: answers by subcommand, and keeps what it was asked."""

    def __init__(self, answers: dict[str, str | UserError]) -> None:
        self.answers = answers
        self.commands: list[list[str]] = []

    def __call__(self, command: list[object], **_: object) -> str:
        words = [str(word) for word in command]
        self.commands.append(words)
        answer = next(answer for name, answer in self.answers.items() if name in words)
        if isinstance(answer, UserError):
            raise answer
        return answer


def test_apt_uses_folders_of_its_own_only(tmp_path: Path) -> None:
    run = AptGet({"update": "", "install": "Inst runc (1)\n"})
    assert Apt(tmp_path / "apt", run).fresh_closure(["runc"]) == {"runc"}
    for command in run.commands:
        folders = [word.partition("=")[2] for word in command if word.startswith("Dir::")]
        assert folders
        assert all(folder.startswith(str(tmp_path)) for folder in folders)


def test_a_source_that_cannot_be_read_is_no_harm_when_others_have_the_packages(tmp_path: Path) -> None:
    run = AptGet({"update": UserError("vendor.example is down"), "install": "Inst runc (1)\n"})
    assert Apt(tmp_path, run).fresh_closure(["runc"]) == {"runc"}


def test_packages_that_no_source_has_are_reported_with_what_to_do(tmp_path: Path) -> None:
    run = AptGet({"update": UserError("mirror is down"), "install": UserError("Unable to locate package runc")})
    with pytest.raises(UserError) as failure:
        Apt(tmp_path, run).fresh_closure(["runc", "conntrack"])
    for part in ("mirror is down", "Unable to locate package runc", "install runc, conntrack"):
        assert part in str(failure.value)
