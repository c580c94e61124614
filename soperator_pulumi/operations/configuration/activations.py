"""Activation of sshd_config, and of files that need none because programs read them every time."""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.transport import Transport


@dataclass(frozen=True)
class Nothing:
    """Activation of files that programs read every time: none is needed."""

    def check(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Allow every change."""

    def allow(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Allow every change."""

    def activate(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Sshd:
    """Activation of sshd_config: sshd checks it, then restarts. Open sessions are separate processes."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]

    def check(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Check the file with sshd in a login pod, which has the keys and modules, before the file is in place."""
        pods = self.running() if old != new else []
        for pod in pods[:1]:
            text = new["sshd_config"].encode()
            script = f"head -c {len(text)} | /usr/sbin/sshd -t -f /dev/stdin"
            answer = self._transport(pod).run(["/bin/sh", "-c", script], stdin=text)
            if answer.returncode != 0:
                raise ConfigRefusedError(f"sshd refuses its configuration. Nothing was changed:\n{answer.message}")

    def allow(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Refuse nothing: open sessions stay."""

    def activate(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Make every sshd read the file."""
        for pod in self.running():
            # The oldest sshd process listens, and keeps its process id across a restart.
            answer = self._transport(pod).run(["pkill", "-HUP", "--oldest", "--exact", "sshd"])
            if answer.returncode != 0:
                raise NotReadyError(f"sshd in pod {pod.name} was not found, and has not read its new file. Run again.")

    def running(self) -> list[Pod]:
        """Return the login pods where sshd runs."""
        pods = find_pods(self.kube, self.namespace, {**self.selector, **layout.LOGIN_PODS})
        return [pod for pod in pods if not pod.going and pod.runs("sshd")]

    def _transport(self, pod: Pod) -> Transport:
        return self.kube.transport(self.namespace, pod.name, "sshd")
