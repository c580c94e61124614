"""Builds are kept by version and source, and are there whole or not at all."""

from pathlib import Path

import pytest

from tools.console import UserError
from tools.kube import binaries
from tools.kube.binaries import Module

GO = """#!/bin/sh
case "$1" in
version) echo "go version go1.26.1 linux/amd64" ;;
list) echo "go: downloading example.org/x v1.0.0" >&2; echo main; echo fmt ;;
build)
    echo fmt
    while [ "$1" != -o ]; do shift; done
    echo "$RESULT" > "$2"
    exit "${EXIT:-0}" ;;
esac
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """A module of two programs, with a go command that does as it is told."""
    source = tmp_path / "go" / "thing"
    source.mkdir(parents=True)
    (source / "go.mod").write_text("module thing\n\ngo 1.26.0\n\nrequire (\n\texample.org/thing v1.2.3\n)\n")
    (source / "main.go").write_text("package main\n")
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RESULT", "program")
    monkeypatch.setattr(binaries, "_SOURCES", tmp_path / "go")
    return Module("thing", "example.org/thing", usual_seconds=90, programs=("one", "two"), stamp="example.org/version")


def test_a_build_gives_all_programs_in_a_folder_named_by_version_and_source(module: Module) -> None:
    folder = binaries.build(module)
    assert folder.name == f"thing-v1.2.3-{module.key}"
    assert (folder / "one").read_text() == (folder / "two").read_text() == "program\n"


def test_what_is_built_is_not_built_again(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = binaries.build(module)
    monkeypatch.setenv("EXIT", "1")
    assert binaries.build(module) == folder


def test_another_source_is_another_build_and_another_test_is_not(module: Module) -> None:
    key = module.key
    (module.folder / "main_test.go").write_text("package main\n")
    assert module.key == key
    (module.folder / "main.go").write_text("package main // changed\n")
    assert module.key != key


def test_a_build_that_fails_leaves_nothing_that_passes_for_one(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXIT", "1")
    with pytest.raises(UserError, match=r"(?s)compiling thing v1\.2\.3 with .*failed \(exit 1\).*fmt"):
        binaries.build(module)
    assert not module.installed.exists()


def test_what_a_killed_build_left_is_no_harm(module: Module) -> None:
    left = module.installed.with_name(".thing.new")
    left.mkdir(parents=True)
    (left / "thing").write_text("half")
    assert (binaries.build(module) / "thing").read_text() == "program\n"
    assert not left.exists()


def test_the_version_is_stamped_so_that_clients_believe_it(module: Module) -> None:
    (link,) = [flag for flag in module.build_flags if flag.startswith("-ldflags=")]
    for stamp in ("gitVersion=v1.2.3", "gitMajor=1", "gitMinor=2"):
        assert f"-X example.org/version.{stamp}" in link


def test_a_module_that_does_not_pin_what_it_is_made_of_is_refused(module: Module) -> None:
    (module.folder / "go.mod").write_text("module thing\n\ngo 1.26.0\n")
    with pytest.raises(UserError, match=r"does not require example\.org/thing"):
        binaries.build(module)


@pytest.mark.parametrize("real", [*binaries.MODULES, binaries.PAUSE], ids=lambda module: str(module.name))
def test_every_module_is_pinned(real: Module) -> None:
    assert real.version
    assert (real.folder / "go.sum").exists() or not real.dependency
