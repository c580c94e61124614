"""A Slurm cluster for tests: deployed with the program and an engine of the project, used over ssh."""

import copy
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from soperator_pulumi.cli.ssh import Login, write_config
from soperator_pulumi.kube.access import Access
from tests import left_behind, warm_python
from tests.cluster import root_trees
from tests.cluster.root_trees import RootTree
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import engine, images, paths, ssh
from tools.kube.debs import Tool, tool

SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
"""Resources of a pod in tests: several clusters share a machine of two cores."""

JAIL = root_trees.BOOKWORM
"""Tree of logins and jobs where they need a system: small, and another release than the daemons' images."""

SMALLEST_JAIL = root_trees.BUSYBOX
"""Tree of logins and jobs in most clusters of one test: populated at once. It has no bash."""

QUICK = {"SchedulerParameters": "batch_sched_delay=0,bf_interval=1"}
"""Parameters of Slurm with which a job starts when it can; by default it may wait for 3 s, or 30 s for another job."""


VERSION = os.environ.get("SLURM_VERSION", images.DEFAULT_SLURM)
"""Version of Slurm in test clusters. `make soak` runs the cluster tests with each."""


def bring_images(kubernetes: Kubernetes) -> None:
    """Bring to the cluster what the pods of test clusters are made of."""
    kubernetes.load_images(VERSION)
    if kubernetes.target.embedded:
        for tree in (JAIL, SMALLEST_JAIL):
            tree.bring_to(kubernetes.target.embedded)


NOWHERE = "127.0.0.1:1/soperator/none:none"
"""An image of a registry that is not there, which is known at once: no name server is asked."""


def unique(name: str) -> str:
    """Return a name for a cluster, and so for its namespace, that no other run uses at the same time."""
    return left_behind.record(f"{name}-{secrets.token_hex(3)}")


def a_cluster(**changes: object) -> dict[str, Any]:
    """Return the configuration of a small cluster with the given keys changed."""
    return {
        "name": "test",
        "slurm": {"constrain": "none", "extra": dict(QUICK)},
        "node_sets": [a_node_set("cpu", replicas=2)],
        "controller": {"pod_resources": SMALL},
        "login": {"pod_resources": SMALL},
        "users": [{"name": "alice", "uid": 2001, "shell": "/bin/sh"}],
        "jail": a_jail(),
        "storage": {"keep": False, "state": {"size_gib": 1}},
        "accounting": "none",
        "health": {"enabled": False},
        **copy.deepcopy(changes),
    }


def a_jail(tree: RootTree = SMALLEST_JAIL, **changes: object) -> dict[str, Any]:
    """Return the description of a small jail, with a copy of the tree."""
    resources = {"pod_resources": SMALL}
    return {"source": {"image": tree.reference}, "storage": {"size_gib": 1}, "populate": resources, **changes}


def a_node_set(name: str, **changes: object) -> dict[str, Any]:
    """Return a node set of small pods that tell Slurm to be larger than they are."""
    drain = {"timeout": "2m", "grace": "30s"}
    return {"name": name, "replicas": 1, "cpus": 2, "memory_gib": 1, "pod_resources": SMALL, "drain": drain, **changes}


