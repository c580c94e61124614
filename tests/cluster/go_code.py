"""Our Go code's own tests, and what judges it: compiled before the first test, as it takes minutes from nothing."""

import shutil
from hashlib import sha256
from pathlib import Path

from tools.console import step
from tools.kube import golang
from tools.kube.binaries import GO, NODE
from tools.kube.process import output

_TESTS = sorted((GO / NODE.name).rglob("*_test.go"))
TESTED = sorted({test.parent.name for test in _TESTS})
"""The packages that have tests."""

_OURS = ("./node/...", "./pause")


def make() -> None:
    """Compile the tests, and vet, with progress."""
    compiled_tests()
    vet()


def compiled_tests() -> Path:
    """Return the folder that has `<package>.test` for each package that is tested; compile them where they changed."""
    digest = sha256(b"".join(test.read_bytes() for test in _TESTS)).hexdigest()[:12]
    folder = NODE.installed.with_name(f"{NODE.installed.name}-tests-{digest}")
    if not folder.exists():
        building = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(building, ignore_errors=True)
        packages = [f"./{NODE.name}/{package}" for package in TESTED]
        flags = [*golang.FLAGS, "-ldflags=-s -w", "-v", "-c", f"-o={building}/"]
        _run("Compiling the node agent's tests", "test", *flags, *packages)
        building.rename(folder)
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
