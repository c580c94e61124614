"""The README, typed as it stands by someone whose machine has no cluster, in a network of its own."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.other_pythons import CACHE, OtherPython
from tools import paths
from tools.console import say

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

README = (paths.ROOT / "README.md").read_text()
TIMEOUT_SECONDS = 1200
PATCH = """--type merge --patch '{"spec": {"maxUnavailable": 1}}'"""
"""A change by hand."""

# /sys shows the network of whoever mounted it; the machine's cgroups stay. A kubelet removes the sockets of another one
# in /var/lib/kubelet, a folder that cannot be chosen.
OWN_MACHINE = (
    "mount --rbind /sys/fs/cgroup /mnt && mount -t sysfs sysfs /sys && mount --rbind /mnt /sys/fs/cgroup && "
    "umount -l /mnt && mkdir -p $XDG_STATE_HOME/.upper $XDG_STATE_HOME/.work && "
    """.venv/bin/python -c 'from tools.kube.debs import tool; tool("ip").run("link", "set", "lo", "up")' && """
    "mount -t overlay overlay /var/lib "
    "-o lowerdir=/var/lib,upperdir=$XDG_STATE_HOME/.upper,workdir=$XDG_STATE_HOME/.work"
)

# Another text gives another image. The packages of programs come now, as there is no network later.
BUILD_THERE = """
date '+# %s' >> images/worker/scripts/gpus.sh
make images
.venv/bin/python -c 'from tools.kube.debs import unpacked; unpacked()'
exec "$@"
"""


def shell_blocks(heading: str) -> str:
    """Return the shell commands under a heading, in their order."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))


def a_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a state folder for one machine. Sockets are in it, so its path must be short."""
    return tempfile.TemporaryDirectory(prefix="s-", dir="/tmp")


def typed(commands: str) -> tuple[str, ...]:
    """Return a command that runs others as one bash session, with no network but loopback and no cluster."""
    script = f"{OWN_MACHINE}; set -eux; trap '[ $? = 0 ] || make down' EXIT; {commands}"
    return ("unshare", "--net", "--mount", "bash", "-c", script)


def on_a_machine_of_its_own(commands: str, home: str) -> subprocess.CompletedProcess[str]:
    """Run commands on a machine like this one. Temporary files are in `home`."""
    temporary = Path(home, "tmp")
    temporary.mkdir()
    environment = {key: value for key, value in os.environ.items() if key not in {"KUBECONFIG", "CONTEXT"}}
    return subprocess.run(
        typed(commands),
        cwd=paths.ROOT,
        env={
            **environment,
            "XDG_STATE_HOME": home,
            "XDG_CACHE_HOME": str(paths.cache_dir().parent),
            "TMPDIR": str(temporary),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.usefixtures("built_images")
def test_the_quick_start_does_what_it_says() -> None:
    """The commands as they stand, from nothing to nothing."""
    with a_folder() as home:
        done = on_a_machine_of_its_own(shell_blocks("Quick start"), home)

        say(done.stderr)
        assert done.returncode == 0, done.stderr[-4000:]
        assert set(done.stdout.split()) >= {"cpu-0", "cpu-1", "controller-0", "login-0", "Running"}
        assert list(Path(home, "soperator-pulumi").rglob("*.pid")) == []
        assert list(Path(home, "tmp").iterdir()) == []


@pytest.mark.soak
@pytest.mark.usefixtures("built_images")
def test_the_quick_start_does_what_it_says_on_debian_13() -> None:
    """It has the servers and images of this machine but one image, and programs of its own packages."""
    with a_folder() as home:
        there = Path("/", Path(home).name)  # named as no other state folder is: so are its cgroups, which all share
        code = OtherPython("3.13").run(
            *("bash", "-ec", BUILD_THERE, "bash"),
            *typed(f"exec > {there}/said; {shell_blocks('Quick start')}"),
            timeout_seconds=TIMEOUT_SECONDS,
            mounted={CACHE / paths.cache_dir().name: paths.cache_dir(), there: Path(home)},
            HOME="/root",
            XDG_STATE_HOME=str(there),
        )
        assert code == 0
        said = Path(home, "said").read_text()
        assert set(said.split()) >= {"cpu-0", "cpu-1", "controller-0", "login-0", "Running"}
        assert list(Path(home, paths.cache_dir().name).rglob("*.pid")) == []


@pytest.fixture(scope="module")
def a_day(built_images: None) -> Iterator["subprocess.CompletedProcess[str]"]:
    """Other commands of the pages on one machine, those that go wrong or are repeated."""
    pages = [(paths.ROOT / "docs" / f"{name}.md").read_text() for name in ("operations", "jail")]
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", "".join(pages), re.DOTALL))
    with a_folder() as home:
        yield on_a_machine_of_its_own(
            f"""
            set +e
            make ssh CMD=true; echo "before: $?"
            make preview; echo "nothing to preview: $?"
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
            make preview
            make -s review POLICY=policy
            make drift; echo "no drift: $?"
            set +e
            (eval "$(make -s env)" && kubectl --namespace slurm patch poddisruptionbudget cpu {PATCH})
            make drift; echo "drift: $?"
            set -e
            make refresh
            PULUMI_K8S_ENABLE_PATCH_FORCE=true make up
            (
            {commands}
            )
            echo "pages: $?"
            make down
            make down
            """,
            home,
        )


@pytest.mark.soak
def test_the_commands_of_the_next_day_work(a_day: "subprocess.CompletedProcess[str]") -> None:
    assert "pages: 0" in a_day.stdout, a_day.stderr[-4000:]


@pytest.mark.soak
def test_a_review_is_markdown_on_standard_output(a_day: "subprocess.CompletedProcess[str]") -> None:
    assert "<!-- soperator-pulumi review of local -->\n\n## Preview of `local`: no change\n" in a_day.stdout


@pytest.mark.soak
def test_a_change_by_hand_is_listed_and_fails_until_it_is_reverted(a_day: "subprocess.CompletedProcess[str]") -> None:
    assert "no drift: 0" in a_day.stdout
    assert "update kubernetes:policy/v1:PodDisruptionBudget slurm-cpu-disruption: spec.maxUnavailable\n" in a_day.stdout
    assert "drift: 2" in a_day.stdout
    assert "1 resource differs from the program of stack local." in a_day.stderr


@pytest.mark.soak
def test_make_commands_keep_the_face_that_they_promise(a_day: "subprocess.CompletedProcess[str]") -> None:
    """Exit codes, quiet second runs, and what is said when there is nothing to talk to."""
    assert a_day.returncode == 0, a_day.stderr[-4000:]
    assert "There is no cluster to log in to. Start one: make up" in a_day.stderr
    assert "There is no cluster to look at. Start one: make up" in a_day.stderr
    assert "ssh: 7" in a_day.stdout
    assert "Error 7" in a_day.stderr
    assert "/home/demo a  b" in a_day.stdout
    assert "stacks/Pulumi.local.yaml names no images" in a_day.stderr
    assert "none can't be read" in a_day.stderr
    assert 'There is no stack "nowhere" (stacks/Pulumi.nowhere.yaml). Choose one of: dev, local, prod,' in a_day.stderr
    assert re.search(r" s +\d+ unchanged; ", a_day.stderr)
    assert "Traceback" not in a_day.stderr