@dataclass
class Slurm:
    """One stack of the program, and what its users and admins do with it."""

    kubernetes: Kubernetes
    folder: Path
    """For keys, ssh configuration and the engine's state."""
    cluster: dict[str, Any] = field(default_factory=a_cluster)
    """The configuration that the next `up` deploys."""
    platform: dict[str, Any] = field(default_factory=dict)
    """The platform of the stack, where it has one."""
    _door: "subprocess.Popen[str] | None" = field(default=None, init=False, repr=False)
    _door_port: str = field(default="", init=False, repr=False)

    @property
    def namespace(self) -> str:
        return str(self.cluster.get("namespace", self.cluster["name"]))

    def for_this_run(self, policy: str) -> dict[str, str]:
        """Return the variable with keys of `drain` that count for one run."""
        return {"SOPERATOR_DRAIN": f"{self.cluster['name']}: {policy}"}

    @property
    def api(self) -> Any:  # the client's models say that every field may be None
        """The core API, for a person's deeds behind Pulumi's back."""
        return self.kubernetes.core

    def deployer(self, environment: Mapping[str, str] | None = None, *, warm: bool = True) -> engine.Deployer:
        """Return an engine for the stack as it is described now, the CLI where it is on PATH.

        Args:
            environment: Variables for this one run, besides those that lead to the cluster.
            warm: Whether the local engine forks from `warm_python`, or starts the project's own interpreter.
        """
        variables = {**self._environment, **(environment or {})}
        deployer, _ = engine.choose(
            paths.ROOT,
            "test",
            self._state,
            config=self.config,
            environment=variables,
            python=warm_python.executable() if warm else None,
        )
        return deployer

    def start_up(self, environment: Mapping[str, str] | None = None, *, operation: str = "up") -> subprocess.Popen[str]:
        """Begin `up`, or another operation, in a process group of its own, for those who want to kill or time it."""
        variables = {**self._environment, **(environment or {})}
        given = {"state": str(self._state), "config": self.config, "environment": variables, "operation": operation}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.run", json.dumps(given)],
            cwd=paths.ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def up(self, environment: Mapping[str, str] | None = None) -> engine.Result:
        """Deploy, and write what ssh needs."""
        deployer = self.deployer(environment)
        result = deployer.up()
        self.write_ssh_configs(deployer.outputs())
        return result

    def write_ssh_configs(self, outputs: dict[str, Any]) -> None:
        access = Access(str(self.kubernetes.kubeconfig))
        for user in self.cluster["users"]:
            identity = self._identity(user["name"])
            login = Login(self.namespace, ssh.HOST, user["name"], outputs["login_host_key"], identity)
            write_config(self.ssh_config(user["name"]), access, login)

    def ssh(
        self,
        command: str,
        *,
        user: str = "alice",
        timeout_seconds: float = 180,
        check: bool = True,
        stdin: str = "",
        options: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login node as a user. A failure fails the test with what was printed."""
        done = subprocess.run(
            [self._ssh.path, "-F", self.ssh_config(user), *options, *self._by_door(), ssh.HOST, command],
            env={**os.environ, **self._ssh.environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"{command!r} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    @contextmanager
    def ssh_session(
        self, command: str, *, user: str = "alice", options: Sequence[str] = ()
    ) -> Iterator[subprocess.Popen[str]]:
        """Hold a session open while something else happens. Options of ssh come before those of the test's own."""
        with subprocess.Popen(
            [self._ssh.path, "-F", self.ssh_config(user), *options, *self._by_door(), ssh.HOST, command],
            env={**os.environ, **self._ssh.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as session:
            try:
                yield session
            finally:
                session.kill()

    def by_way_of(self, pod: str) -> list[str]:
        """Return options with which ssh goes to one login pod, not to any of them."""
        proxy = ["env", f"PYTHONPATH={paths.ROOT}", sys.executable, "-m", "tests.cluster.ssh_to_pod", pod]
        kubeconfig = ["--kubeconfig", str(self.kubernetes.kubeconfig), "--namespace", self.namespace]
        return ["-o", f"ProxyCommand={shlex.join([*proxy, *kubeconfig])}"]

    def scontrol(self, *arguments: str) -> str:
        """Run scontrol as an admin, in the controller's pod."""
        return self.kubernetes.ask(self.namespace, "controller-0", "slurmctld", "scontrol", *arguments)

    def exec(self, pod: str, container: str, *command: str) -> str:
        """Run a command in a pod and return what it printed. A failure fails the test."""
        return self.kubernetes.exec(self.namespace, pod, container, *command)

    def active_tree(self) -> str:
        """Return the name of the root tree that new jobs and logins enter."""
        return self.exec("cpu-0", "slurmd", "readlink", "/jail/active").strip().removeprefix("trees/")

    def submit(self, command: str, *, user: str = "alice", options: str = "") -> int:
        """Submit a batch job and return its id."""
        answer = self.ssh(f"sbatch --parsable {options} --wrap '{command}'", user=user).stdout
        return int(answer.strip())

    def job(self, job_id: int) -> dict[str, str]:
        """Return what `scontrol show job` says of a job, by its words."""
        words = self.scontrol("show", "job", str(job_id), "--oneliner").split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def jobs(self) -> list[dict[str, str]]:
        """Return what `scontrol show job` says of all jobs, by its words."""
        lines = self.scontrol("show", "job", "--oneliner").splitlines()
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]

    def wait_for_the_admin_shell(self) -> None:
        """Wait until the admin shell's pod is that of the cluster as it was described last, and is ready."""
        self.kubernetes.run("rollout", "status", "statefulset/admin", "-n", self.namespace, "--timeout=110s")

    def wait_for_job(self, job_id: int, state: str, *, timeout_seconds: float = 240) -> dict[str, str]:
        """Wait until a job is in a state, and return what Slurm reports of it."""
        wait_until(
            lambda: self.job(job_id)["JobState"] == state,
            what=f"job {job_id} is {state}",
            timeout_seconds=timeout_seconds,
            seen=lambda: self.scontrol("show", "job") + self.scontrol("show", "node"),
        )
        return self.job(job_id)

    def daemon(self, node: str) -> str:
        """Return the process of a node's slurmd: the oldest of that name, as slurmd forks for steps and epilogs."""
        return self.exec(node, "slurmd", "pgrep", "-o", "-x", "slurmd")

    def node_state(self, node: str) -> str:
        """Return a node's state with its flags, as `sinfo` writes it in full."""
        words = self.scontrol("show", "node", node, "--oneliner").split()
        return dict(word.split("=", 1) for word in words if "=" in word)["State"]

    def destroy(self) -> None:
        """Take away what `up` has made, with its namespace, whatever state a test has left it in; wait for nothing.

        The engine's own destroy, which waits for jobs and pods, has tests of its own. What is in a namespace that
        someone else made goes with it.
        """
        if self._door:
            self._door.communicate()
            self._door = None
        if self.cluster.get("create_namespace", True):
            self.kubernetes.throw_away(self.namespace)
        shutil.rmtree(self._state, ignore_errors=True)

    def _by_door(self) -> list[str]:
        """Return options with which ssh goes through a process that stays, not through one of its own."""
        if not self._door:
            target = self.kubernetes.target
            words = ["-m", "tests.cluster.ssh_door", str(target.kubeconfig), self.namespace, target.context or ""]
            self._door = subprocess.Popen(
                [sys.executable, *words], cwd=paths.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert self._door.stdout
            self._door_port = self._door.stdout.readline().strip()
        return ["-o", "ProxyCommand=none", "-o", "HostName=127.0.0.1", "-o", f"Port={self._door_port}"]

    @property
    def _ssh(self) -> Tool:
        return tool("ssh")

    @property
    def _state(self) -> Path:
        return self.folder / "engine"

    @property
    def _environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubernetes.kubeconfig)}

    @property
    def config(self) -> dict[str, Any]:
        platform = {"soperator:platform": self.platform} if self.platform else {}
        return {"soperator:defaults": {}, **platform, "soperator:cluster": self._completed()}

    def _completed(self) -> dict[str, Any]:
        users = [
            {**user, "ssh_keys": [*user.get("ssh_keys", []), self._public_key(user["name"])]}
            for user in self.cluster.get("users", [])
        ]
        slurm = {"version": VERSION, **self.cluster.get("slurm", {})}
        ours = images.references(slurm=images.version_of({"slurm": slurm}))
        return {"images": ours, **self.cluster, "slurm": slurm, "users": users}

    def _public_key(self, user: str) -> str:
        return self._identity(user).with_suffix(".pub").read_text().strip()

    def _identity(self, user: str) -> Path:
        file = self.folder / f"id_{user}"
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            key = Ed25519PrivateKey.generate()
            file.touch(mode=0o600)
            file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
            public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
            file.with_suffix(".pub").write_bytes(public)
        return file

    def ssh_config(self, user: str) -> Path:
        """Return the file to give to ssh, scp, sftp and rsync with `-F`."""
        return self.folder / f"ssh_config_{user}"


SomeSlurm = TypeVar("SomeSlurm", bound=Slurm)


@contextmanager
def deployed(slurm: SomeSlurm) -> Iterator[SomeSlurm]:
    """Deploy a cluster, and destroy it at the end, also if it did not come up."""
    try:
        slurm.up()
        yield slurm
    finally:
        slurm.destroy()
