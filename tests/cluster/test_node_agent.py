"""The Go code: its own tests, and the tools that judge it."""

from pathlib import Path

import pytest

from tools.kube import binaries, golang
from tools.kube.binaries import Module
from tools.kube.process import output

pytestmark = pytest.mark.cluster

ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
OURS = [binaries.NODE, binaries.PAUSE]


def go(module: Module, *arguments: str) -> str:
    return output(
        [golang.go(module.folder), *arguments], environment=ENVIRONMENT, cwd=module.folder, timeout_seconds=500
    )


def test_the_node_agent_passes_its_own_tests() -> None:
    said = go(binaries.NODE, "test", "./...")
    for package in ("policy", "volumes", "gate"):
        assert any(line.startswith("ok") and package in line for line in said.splitlines()), said


@pytest.mark.parametrize("module", OURS, ids=lambda module: str(module.name))
def test_vet_finds_nothing(module: Module) -> None:
    go(module, "vet", "./...")


@pytest.mark.parametrize("module", [*OURS, binaries.KUBERNETES, binaries.ETCD, binaries.COREDNS], ids=lambda m: m.name)
def test_sources_are_formatted(module: Module) -> None:
    gofmt = Path(go(module, "env", "GOROOT").strip()) / "bin" / "gofmt"
    assert not output([gofmt, "-l", module.folder])
