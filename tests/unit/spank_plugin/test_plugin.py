"""The plugin's C tests, its fuzzers and its static analysis: built with the machine's compiler and run as root."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.soak import times
from tests.unit.spank_plugin.compiler import Toolchain, toolchain
from tools import locks
from tools.paths import ROOT, cache_dir

SOURCES = ROOT / "spank-plugin"
PROGRAMS = sorted(path.stem for path in (SOURCES / "tests").glob("test_*.c"))
FUZZERS = sorted(path.stem for path in (SOURCES / "tests").glob("fuzz_*.c"))
FUZZ_SECONDS = times(1, 60)
BUILD_SECONDS = 300
RUN_SECONDS = 120


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    return toolchain()


@pytest.fixture(scope="session")
def made(tools: Toolchain) -> Path:
    return make(tools, "all", "tests")


def make(tools: Toolchain, *targets: str) -> Path:
    """Make what has changed since the last run, and return the folder: the cache has one for a checkout and targets."""
    key = repr((str(SOURCES), tools.variables, targets)).encode()
    build = cache_dir() / "spank-plugin-tests" / hashlib.sha256(key).hexdigest()[:16]
    with locks.held(build.with_suffix(".lock"), "making the plugin", wait_seconds=BUILD_SECONDS):
        done = subprocess.run(
            [tools.make, "--silent", "--jobs=4", f"BUILD={build}", *tools.variables, *targets],
            cwd=SOURCES,
            env={**os.environ, **tools.environment},
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if done.returncode:  # an object may be half of one, where the compiler was killed
            shutil.rmtree(build, ignore_errors=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return build


def run(program: Path, *arguments: str) -> str:
    assert os.geteuid() == 0, "the plugin's tests make namespaces and mounts: run them as root"
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert "/" in mounts, "the plugin's tests make mounts private: run them where / is a mount point, not in a chroot"
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, errors="replace", timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, f"{program.name} {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_plugins_logic_holds_under_the_sanitizers(made: Path, program: str) -> None:
    assert "ok " in run(made / "tests" / program)


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_no_line_breaks_a_parser(made: Path, fuzzer: str) -> None:
    seed = str(int.from_bytes(os.urandom(3)))
    assert f"seed {seed}" in run(made / "tests" / fuzzer, str(FUZZ_SECONDS), seed)


def test_the_compiler_finds_nothing_in_the_sources(tools: Toolchain) -> None:
    make(tools, "analyse")


def test_the_plugin_has_the_hooks_that_slurm_looks_for(made: Path) -> None:
    plugin = (made / "spank_jail.so").read_bytes()
    hooks = (
        "init",
        "init_post_opt",
        "local_user_init",
        "user_init",
        "task_init_privileged",
        "task_init",
        "task_post_fork",
        "task_exit",
        "job_epilog",
    )
    for hook in (*hooks, "exit"):
        assert f"\0slurm_spank_{hook}\0".encode() in plugin


def test_jail_login_says_how_it_is_used(made: Path) -> None:
    for arguments, says in (
        ([], "usage: jail-login"),
        (["jail=/jail", "--"], "usage: jail-login"),
        (["bind=/home", "--", "true"], "jail-login: configuration: jail=PATH is missing"),
    ):
        done = subprocess.run([made / "jail-login", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 64
        assert says in done.stderr
