"""Our Go code's own tests, and what judges it: compiled before the first test, as it takes minutes from nothing."""

from functools import cache
from pathlib import Path

from tools.console import step
from tools.kube import golang
from tools.kube.binaries import GO, NODE
from tools.kube.process import output

TESTED = ("gate", "policy", "volumes")
_OURS = ("./node/...", "./pause")


def make() -> None:
    """Compile the tests, and vet, with progress."""
    compiled_tests()
    vet()


@cache
def compiled_tests() -> Path:
    """Return the folder that has `<package>.test` for each package that is tested."""
    folder = NODE.installed.with_name(f"{NODE.installed.name}-tests")
    packages = [f"./{NODE.name}/{package}" for package in TESTED]
    _run(
        "Compiling the node agent's tests",
        "test",
        *golang.FLAGS,
        "-ldflags=-s -w",
        "-v",
        "-c",
        f"-o={folder}/",
        *packages,
    )
    return folder


def vet() -> None:
    """Have Go look for mistakes; what it finds is a UserError."""
    _run("Vetting our Go code", "vet", "-v", *golang.FLAGS, *_OURS)


def unformatted() -> list[str]:
    """Return the files that gofmt would change."""
    (root,) = golang.run(GO, "env", "GOROOT", what="asking for GOROOT")
    return output([Path(root) / "bin" / "gofmt", "-l", GO]).splitlines()


def _run(title: str, *arguments: str) -> None:
    with step(title) as progress:
        golang.run(GO, *arguments, what=title, report=lambda lines: progress(f"{len(lines)} packages"))
