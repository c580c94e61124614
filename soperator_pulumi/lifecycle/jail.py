"""The live jail: which trees there are, switching from one to another, and removing those that nobody is in.

What is done to the trees themselves is done by `jail_tools` in pods of their own; here it is asked, started, and its
report told.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from soperator_pulumi.errors import JailError, KubernetesError, NotReadyError, SlurmError, TransportError
from soperator_pulumi.lifecycle.jobs import Following, Job, Outcome, job_path
from soperator_pulumi.lifecycle.kube import Json, Kube, config_map_path
from soperator_pulumi.lifecycle.pods import Pod, find_pods
from soperator_pulumi.lifecycle.progress import Clock, Say
from soperator_pulumi.lifecycle.slurmctld import CONTROLLER_CONTAINER, CONTROLLER_POD
from soperator_pulumi.slurm import SlurmClient

CONTAINER = "jail"
"""The container of the pod template that works on the trees."""
USERS_CONTAINER = "users"
"""The container beside slurmctld that sees the trees."""
LOGIN_CONTAINER = "sshd"
IN_USE = ["/opt/slurm/sbin/jail-login", "--in-use"]
"""Prints the trees that processes of a login container have as their root, one a line."""

_JAIL = "/jail"
_LIVE_JOBS = "jail-live-jobs"
_LIVE_JOBS_DIR = "/live"
_WORK_LABEL = "soperator-pulumi/jail-work"
_REFUSED = 78  # EX_CONFIG: another try would end in the same way
_TRIES = 3
_KEPT_SECONDS = 86400  # the report of a switch is to be had for a day
_TREE = re.compile(r"(?:.*/)?trees/([0-9a-f]+)(?:/.*)?")


class Tree(BaseModel):
    """A whole tree in the jail's claim, as `jail_tools trees` lists it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tree: str
    source: str | None = None
    populated: str | None = None
    """When it was filled."""
    active: bool = False

    def __str__(self) -> str:
        return f"{self.source} ({self.tree})" if self.source else self.tree


_TREES = TypeAdapter(tuple[Tree, ...])


def active_of(trees: Sequence[Tree]) -> Tree | None:
    """Return the tree that new jobs and logins enter."""
    return next((each for each in trees if each.active), None)


def find_tree(trees: Sequence[Tree], tree: str) -> Tree:
    """Return the tree of this name.

    Raises:
        JailError: there is none; with those that there are.
    """
    found = next((each for each in trees if each.tree == tree), None)
    if found is None:
        there = "\n".join(f"  {line}" for line in _listed(trees)) or "  none"
        raise JailError(
            f'jail.active: got "{tree}", but the jail has no complete tree of that name. There are:\n{there}\n'
            "Choose one of them, or leave jail.active out to enter the one that jail.source fills."
        )
    return found


def _listed(trees: Sequence[Tree]) -> Iterator[str]:
    for each in sorted(trees, key=lambda tree: tree.populated or ""):
        filled = each.populated and f"filled {each.populated}"
        words = [each.tree, each.source or "of unknown source", filled, each.active and "active"]
        yield ", ".join(word for word in words if word)


def result_of(log: Sequence[str]) -> Mapping[str, Any]:
    """Return the last object that a program has printed for other programs; empty when there is none."""
    line = next((line for line in reversed(log) if line.startswith("{")), "{}")
    try:
        result = json.loads(line)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}


def how_much(result: Mapping[str, Any]) -> str:
    """Return what was filled, and how long it took, to be put behind a sentence."""
    try:
        files, mebibytes, seconds = int(result["files"]), int(result["bytes"]) / 2**20, float(result["seconds"])
    except (KeyError, TypeError, ValueError):
        return ""
    return f": {files:,} files, {mebibytes:,.0f} MiB, in {seconds:.0f} s"


