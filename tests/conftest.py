"""Fixtures of every tier: the Kubernetes that tests run on."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from soperator_pulumi.operations.access import Access
from soperator_pulumi.operations.kube_api import Cluster
from soperator_pulumi.operations.kubeconfig import client_settings
from tests import failures_at_once, left_behind, time_spent
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
        answer = transport.run(command, timeout_seconds=_EXEC_SECONDS)
        words = f"{' '.join(command)} in {pod} gave {answer.returncode}:\n{answer.stdout}\n{answer.stderr}"
        assert answer.returncode == 0, words
        return answer.stdout

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


def pytest_configure(config: pytest.Config) -> None:
    """Print failures when they come, and in the end where the time went."""
    failures_at_once.register(config)
    time_spent.register(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with modules whose tests are given more time than others, or one process works on alone in the end."""

    def given_seconds(item: pytest.Item) -> float:
        marker = item.get_closest_marker("timeout")
        return float(marker.args[0]) if marker and marker.args else 0.0

    items.sort(key=given_seconds, reverse=True)


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
