"""The small Kubernetes with a controller of Jobs, and the jail's programs in their pods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from soperator_pulumi.kube.verbs import FIELD_MANAGER, Json
from tests.fakes.objects import CONFIG_MAPS, JOBS, NAMESPACE, PODS, SELECTOR
from tests.fakes.pods import a_pod
from tests.fakes.small_world import SmallWorld

OLD, NEW = "0123456789ab", "ba9876543210"
REFUSED = 78
MAKER = "pulumi-kubernetes-1a2b3c4d"
"""The manager of Jobs that Pulumi has made."""
TEMPLATE: Json = {
    "metadata": {"labels": {"app.kubernetes.io/component": "jail-switch"}},
    "spec": {
        "containers": [
            {
                "name": "jail",
                "image": "tools",
                "command": ["tools"],
                "volumeMounts": [{"name": "jail", "mountPath": "/jail"}],
            }
        ],
        "volumes": [{"name": "jail", "persistentVolumeClaim": {"claimName": "jail"}}],
    },
}

JOB = f"jail-populate-{NEW}"
NO_IMAGE = {
    "phase": "Pending",
    "containerStatuses": [{"name": "jail", "state": {"waiting": {"reason": "ErrImagePull", "message": "none"}}}],
}
LIVE_JOBS = f"{CONFIG_MAPS}/jail-live-jobs"


@dataclass
class Run:
    """A program's run in a Job's pod."""

    code: int = 0
    log: str = ""
    message: str = ""
    seconds: float = 2.0


Program = Callable[[list[str]], Run]


def a_tree(tree: str, source: str, *, active: bool = False) -> Json:
    return {"tree": tree, "source": source, "populated": "2026-11-21", "active": active, "files": 1, "bytes": 1}


class JailWorld(SmallWorld):
    """A cluster with a jail: slurmctld, one login pod, the tree OLD active and NEW next to it."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[str, Program] = {"switch": self._switch, "collect": lambda _args: Run(0, "{}")}
        """By the first argument of a Job's container."""
        self.ran: list[list[str]] = []
        """The arguments of all programs that pods have run."""
        self.trees = [a_tree(OLD, "debian:12", active=True), a_tree(NEW, "debian:13")]
        self.entered[""] = f"{OLD}\n"
        self.add_pod("controller-0", "controller")
        self.add_pod("login-0", "login")

    @property
    def active(self) -> str:
        return next((tree["tree"] for tree in self.trees if tree["active"]), "")

    def jobs_of(self, what: str = "") -> list[Json]:
        return [body for path, body in self.objects.items() if path.startswith(f"{JOBS}/jail-{what}")]

    def job_pods(self, job: Json | None = None) -> list[Json]:
        """Return the pods of a Job, or of all."""
        labels = job["spec"]["selector"]["matchLabels"] if job else {}
        pods = [body for body in self.collection(PODS).values() if "job-name" in body["metadata"]["labels"]]
        return [body for body in pods if labels.items() <= body["metadata"]["labels"].items()]

    # -- what the code under test calls -------------------------------------------------------------------------

    def apply(self, path: str, body: Json, *, manager: str = FIELD_MANAGER) -> Json:
        new = path.startswith(JOBS) and path not in self.objects
        assert "selector" not in body.get("spec", {}), "Kubernetes makes it"
        applied = super().apply(path, body, manager=manager)
        if new:
            self._begin(self.objects[path], manager, operation="Apply")
        return applied

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Json:
        assert "selector" not in body.get("spec", {}), "Kubernetes makes it"
        made = super().create(path, body, dry_run=dry_run, manager=manager)
        if path == JOBS:
            self._begin(self.objects[f"{path}/{body['metadata']['name']}"], manager)
        return made

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        gone = self.objects.get(path)
        super().delete(path, dependents_first=dependents_first)
        if gone is not None and path.startswith(JOBS):
            assert dependents_first, "or its pods would stay"
            for pod in self.job_pods(gone):
                del self.objects[f"{PODS}/{pod['metadata']['name']}"]

    # -- what happens by itself ---------------------------------------------------------------------------------

    def add_job(self, name: str, *arguments: str, container: str = "jail") -> Json:
        """Add a Job as Pulumi, or an earlier run, has made it."""
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {**SELECTOR}},
            "spec": {"template": {"spec": {"containers": [{"name": container, "args": [*arguments]}]}}},
        }
        self.objects[f"{JOBS}/{name}"] = body
        self._begin(body, MAKER)
        return body

    def _begin(self, job: Json, manager: str, *, operation: str = "Update") -> None:
        """Do as the API server does with a new Job."""
        self.changes += 1
        uid = f"job-{self.changes}"
        labels = {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid, "job-name": job["metadata"]["name"]}
        managers = [{"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}]
        managers.append({"manager": manager, "operation": operation})
        job["metadata"] |= {"uid": uid, "resourceVersion": "7", "managedFields": managers}
        job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        job["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {}).update(labels)
        job["status"] = {}
        self.start_pod(job)

    def start_pod(self, job: Json) -> None:
        """Make the next pod of a Job and have its program run."""
        self.changes += 1
        name = f"{job['metadata']['name']}-{self.changes}"
        container = job["spec"]["template"]["spec"]["containers"][0]
        pod = a_pod(name, "jail", container["name"], uid=name, creationTimestamp=f"{self.changes:04}")
        pod["metadata"]["labels"] = dict(job["spec"]["template"]["metadata"]["labels"])
        pod["spec"] = job["spec"]["template"]["spec"]
        self.objects[f"{PODS}/{name}"] = pod
        arguments = [*container.get("args", [])]
        run = self.programs[arguments[0]](arguments)
        self.clock.after(run.seconds, lambda: self._ends(job, pod, arguments, run))

    def _ends(self, job: Json, pod: Json, arguments: list[str], run: Run) -> None:
        if self.objects.get(f"{PODS}/{pod['metadata']['name']}") is not pod:
            return
        self.ran.append(arguments)
        self.logs[pod["metadata"]["name"]] = run.log
        (status,) = pod["status"]["containerStatuses"]
        status["state"] = {"terminated": {"exitCode": run.code, "message": run.message}}
        pod["status"]["phase"] = "Failed" if run.code else "Succeeded"
        if run.code == 0:
            job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        elif run.code == REFUSED or len(self.job_pods(job)) > job["spec"].get("backoffLimit", 6):
            reason = "PodFailurePolicy" if run.code == REFUSED else "BackoffLimitExceeded"
            failed = {"type": "Failed", "status": "True", "reason": reason, "message": "Job has failed"}
            job["status"] = {"conditions": [failed]}
        else:
            self.clock.after(10, lambda: self.start_pod(job))

    def _switch(self, arguments: list[str]) -> Run:
        to = arguments[arguments.index("--to") + 1]
        self.clock.after(1, lambda: self._flip(to))
        return Run(0, f'2 files were changed in {OLD}\n{{"to": "{to}"}}')

    def _flip(self, to: str) -> None:
        for tree in self.trees:
            tree["active"] = tree["tree"] == to
        self.clock.after(1, lambda: self.entered.update({"": f"{to}\n"}))


def wanted(tree: str = NEW, **changes: Any) -> dict[str, Any]:
    return {
        "namespace": NAMESPACE,
        "owner": "project.dev.hpc",
        "tree": tree,
        "populated": NEW,
        "source": "debian:13",
        "keep_trees": 2.0,
        "changes": "refuse",
        "selector": SELECTOR,
        "labels": {"team": "hpc"},
        "annotations": {},
        "template": TEMPLATE,
        "kubeconfig": None,
        "context": None,
        **changes,
    }


class Printed:
    """Lines that a person has seen since the last look."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def lines(self) -> list[str]:
        return self._capsys.readouterr().out.splitlines()
