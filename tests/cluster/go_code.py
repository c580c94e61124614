"""Our Go code's own tests, and the tools that judge it: compiled before the first test, which takes minutes."""

from contextlib import suppress
from functools import cache
from pathlib import Path

from tools.console import UserError, step
from tools.kube import golang
from tools.kube.binaries import GO, NODE
from tools.kube.process import output

TESTED = ("gate", "policy", "volumes")
_VETTED = (*golang.FLAGS, "./node/...", "./pause")


def make() -> None:
    """Compile the tests, and let Go's cache have the findings of vet, with progress."""
    compiled_tests()
    with suppress(UserError):  # the test reports the findings
        _run("Vetting our Go code", "vet", "-x", *_VETTED)


@cache
def compiled_tests() -> Path:
    """Return the folder that has `<package>.test` for each package that is tested."""
    folder = NODE.installed.with_name(f"{NODE.installed.name}-tests")
    packages = [f"./{NODE.name}/{package}" for package in TESTED]
    _run(
        "Compiling the node agent's tests",
        "test",
        *("-c", "-x", *golang.FLAGS, "-ldflags=-s -w"),
        f"-o={folder}/",
        *packages,
    )
    return folder


def vet() -> None:
    """Have Go look for mistakes; a finding is a UserError."""
    golang.run(GO, "vet", *_VETTED, what="vetting our Go code")


def unformatted() -> list[str]:
    """Return the files that gofmt would change."""
    (root,) = golang.run(GO, "env", "GOROOT", what="asking for GOROOT")
    return output([Path(root) / "bin" / "gofmt", "-l", GO]).splitlines()


def _run(title: str, *arguments: str) -> None:
    with step(title) as progress:
        golang.run(GO, *arguments, what=title, report=lambda lines: progress(_progress(lines)))


def _progress(commands: list[str]) -> str:
    """Count the packages in the commands that `-x` prints: `-v` has another meaning for test and vet."""
    return f"{sum('/compile -o ' in line or '/vet -' in line for line in commands)} packages"
