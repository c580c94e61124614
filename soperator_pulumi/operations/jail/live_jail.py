"""The live jail: its trees, the switch from one to another, and the removal of unused trees.

`jail_tools` does the work on the trees, in separate pods. This module starts these pods and reports their results.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from soperator_pulumi.errors import JailError, KubernetesError, NotReadyError, SlurmError, TransportError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Json, Kube, config_map_path
from soperator_pulumi.operations.batch_jobs import STUCK_SECONDS, BatchJob, JobFollower, Outcome, job_path
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_CONTAINER, CONTROLLER_POD
from soperator_pulumi.operations.jail.trees import Tree, read_trees
from soperator_pulumi.operations.progress import Clock, Report, saying, until
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Transport

CONTAINER = "jail"
"""Container of the pod template that works on the trees."""
USERS_CONTAINER = "users"
"""Container next to slurmctld that sees the trees."""
LOGIN_CONTAINER = "sshd"
IN_USE = (layout.JAIL_LOGIN, "--in-use")
"""Command that lists the trees that processes of a login container use as their root, one per line."""

ENTERED = ("readlink", layout.ACTIVE_VIEW)
"""Command that prints the tree that the next session in a login container enters."""

LOGIN_SECONDS = 30
"""Time for logins to follow, in seconds: jail-login looks every second, and needs less to prepare a tree."""

_LIVE_JOBS = "jail-live-jobs"
_LIVE_JOBS_DIR = "/live"
_WORK_LABEL = "soperator-pulumi/jail-work"
_REFUSED = 78  # EX_CONFIG: a retry would fail in the same way
_LEFT_STUCK_SECONDS = 20
_TRIES = 3
_KEPT_SECONDS = 86400  # the report of a switch stays for a day
_TREE = re.compile(rf"(?:.*/)?{layout.TREES_IN_JAIL}/([0-9a-f]+)(?:/.*)?")


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
    report: Report
    clock: Clock
    stuck_seconds: float = STUCK_SECONDS
    """Time for a Job's pod to get a machine and an image, in seconds."""

    def trees(self) -> tuple[Tree, ...]:
        """Return the current trees.

        Raises:
            JailError: the trees cannot be listed.
            TransportError: the controller's pod cannot be reached.
        """
        place = self.kube.transport(self.namespace, CONTROLLER_POD, USERS_CONTAINER, coreutils=False)
        answer = place.run([*layout.JAIL_TOOLS, "trees", "--jail", layout.JAIL_DIR])
        if answer.returncode != 0:
            raise JailError(f"jail: its trees cannot be listed: {answer.message}")
        return read_trees(answer.stdout)

    def switch(self, to: Tree, changes: str) -> None:
        """Make new jobs and logins enter another tree, and report what happens to changes in the old one.

        Raises:
            JailError: the switch was refused; with the report. The old tree is still active.
        """
        outcome = self._work("switch", ["--to", to.tree, "--changes", changes])
        if outcome.failure:
            raise JailError(f"jail: the switch to {to} failed: {outcome.failure}")

    def await_logins(self, tree: str) -> None:
        """Wait until new sessions in all reachable login pods enter a tree.

        Raises:
            NotReadyError: new sessions still enter another tree.
        """
        deadline = self.clock.now() + LOGIN_SECONDS
        for pod in self._login_pods():
            try:
                entered = self._awaited(self.kube.transport(self.namespace, pod.name, LOGIN_CONTAINER), tree, deadline)
            except TransportError as error:
                self.report(f"jail: cannot read which tree new sessions enter: {error}")
                continue
            if entered != tree:
                raise NotReadyError(
                    f"jail: new sessions in pod {pod.name} still enter tree {entered or '(none)'} instead of {tree} "
                    f"after {LOGIN_SECONDS} s. Its log has the reason: kubectl logs -n {self.namespace} {pod.name} -c "
                    f"{LOGIN_CONTAINER}. Fix the problem, in the admin shell if it is in the tree, and run again."
                )

    def _awaited(self, login: Transport, tree: str, deadline: float) -> str:
        """Return the tree that new sessions in a login container enter, once it is the wanted one or time is up."""
        entered = ""
        say = saying(self.report, f"jail: waits until new sessions enter tree {tree}")
        for _ in until(deadline, self.clock, say=say):
            entered = login.run(ENTERED).stdout.strip()
            if entered == tree:
                break
        return entered

    def finish_others(self) -> None:
        """Wait for the Jobs of a killed run: only one program works on the trees at a time.

        A Job without progress is removed: it may be killed at any time, and this run may have corrected its image.
        """
        for job in self._jobs():
            if job.ended:
                continue
            self.report(f"jail: waits for the Job {job.name} of an interrupted run")
            following = self._following(job.name)
            try:
                replace(following, stuck_seconds=_LEFT_STUCK_SECONDS).end()
            except NotReadyError:
                self.report(f"jail: the Job {job.name} makes no progress and is removed")
                following.remove(job)

    def collect(self, keep: int) -> None:
        """Remove the oldest trees beyond `keep` that no live job and no open session uses.

        No tree is removed while its users are unknown. That is not an error: the next switch tries again.
        """
        try:
            slurmctld = self.kube.transport(self.namespace, CONTROLLER_POD, CONTROLLER_CONTAINER)
            live_jobs = [job.job_id for job in ScontrolClient(slurmctld, pause=self.clock.sleep).jobs()]
            in_use = sorted(self._in_use())
            self._put_live_jobs(live_jobs)
            arguments = ["--keep", str(keep), f"--in-use={','.join(in_use)}"]
            outcome = self._work("collect", [*arguments, "--live-jobs", f"@{_LIVE_JOBS_DIR}/jobs"])
            self.kube.delete(config_map_path(self.namespace, _LIVE_JOBS))
        except (KubernetesError, NotReadyError, SlurmError, TransportError) as error:
            self.report(f"jail: no old tree is removed now, as the users of trees are unknown: {error}")
            return
        if outcome.failure:
            self.report(f"jail: could not remove old trees, the next switch tries again: {outcome.failure}")

    def remove_work(self) -> None:
        """Remove all Jobs of the trees, running or ended. The trees stay."""
        for job in self._jobs():
            self.kube.delete(job.path, dependents_first=True)
        self.kube.delete(config_map_path(self.namespace, _LIVE_JOBS))

    def _jobs(self) -> list[BatchJob]:
        """Return this package's Jobs of the trees, running or ended."""
        found = self.kube.find(job_path(self.namespace), {**self.selector})
        return [BatchJob.of(body) for body in found if _WORK_LABEL in (body["metadata"].get("labels") or {})]

    def _in_use(self) -> set[str]:
        """Return the trees used by sessions, and those mounted by pods."""
        pods = find_pods(self.kube, self.namespace, {**self.selector})
        used = {tree for pod in pods for tree in _mounted(pod)}
        for pod in self._login_pods():
            answer = self.kube.transport(self.namespace, pod.name, LOGIN_CONTAINER).run(IN_USE)
            if answer.returncode != 0:
                raise NotReadyError(f"cannot read the sessions in pod {pod.name}: {answer.message}")
            used.update(answer.stdout.split())
        return used

    def _login_pods(self) -> list[Pod]:
        """Return the pods that may have sessions: those where sshd runs."""
        selector = {**self.selector, **layout.LOGIN_PODS}
        return [pod for pod in find_pods(self.kube, self.namespace, selector) if pod.runs(LOGIN_CONTAINER)]

    def _put_live_jobs(self, jobs: Sequence[int]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**self._metadata("collect"), "name": _LIVE_JOBS},
            "data": {"jobs": "".join(f"{job}\n" for job in jobs)},
        }
        self.kube.apply(config_map_path(self.namespace, _LIVE_JOBS), body)

    def _work(self, what: str, arguments: Sequence[str]) -> Outcome:
        """Run a command of `jail_tools` as a Job, and follow it to its end."""
        # A new name, as the Job of an earlier run may still exist.
        name = f"jail-{what}-{secrets.token_hex(4)}"
        self.kube.apply(job_path(self.namespace, name), self._job(name, what, arguments))
        return self._following(name).end()

    def _following(self, name: str) -> JobFollower:
        return JobFollower(
            self.kube,
            self.namespace,
            name,
            CONTAINER,
            "jail",
            self.report,
            self.clock,
            self.stuck_seconds,
            advice="If machines or images take longer, raise ready_timeout_seconds.",
        )

    def _job(self, name: str, what: str, arguments: Sequence[str]) -> Json:
        given = next(given for given in self.template["spec"]["containers"] if given["name"] == CONTAINER)
        container = {
            "terminationMessagePolicy": "FallbackToLogsOnError",
            **given,
            "args": [what, "--jail", layout.JAIL_DIR, *arguments],
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


def _mounted(pod: Pod) -> Iterator[str]:
    """Yield the trees from which a pod that has not ended mounts a directory."""
    if pod.ended:
        return
    for container in pod.body["spec"]["containers"]:
        for mount in container.get("volumeMounts") or []:
            if found := _TREE.fullmatch(str(mount.get("subPath", ""))):
                yield found[1]
