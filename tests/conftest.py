"""Fixtures of every tier: the Kubernetes that tests run on."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.exec_transport import ExecTransport
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.kubeconfig import client_settings
from soperator_pulumi.slurm.transport import Answer
from tests import failures_at_once, left_behind, time_spent, together
from tests.pod_shell import PodShell
from tools import chosen_cluster, images
from tools.chosen_cluster import ChosenCluster
from tools.kube import binaries

_EXEC_SECONDS = 120


@dataclass(frozen=True)
class Kubernetes:
    """The cluster that tests run on: the embedded one, or that of `KUBECONFIG` or `CONTEXT`."""

    target: ChosenCluster
    kubectl: Path
    api: client.ApiClient

    _shells: dict[tuple[str, str, str], PodShell] = field(default_factory=dict, init=False, compare=False)

    @property
    def kubeconfig(self) -> Path:
        return self.target.kubeconfig

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api)

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster(Access(str(self.kubeconfig), self.target.context))

    def exec(self, namespace: str, pod: str, container: str, *command: str) -> str:
        """Run a command in a pod and return its standard output; fail the test when it fails.

        Tests do it all the time while they wait, and kubectl would take a tenth of a second of the processor to start.
        """
        transport = self._cluster.transport(namespace, pod, container, coreutils=False)
        return _output(pod, command, transport.run(command, timeout_seconds=_EXEC_SECONDS))

    def ask(self, namespace: str, pod: str, container: str, *command: str) -> str:
        """Run a command as `exec` does, by a shell that stays in the container: for what is asked all the time."""
        where = (namespace, pod, container)
        if where not in self._shells:
            transport = ExecTransport(self._cluster._configuration, *where, coreutils=False)
            self._shells[where] = PodShell(transport)
        return _output(pod, command, self._shells[where].run(command, timeout_seconds=_EXEC_SECONDS))

    def close(self) -> None:
        """End the shells that stay in containers."""
        for shell in self._shells.values():
            shell.close()

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return its standard output; a failure fails the test with what was printed."""
        context = ["--context", self.target.context] if self.target.context else []
        done = subprocess.run(
            [self.kubectl, "--kubeconfig", self.kubeconfig, *context, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_EXEC_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(arguments)} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def throw_away(self, namespace: str) -> None:
        """Delete a namespace and kill what runs in it, and wait for nothing."""
        try:
            self.core.delete_namespace(namespace)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        # No new pods come in a namespace that is being deleted.
        self.core.delete_collection_namespaced_pod(namespace, grace_period_seconds=0)

    def load_images(self, slurm: str = images.DEFAULT_SLURM) -> None:
        """Bring our images with a version of Slurm to the embedded cluster; any other pulls them from a registry."""
        if self.target.embedded:
            images.build(slurm=slurm)
            images.load(self.target.embedded, slurm=slurm)


def _output(pod: str, command: Sequence[str], answer: Answer) -> str:
    words = f"{' '.join(command)} in {pod} gave {answer.returncode}:\n{answer.stdout}\n{answer.stderr}"
    assert answer.returncode == 0, words
    return answer.stdout


def pytest_configure(config: pytest.Config) -> None:
    """Run tests that share a cluster together, print failures when they come, and in the end where the time went."""
    together.register(config)
    failures_at_once.register(config)
    time_spent.register(config)


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Kubernetes]:
    """The chosen cluster. The embedded one is started, rid of what killed runs left, and left up."""
    chosen = chosen_cluster.choose()
    if chosen.embedded:
        chosen.embedded.up()
    binaries.build(binaries.KUBERNETES)
    settings = client_settings(Access(str(chosen.kubeconfig), chosen.context))
    with client.ApiClient(settings) as api:
        made = Kubernetes(chosen, binaries.KUBERNETES.installed / "kubectl", api)
        if chosen.embedded:
            for namespace in left_behind.by_killed_runs():
                made.throw_away(namespace)
        yield made
        made.close()
