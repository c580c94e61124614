"""Builds are kept by version and source, are made by one compile, and are there whole or not at all."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster import container_registry
from tools.console import UserError
from tools.kube import binaries, golang
from tools.kube.binaries import Binary

GO = """#!/bin/sh
case "$1" in
version) echo "go version go1.26.1 linux/amd64" ;;
list) echo "go: downloading example.org/x v1.0.0" >&2; echo main; echo fmt ;;
build)
    echo "$@" >> "$BUILDS"
    echo fmt
    for word; do case "$word" in
        -o=*) folder=${word#-o=}; mkdir -p "$folder" ;;
        ./* | example.org/*) echo "$RESULT" > "$folder/${word##*/}" ;;
    esac; done
    exit "${EXIT:-0}" ;;
esac
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with the packages thing and tool, and a go command that does as it is told."""
    source = tmp_path / "go"
    for name in ("thing", "tool"):
        (source / name).mkdir(parents=True)
        (source / name / "main.go").write_text("package main\n")
    (source / "go.mod").write_text("module things\n\ngo 1.26.0\n\nrequire (\n\texample.org/thing v1.2.3\n)\n")
    (source / "go.sum").write_text("")
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("RESULT", "program")
    return source


@pytest.fixture
def thing(module: Path) -> Binary:
    return Binary("thing", "example.org/thing", programs=("one", "two"), stamp="example.org/version", module=module)


@pytest.fixture
def tool(module: Path) -> Binary:
    return Binary("tool", module=module)


def builds(module: Path) -> list[str]:
    return (module.parent / "builds").read_text().splitlines()


def test_a_build_gives_all_programs_in_a_folder_named_by_version_and_source(thing: Binary) -> None:
    binaries.build(thing)
    assert thing.installed.name == f"thing-v1.2.3-{thing.key}"
    assert (thing.installed / "one").read_text() == (thing.installed / "two").read_text() == "program\n"


def test_all_that_is_missing_is_built_by_one_command(thing: Binary, tool: Binary) -> None:
    binaries.build(thing, tool)
    (build,) = builds(thing.module)
    assert build.endswith(" ./thing ./tool")
    assert set(golang.FLAGS) <= set(build.split())
    assert (tool.installed / "tool").exists()


def test_a_program_of_a_dependency_is_built_with_its_tags(module: Path) -> None:
    thing = Binary("cmd", "example.org/thing", package="example.org/thing/cmd", tags=("small", "fast"), module=module)
    binaries.build(thing)
    (build,) = builds(module)
    assert build.endswith(" example.org/thing/cmd")
    assert "-tags=small,fast" in build.split()
    assert (thing.installed / "cmd").exists()
    assert thing.key != replace(thing, tags=()).key


def test_what_is_built_is_not_built_again(thing: Binary, tool: Binary) -> None:
    for _ in range(2):
        binaries.build(thing)
    binaries.build(thing, tool)
    assert [build.split()[-1] for build in builds(thing.module)] == ["./thing", "./tool"]
    assert not builds(thing.module)[1].count("./thing")


def test_an_edit_of_one_binary_is_another_build_of_that_one_alone(thing: Binary, tool: Binary) -> None:
    keys = thing.key, tool.key
    (thing.module / "thing/main_test.go").write_text("package main\n")
    assert (thing.key, tool.key) == keys
    (thing.module / "thing/main.go").write_text("package main // changed\n")
    assert thing.key != keys[0]
    assert tool.key == keys[1]


def test_other_versions_are_another_build_of_all(thing: Binary, tool: Binary) -> None:
    keys = {thing.key, tool.key}
    (thing.module / "go.sum").write_text("example.org/x v1.0.1 h1:another\n")
    assert not keys & {thing.key, tool.key}


def test_a_build_that_fails_leaves_nothing_that_passes_for_one(thing: Binary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXIT", "1")
    with pytest.raises(UserError, match=r"(?s)building thing v1\.2\.3 with .*failed \(exit 1\).*fmt"):
        binaries.build(thing)
    assert not thing.installed.exists()


def test_what_a_killed_build_left_is_no_harm(thing: Binary) -> None:
    left = thing.installed.with_name(".go.new")
    for folder in ("bin", "temporary/go-build123", thing.installed.name):
        (left / folder).mkdir(parents=True)
    (left / "bin/thing").write_text("half")
    binaries.build(thing)
    assert (thing.installed / "thing").read_text() == "program\n"
    assert not left.exists()


def test_the_version_is_stamped_so_that_clients_believe_it(thing: Binary) -> None:
    binaries.build(thing)
    for stamp in ("gitVersion=v1.2.3", "gitMajor=1", "gitMinor=2"):
        assert f"-X example.org/version.{stamp}" in builds(thing.module)[0]


def test_a_module_that_does_not_pin_what_it_is_made_of_is_refused(thing: Binary) -> None:
    (thing.module / "go.mod").write_text("module things\n\ngo 1.26.0\n")
    with pytest.raises(UserError, match=r"does not require example\.org/thing"):
        binaries.build(thing)


def test_progress_is_against_what_is_left_to_compile() -> None:
    assert binaries._progress(812, 2968) == "compiled 812 of 2968 packages"
    assert binaries._progress(2968, 2968) == "compiled 2968 packages, linking"


@pytest.mark.parametrize(
    ("packages", "cores", "shown"),
    [
        (2968, 2, "7 to 19 minutes on 2 cores"),
        (2968, 1, "13 to 38 minutes on 1 core"),
        (2968, 64, "a minute at most on 64 cores"),
        (3, 2, "a minute at most on 2 cores"),
    ],
)
def test_the_time_is_a_range_for_what_is_left_on_this_machine(packages: int, cores: int, shown: str) -> None:
    assert binaries.usual_time(packages, cores) == shown


def required(module: Path) -> dict[str, str]:
    return dict(re.findall(r"^\s+(\S+) (v\S+)", (module / "go.mod").read_text(), re.MULTILINE))


@pytest.mark.parametrize("real", [*binaries.ALL, container_registry.BINARY], ids=lambda binary: str(binary.name))
def test_every_binary_is_pinned(real: Binary) -> None:
    assert real.version
    assert (real.module / "go.sum").exists()
    assert (real.module / real.name / "main.go").exists()


def test_the_servers_are_one_module_so_that_what_they_share_is_compiled_once() -> None:
    assert {binary.module for binary in binaries.ALL} == {binaries.GO}
    assert [file.parent for file in binaries.GO.rglob("go.mod")] == [binaries.GO]


def test_the_registry_of_tests_requires_the_versions_of_the_servers() -> None:
    servers, tests = required(binaries.GO), required(container_registry.BINARY.module)
    shared = servers.keys() & tests.keys()
    assert len(shared) > 30
    assert {name: tests[name] for name in shared} == {name: servers[name] for name in shared}
