"""Trees made for tests, their visible content, and the tested command in a process of its own."""

import json
import os
import stat
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from jail_tools.probing import storage_probe
from jail_tools.probing.findings import StorageReport
from jail_tools.probing.mounted import claim_mount

NAME = "0123456789ab"
PACKAGE = Path(__file__).parent.parent
CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")  # cap_net_raw=ep, as ping has it
HOLE_BYTES = 1024 * 1024

names = st.binary(min_size=1, max_size=20).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in {b".", b".."}
)
modes = st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o000, 0o4755, 0o2755, 0o1777, 0o6711])
owners = st.sampled_from([0, 1, 1000, 64030, 2**31])
times = st.integers(min_value=1, max_value=2**33 * 10**9)  # ext4 reaches to 2446
contents = st.one_of(
    st.just(b""),
    st.binary(max_size=300),
    st.builds(lambda data, times: data * times, st.binary(min_size=1, max_size=7), st.sampled_from([10_000, 300_000])),
)
attributes = st.dictionaries(st.sampled_from(["user.a", "user.b", "trusted.c"]), st.binary(max_size=30), max_size=2)

things = st.one_of(
    st.fixed_dictionaries({"kind": st.just("file"), "content": contents, "xattrs": attributes}),
    st.fixed_dictionaries({"kind": st.just("sparse"), "content": contents, "at": st.integers(0, 3)}),
    st.fixed_dictionaries({"kind": st.just("symlink"), "target": names}),
    st.fixed_dictionaries({"kind": st.just("fifo")}),
    st.fixed_dictionaries({"kind": st.just("link"), "of": st.integers(0, 100)}),
    st.fixed_dictionaries({"kind": st.just("folder"), "xattrs": attributes}),
)
plans = st.lists(st.tuples(st.integers(0, 100), names, things, modes, owners, times), max_size=12)
"""Items of a random tree: every item is in an earlier folder, with a name, mode, owner and time."""


def probed(jail: Path) -> None:
    """Make a claim whose storage was probed before, so that `populate` reports what fails there later."""
    (jail / storage_probe.RECORD.parent).mkdir(mode=0o700)
    (jail / storage_probe.RECORD).write_text(StorageReport(claim_mount(jail.resolve()).filesystem, ()).as_json({}))


def build(root: Path, plan: Sequence[tuple[int, bytes, dict[str, Any], int, int, int]]) -> None:
    """Build a planned tree. An item whose name is taken is left out, and so is a hard link to nothing."""
    folders = [os.fsencode(root)]
    files: list[bytes] = []
    finished: list[tuple[bytes, int, int, int]] = []
    for where, name, thing, mode, owner, time in plan:
        path = folders[where % len(folders)] + b"/" + name
        if os.path.lexists(path) or (thing["kind"] == "link" and not files):
            continue
        make(path, thing, files)
        for attribute, value in thing.get("xattrs", {}).items():
            os.setxattr(path, attribute, value)
        if thing["kind"] == "folder":
            folders.append(path)
        elif thing["kind"] != "link":
            files.append(path)
        finished.append((path, mode, owner, time))
    for path, mode, owner, time in reversed(finished):
        os.chown(path, owner, owner, follow_symlinks=False)
        if not Path(os.fsdecode(path)).is_symlink():
            Path(os.fsdecode(path)).chmod(mode)
        os.utime(path, ns=(time, time), follow_symlinks=False)


def make(path: bytes, thing: dict[str, Any], files: Sequence[bytes]) -> None:
    """Make one thing, without its attributes."""
    match thing["kind"]:
        case "file":
            Path(os.fsdecode(path)).write_bytes(thing["content"])
        case "sparse":
            with Path(os.fsdecode(path)).open("wb") as file:
                file.seek(thing["at"] * HOLE_BYTES)
                file.write(thing["content"])
                file.truncate((thing["at"] + 2) * HOLE_BYTES)
        case "symlink":
            os.symlink(thing["target"], path)  # noqa: PTH211 - the target stays as it is, `./a//b` too
        case "fifo":
            os.mkfifo(path)
        case "link":
            os.link(files[thing["of"] % len(files)], path, follow_symlinks=False)
        case "folder":
            Path(os.fsdecode(path)).mkdir()


def seen(root: Path) -> dict[str, tuple[object, ...]]:
    """Return everything visible in a folder. Hard links are given as names that belong together."""
    found: dict[str, tuple[object, ...]] = {}
    linked: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for where, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = f"{where}/{name}"
            relative = os.path.relpath(path, root)
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            content: object = None
            if kind == stat.S_IFREG:
                content = Path(path).read_bytes()
            elif kind == stat.S_IFLNK:
                content = os.readlink(path)  # noqa: PTH115 - as it is
            xattrs = {
                name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)
            }
            found[relative] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, content, xattrs)
            if kind != stat.S_IFDIR:
                linked[status.st_dev, status.st_ino].append(relative)
    for together in linked.values():
        for name in together:
            found[name] += (sorted(together),)
    return found


PROGRAM = f"""
import sys
sys.path.insert(0, {str(PACKAGE)!r})
from jail_tools.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of the package, in this Python."""
    return [sys.executable, "-I", "-c", PROGRAM, *map(str, arguments)]


def populate(jail: Path, *source: str | Path, tree: str = NAME) -> list[str]:
    """Return the command line that fills a tree."""
    return command("populate", "--jail", jail, "--tree", tree, "--source", "test:source", *source)


def run(arguments: list[str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with `variables` in addition to the environment."""
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(
        arguments, capture_output=True, text=True, errors="surrogateescape", check=False, env=environment
    )


def small_source(folder: Path) -> Path:
    """Make a tree of one file, to fill from."""
    (folder / "source/etc").mkdir(parents=True)
    (folder / "source/etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    return folder / "source"


def fill(
    claim: Path, source: Path, *more: str, tree: str = NAME, variables: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Fill a tree from a folder; return the exit status, the output, and the errors."""
    done = run([*populate(claim, "--root", source, tree=tree), *more], variables)
    return done.returncode, done.stdout, done.stderr


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """Return the numbers of a successful populate."""
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def manifest(jail: Path, tree: str = NAME) -> Path:
    """A tree's manifest."""
    return jail / "meta" / tree / "manifest.jsonl"


def is_complete(jail: Path, tree: str = NAME) -> bool:
    """Return True if a tree is marked complete."""
    return (jail / "meta" / tree / "complete.json").exists()
