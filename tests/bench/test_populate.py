"""Cost of filling a tree of the jail, against the programs that one would copy it with."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jail_testing.file_systems import FileSystem, mounted

from tests.bench.ratios import Goal, report, seconds, spread
from tests.bench.sizes import SIZE, size
from tests.cluster.programs import program
from tools import images, paths
from tools.images.store import Store
from tools.kube.debs import Tool

ROUNDS = size(4, 1)
DISK = FileSystem(
    ("mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 {image}", "mount -o loop {image} {mount}"),
    "ext4",
    size_mib=size(32, 1) * 1024,
)
"""Room for four copies a round; the file has holes where nothing was written."""

POPULATE = "populate"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A new filesystem. Where much was removed in the last minutes, ext4 makes files several times slower."""
    with mounted(DISK, tmp_path) as folder:
        yield folder
    (tmp_path / "image").unlink()


def make_tree(root: Path) -> None:
    """Make the tree to copy: the root filesystem that jails have by default, in the smallest size a few files."""
    if SIZE == "smallest":
        shutil.copytree(paths.ROOT / "docs", root)
        return
    images.build()
    layout = Store(paths.cache_dir() / "images").layout("jail", images.references()["jail"].rpartition(":")[2])
    root.mkdir()
    for layer in layers(layout):
        subprocess.run(["tar", "-xpf", layer, "--numeric-owner", "--xattrs", "-C", root], check=True)
        for marker in list(root.rglob(".wh.*")):
            marker.unlink()
            gone = marker.with_name(marker.name.removeprefix(".wh."))
            shutil.rmtree(gone) if gone.is_dir() and not gone.is_symlink() else gone.unlink(missing_ok=True)


def layers(layout: Path) -> list[Path]:
    def blob(described: dict[str, Any]) -> Path:
        return layout / "blobs" / str(described["digest"]).replace(":", "/")

    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]).read_text())
    return [blob(layer) for layer in manifest["layers"]]


def run(tool: Tool, *arguments: str | Path) -> None:
    environment = {**os.environ, **tool.environment, "RESTIC_PASSWORD": "bench"}
    subprocess.run([tool.path, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)


def numbers(printed: str) -> dict[str, float]:
    """Return the seconds, files and bytes with which a populate ends, of all that it has printed.

    They are its last line; before it come the findings of the storage's probe, as text and as JSON, and progress.
    """
    last: dict[str, float] = json.loads(printed.splitlines()[-1])
    return last


def populate(tree: Path, target: Path) -> dict[str, float]:
    """Fill a new tree, and return the populate's own numbers."""
    names = ["--tree", "0123456789ab", "--source", "image:bench"]
    command = ["-m", "jail_tools", "populate", "--jail", str(target), *names, "--root", str(tree)]
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT / "images" / "jail-tools")}
    done = subprocess.run(
        [sys.executable, *command], env=environment, check=True, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    return numbers(done.stdout)


@pytest.mark.timeout(1800)
def test_populate_against_cp_rsync_and_restic(disk: Path) -> None:
    tree, repository = disk / "tree", ["--repo", str(disk / "repository")]
    rsync, restic = program("rsync"), program("restic")
    make_tree(tree)
    run(restic, "init", *repository)
    run(restic, "backup", *repository, tree)
    measured: list[dict[str, float]] = []
    methods: dict[str, Callable[[Path], None]] = {
        POPULATE: lambda target: measured.append(populate(tree, target)),
        "cp -a": lambda target: run(Tool("cp", Path("/bin/cp")), "-a", f"{tree}/.", target),
        "rsync -aHAX": lambda target: run(rsync, "-aHAX", f"{tree}/", target),
        "restic restore": lambda target: run(restic, "restore", *repository, "latest", "--target", target),
    }
    names = list(methods)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(ROUNDS):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            taken[name].append(seconds_on_disk(methods[name], disk / f"{name.partition(' ')[0]}-{number}"))

    for name in names:
        print(f"\n{name}: median {statistics.median(taken[name]):.3g} s, {spread(taken[name])}")
    verified = taken.pop(POPULATE)
    alone = [own["seconds"] - own["verify_seconds"] for own in measured]
    before = statistics.median(whole - own["seconds"] for whole, own in zip(verified, measured, strict=True))
    print(f"of a populate, {before:.3g} s are Python's start and the probe of a new claim, however large the tree is")
    fastest = [min(round_) for round_ in zip(*taken.values(), strict=True)]
    against = f"the fastest of {', '.join(taken)}"
    report("populate without probe and verification", alone, fastest, against, Goal(1.0))
    report("populate with probe and verification", verified, fastest, against, Goal(1.3))


def seconds_on_disk(copy: Callable[[Path], None], target: Path) -> float:
    """Return how long a copy takes until it is on the disk. It stays there: see `disk`."""
    target.mkdir()
    flush = ["sync", "--file-system", str(target)]
    subprocess.run(flush, check=True)

    def copy_and_flush() -> None:
        copy(target)
        subprocess.run(flush, check=True)

    return seconds(copy_and_flush)
