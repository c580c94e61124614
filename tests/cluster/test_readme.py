"""The README, typed as it stands by somebody whose machine has no cluster, in a network of its own."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import paths
from tools.console import say

pytestmark = pytest.mark.cluster

README = (paths.ROOT / "README.md").read_text()
TIMEOUT_SECONDS = 540

# /sys shows the network of whoever mounted it; the machine's cgroups stay.
OWN_NETWORK = (
    "mount --rbind /sys/fs/cgroup /mnt && mount -t sysfs sysfs /sys && mount --rbind /mnt /sys/fs/cgroup && "
    "umount -l /mnt && ip link set lo up"
)


def shell_blocks(heading: str) -> str:
    """Return the shell commands under a heading, in their order."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))


@pytest.fixture
def a_home() -> Iterator[Path]:
    """A state folder of its own. Sockets are in it, so its path must be short."""
    folder = Path(tempfile.mkdtemp(prefix="s-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


def on_a_machine_of_its_own(commands: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as one bash session, with no network but loopback and no cluster."""
    script = f"{OWN_NETWORK}; cd {paths.ROOT}; set -eux; {commands}"
    environment = {key: value for key, value in os.environ.items() if key not in {"KUBECONFIG", "CONTEXT"}}
    return subprocess.run(
        ["unshare", "--net", "--mount", "bash", "-c", script],
        env={**environment, "XDG_STATE_HOME": str(home), "XDG_CACHE_HOME": str(paths.cache_dir().parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.usefixtures("built_images")
def test_the_quick_start_does_what_it_says(a_home: Path) -> None:
    """The commands as they stand, from nothing to nothing."""
    done = on_a_machine_of_its_own(shell_blocks("Quick start"), a_home)

    say(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    assert set(done.stdout.split()) >= {"cpu-0", "cpu-1", "controller-0", "login-0", "Running"}
    assert list((a_home / "soperator-pulumi").rglob("*.pid")) == []


@pytest.mark.usefixtures("built_images")
def test_the_commands_of_the_next_day_work(a_home: Path) -> None:
    pages = [(paths.ROOT / "docs" / f"{name}.md").read_text() for name in ("operations", "jail")]
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", "".join(pages), re.DOTALL))

    done = on_a_machine_of_its_own(f"make up\n{commands}\nmake down", a_home)

    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.usefixtures("built_images")
def test_make_commands_keep_the_face_that_they_promise(a_home: Path) -> None:
    """Exit codes, quiet second runs, and what is said when there is nothing to talk to."""
    done = on_a_machine_of_its_own(
        """
        set +e
        make ssh CMD=true; echo "before: $?"
        set -e
        make up
        config=$(ls $XDG_STATE_HOME/*/engine/embedded/ssh_config)
        set +e
        ssh -F $config slurm 'exit 7'; echo "ssh: $?"
        make ssh CMD='exit 7'; echo "make: $?"
        make ssh CMD='echo "$HOME" '"'a  b'"; echo "quoted: $?"
        cp $XDG_STATE_HOME/*/kube/kubeconfigs/admin $XDG_STATE_HOME/somebodys
        KUBECONFIG=$XDG_STATE_HOME/somebodys make up; echo "foreign: $?"
        KUBECONFIG=$XDG_STATE_HOME/none make up; echo "none: $?"
        make up STACK=nowhere; echo "stack: $?"
        set -e
        make up
        make down
        make down
        """,
        a_home,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    assert "There is no cluster to log in to. Start one: make up" in done.stderr
    assert "ssh: 7" in done.stdout
    assert "Error 7" in done.stderr
    assert "/home/demo a  b" in done.stdout
    assert "stacks/Pulumi.local.yaml names no images" in done.stderr
    assert "none can't be read" in done.stderr
    assert 'There is no stack "nowhere" (stacks/Pulumi.nowhere.yaml). There are: local.' in done.stderr
    assert re.search(r" s +\d+ unchanged; ", done.stderr)
    assert "Traceback" not in done.stderr
