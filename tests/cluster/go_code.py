"""Our Go code's own tests, and the tools that judge it: compiled before the first test, which takes minutes."""

import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from tools.console import UserError, step
from tools.kube import golang
from tools.kube.binaries import GO, NODE
from tools.kube.process import output

_TESTS = sorted((GO / NODE.name).rglob("*_test.go"))
TESTED = sorted({test.parent.name for test in _TESTS})
"""The packages that have tests."""

_VETTED = (*golang.FLAGS, "./node/...", "./pause")


def make() -> None:
    """Compile the tests, and let Go's cache have the findings of vet, with progress."""
    compiled_tests()
    with suppress(UserError):  # the test reports the findings
        _run("Vetting our Go code", "vet", "-x", *_VETTED)


def compiled_tests() -> Path:
    """Return the folder that has `<package>.test` for each package that is tested; compile them where they changed."""
    digest = sha256(b"".join(test.read_bytes() for test in _TESTS)).hexdigest()[:12]
    folder = NODE.installed.with_name(f"{NODE.installed.name}-tests-{digest}")
    if not folder.exists():
        building = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(building, ignore_errors=True)
        packages = [f"./{NODE.name}/{package}" for package in TESTED]
        flags = ["-c", "-x", *golang.FLAGS, "-ldflags=-s -w", f"-o={building}/"]
        _run("Compiling the node agent's tests", "test", *flags, *packages)
        building.rename(folder)
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