@dataclass(frozen=True)
class LiveJail:
    """The jail of one cluster."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]
    """Labels of all of the cluster's pods."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    template: Json
    """Pod template of the Jobs that work on the trees: its container `jail` gets the arguments."""
    say: Say
    clock: Clock

    def trees(self) -> tuple[Tree, ...]:
        """Return the trees that there are now.

        Raises:
            JailError: they cannot be listed.
            TransportError: the controller's pod is not reached.
        """
        place = self.kube.transport(self.namespace, CONTROLLER_POD, USERS_CONTAINER, coreutils=False)
        answer = place.run([*self._container()["command"], "trees", "--jail", _JAIL])
        try:
            if answer.returncode == 0:
                return _TREES.validate_json(answer.stdout)
        except ValidationError as error:
            raise JailError(f"jail: its trees cannot be listed: the answer was {answer.stdout[:200]!r}.") from error
        raise JailError(f"jail: its trees cannot be listed: {answer.words}")

    def switch(self, to: Tree, changes: str) -> None:
        """Have new jobs and logins enter another tree, and tell what becomes of the changes in the old one.

        Raises:
            JailError: it was refused, with the report; the old tree is still active.
        """
        outcome = self._work("switch", ["--to", to.tree, "--changes", changes])
        if outcome.failure:
            raise JailError(f"jail: it was not switched to {to}: {outcome.failure}")

    def finish_others(self) -> None:
        """Wait for the work of a run that was killed: two programs never work on the trees at once."""
        for job in self._jobs():
            if not job.ended:
                self.say(f"jail: an interrupted run's Job {job.name} is waited for")
                self._following(job.name).end()

    def collect(self, keep: int) -> None:
        """Remove the oldest trees beyond `keep` that no live job and no open session is in.

        Nothing is removed when it cannot be known who is in them. It is no error: the next switch tries again.
        """
        try:
            live_jobs = self._live_jobs()
            in_use = sorted(self._in_use())
            self._put_live_jobs(live_jobs)
            arguments = ["--keep", str(keep), f"--in-use={','.join(in_use)}"]
            outcome = self._work("collect", [*arguments, "--live-jobs", f"@{_LIVE_JOBS_DIR}/jobs"])
        except (KubernetesError, NotReadyError, SlurmError, TransportError) as error:
            self.say(f"jail: no old tree is removed now, as it is not known who is in it: {error}")
            return
        if outcome.failure:
            self.say(f"jail: removing old trees has failed, the next switch tries again: {outcome.failure}")

    def remove_work(self) -> None:
        """Remove the Jobs that have worked on the trees, and end those that still do. The trees stay."""
        for job in self._jobs():
            self.kube.delete(job.path, dependents_first=True)
        self.kube.delete(config_map_path(self.namespace, _LIVE_JOBS))

    def _jobs(self) -> list[Job]:
        """Return the Jobs of ours that work on the trees, or have."""
        found = self.kube.find(job_path(self.namespace), {**self.selector})
        return [Job.of(body) for body in found if _WORK_LABEL in (body["metadata"].get("labels") or {})]

    def _live_jobs(self) -> list[int]:
        slurm = SlurmClient(self.kube.transport(self.namespace, CONTROLLER_POD, CONTROLLER_CONTAINER))
        return [job.job_id for job in slurm.jobs()]

    def _in_use(self) -> set[str]:
        """Return the trees that sessions are in, and those of which a pod has mounted a part."""
        pods = find_pods(self.kube, self.namespace, {**self.selector})
        used = {tree for pod in pods for tree in _mounted(pod)}
        for pod in pods:
            if pod.component == "login" and pod.runs(LOGIN_CONTAINER):
                answer = self.kube.transport(self.namespace, pod.name, LOGIN_CONTAINER).run(IN_USE)
                if answer.returncode != 0:
                    raise NotReadyError(f"the sessions in pod {pod.name} cannot be looked at: {answer.words}")
                used.update(answer.stdout.split())
        return used

    def _put_live_jobs(self, jobs: Sequence[int]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**self._metadata("collect"), "name": _LIVE_JOBS},
            "data": {"jobs": "".join(f"{job}\n" for job in jobs)},
        }
        self.kube.apply(config_map_path(self.namespace, _LIVE_JOBS), body)

    def _work(self, what: str, arguments: Sequence[str]) -> Outcome:
        """Run one command of `jail_tools` as a Job and follow it to its end."""
        # A name of its own: the Job of an earlier run may still be there.
        name = f"jail-{what}-{secrets.token_hex(4)}"
        self.kube.apply(job_path(self.namespace, name), self._job(name, what, arguments))
        return self._following(name).end()

    def _following(self, name: str) -> Following:
        return Following(self.kube, self.namespace, name, CONTAINER, "jail", self.say, self.clock)

    def _job(self, name: str, what: str, arguments: Sequence[str]) -> Json:
        container = {
            "terminationMessagePolicy": "FallbackToLogsOnError",
            **self._container(),
            "args": [what, "--jail", _JAIL, *arguments],
        }
        spec = {**self.template["spec"], "restartPolicy": "Never"}
        if what == "collect":
            mount = {"name": _LIVE_JOBS, "mountPath": _LIVE_JOBS_DIR, "readOnly": True}
            volume = {"name": _LIVE_JOBS, "configMap": {"name": _LIVE_JOBS}}
            container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
            spec["volumes"] = [*spec.get("volumes", []), volume]
        spec["containers"] = [container]
        never_again = {"containerName": CONTAINER, "operator": "In", "values": [_REFUSED]}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**self._metadata(what), "name": name},
            "spec": {
                "backoffLimit": _TRIES - 1,
                "ttlSecondsAfterFinished": _KEPT_SECONDS,
                "podFailurePolicy": {
                    "rules": [
                        {"action": "FailJob", "onExitCodes": never_again},
                        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    ]
                },
                "template": {**self.template, "spec": spec},
            },
        }

    def _metadata(self, what: str) -> Json:
        return {
            "namespace": self.namespace,
            "labels": {**self.labels, **self.selector, _WORK_LABEL: what},
            "annotations": {**self.annotations},
        }

    def _container(self) -> Json:
        containers: list[Json] = self.template["spec"]["containers"]
        return next(each for each in containers if each["name"] == CONTAINER)


def _mounted(pod: Pod) -> Iterator[str]:
    """Yield the trees of which a pod that has not ended mounts a directory."""
    if pod.phase in {"Succeeded", "Failed"}:
        return
    for container in pod.body["spec"]["containers"]:
        for mount in container.get("volumeMounts") or []:
            if found := _TREE.fullmatch(str(mount.get("subPath", ""))):
                yield found[1]
