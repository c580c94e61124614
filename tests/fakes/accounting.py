"""The small Kubernetes with slurmdbd, which reads its file from a mounted Secret as its container starts."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import TransportError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.configuration.slurmdbd import END, QUESTION
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.objects import NAMESPACE_PATH, PODS, STATEFUL_SETS
from tests.fakes.pods import a_pod, status_of
from tests.fakes.small_world import FakeTransport, SmallWorld

SECRET = "slurmdbd-config"
SECRET_PATH = f"{NAMESPACE_PATH}/secrets/{SECRET}"
POD = "accounting-0"
POD_PATH = f"{PODS}/{POD}"
DENIED = "error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.1' (using password: YES)"

Words = Callable[[Mapping[str, str]], str]


class AccountingWorld(SmallWorld):
    """A cluster with slurmdbd, once `add_slurmdbd` has been called."""

    def __init__(self) -> None:
        super().__init__()
        self.dies: Words = lambda _files: ""
        """Last words of slurmdbd about files with which it ends; empty for others."""
        self.complains: Words = lambda _files: ""
        """Words of slurmdbd about files with which it runs and does not answer; empty for others."""
        self.is_silent: Callable[[Mapping[str, str]], bool] = lambda _files: False
        """True for files with which slurmdbd neither answers nor complains."""
        self.pauses = False
        """True while the kubelet pauses before it starts a container again that has ended."""
        self.lost_signals = 0
        """Signals that never arrive, though the connection to the pod broke as if they had."""
        self.slurmdbd_runs_on: dict[str, str] | None = None
        """The files that slurmdbd read last; None while it does not run."""
        self.runs = 0
        self.run_logs: dict[str, str] = {}
        """By the id of a container's run."""
        self.init_words = ""
        """Log of a container before slurmdbd."""

    def add_slurmdbd(self, state: str = "running") -> Json:
        """Add slurmdbd's pod, whose container runs, is `creating`, `crashed` or `unschedulable`."""
        self.changes += 1
        body = a_pod(POD, "accounting", "slurmdbd", state, uid=str(self.changes))
        body["spec"]["volumes"] = [{"name": "config", "secret": {"secretName": SECRET, "defaultMode": 288}}]
        body["spec"]["containers"][0]["volumeMounts"] = [{"name": "config", "mountPath": f"/mounted/{SECRET}"}]
        self.objects[POD_PATH] = body
        self.objects[f"{STATEFUL_SETS}/accounting"] = {"metadata": {}}
        self.files[POD] = {SECRET: self.data(SECRET)}
        if state == "running":
            self._container_starts()
        return body

    @property
    def answers_questions(self) -> bool:
        files = self.slurmdbd_runs_on
        return files is not None and not self.complains(files) and not self.is_silent(files)

    def data(self, config_map: str) -> dict[str, str]:
        secret = self.objects.get(f"{NAMESPACE_PATH}/secrets/{config_map}")
        if secret is None:
            return dict(super().data(config_map))
        return {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        went = path == POD_PATH and path in self.objects
        super().delete(path, dependents_first=dependents_first)
        if went:
            self.slurmdbd_runs_on = None
            self.clock.after(2, self._pod_returns)

    def log(
        self,
        path: str,
        container: str,
        *,
        previous: bool = False,
        since_seconds: int | None = None,
        lines: int = 50,
    ) -> str:
        if path != POD_PATH:
            return super().log(path, container, previous=previous, since_seconds=since_seconds, lines=lines)
        if container != "slurmdbd":
            return self.init_words
        (status,) = self.objects[POD_PATH]["status"]["containerStatuses"]
        ended = status["lastState"].get("terminated", {}).get("containerID", "")
        return self.run_logs.get(ended if previous else status.get("containerID", ""), "")

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> FakeTransport:
        if container != "slurmdbd":
            return super().transport(namespace, pod, container, coreutils=coreutils)
        return _SlurmdbdTransport(self, pod, container)

    def signal_slurmdbd(self) -> Answer:
        """End slurmdbd, whose container the kubelet starts again a second later."""
        if self.lost_signals:
            self.lost_signals -= 1
            raise TransportError("the connection broke")
        self.slurmdbd_runs_on = None
        self._container_ended(0)
        if self.pauses:
            self.objects[POD_PATH]["status"]["containerStatuses"][0] |= {
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 0, "containerID": f"containerd://{self.runs}"}},
            }
            return Answer(0, "", "")
        uid = self.objects[POD_PATH]["metadata"]["uid"]
        self.clock.after(1, lambda: self._container_starts() if self._uid() == uid else None)
        return Answer(0, "", "")

    def _uid(self) -> str:
        return str(self.objects.get(POD_PATH, {"metadata": {"uid": ""}})["metadata"]["uid"])

    def _pod_returns(self) -> None:
        self.add_slurmdbd()

    def _container_starts(self) -> None:
        """slurmdbd reads the files in its pod, and ends when it cannot take them."""
        self.runs += 1
        run, files = f"containerd://{self.runs}", dict(self.files[POD][SECRET])
        body = self.objects[POD_PATH]
        before = (body["status"].get("containerStatuses") or [{}])[0]
        last = before.get("state", {}) if "terminated" in before.get("state", {}) else before.get("lastState", {})
        status = status_of("slurmdbd", "running", ready=True)
        status["containerStatuses"][0] |= {"containerID": run, "lastState": last}
        body["status"] = status
        self.slurmdbd_runs_on = files
        self.run_logs[run] = self.complains(files)
        if words := self.dies(files):
            self.run_logs[run] = words
            self.slurmdbd_runs_on = None
            self._container_ended(1)

    def _container_ended(self, code: int) -> None:
        status = self.objects[POD_PATH]["status"]["containerStatuses"][0]
        ended = {"terminated": {"exitCode": code, "containerID": status["containerID"]}}
        status["state"] = ended
        if code:
            status |= {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}


@dataclass
class _SlurmdbdTransport(FakeTransport):
    world: AccountingWorld

    def _answer(self, text: str, stdin: bytes) -> Answer:
        if text == " ".join(END):
            return self.world.signal_slurmdbd()
        if text == " ".join(QUESTION):
            found = self.world.answers_questions
            return Answer(0, "hpc\n", "") if found else Answer(1, "", "sacctmgr: error: Connection refused")
        return super()._answer(text, stdin)
