"""How changed files come to count: for files that are read each time, and for sshd."""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import ConfigRefusedError
from soperator_pulumi.lifecycle.kube import Kube
from soperator_pulumi.lifecycle.pods import Pod, find_pods


@dataclass(frozen=True)
class Nothing:
    """For files that are read each time."""

    def check(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Refuse nothing."""

    def activate(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Sshd:
    """For sshd_config: checked by sshd itself, then sshd starts anew. Open sessions are processes of their own."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]
    config_map: str

    def check(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Refuse nothing: sshd's own check is made in the pod, where the keys are."""

    def activate(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Check the file in the first login pod, then have every sshd read it."""
        pods = find_pods(self.kube, self.namespace, {**self.selector, "app.kubernetes.io/component": "login"})
        running = [pod for pod in pods if not pod.going and pod.runs("sshd")]
        for pod in running[:1]:
            directory = pod.sees(self.config_map, "sshd")
            self._run(pod, ["/usr/sbin/sshd", "-t", "-f", f"{directory}/sshd_config"])
        for pod in running:
            self._run(pod, ["pkill", "-HUP", "--parent", "1", "--exact", "sshd"])

    def _run(self, pod: Pod, command: list[str]) -> None:
        answer = self.kube.transport(self.namespace, pod.name, "sshd").run(command)
        if answer.returncode != 0:
            raise ConfigRefusedError(f"sshd in pod {self.namespace}/{pod.name} refused its file: {answer.words}")
