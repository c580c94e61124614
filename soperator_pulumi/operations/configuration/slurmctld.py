"""Activation of Slurm's files: slurmctld reads them, and sends them to every slurmd (configless)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError, SlurmError, TransportError
from soperator_pulumi.kube.pods import STATE_LOST, Pod, find_pods
from soperator_pulumi.kube.verbs import Kube, stateful_sets_path
from soperator_pulumi.operations.progress import Clock, Report, saying, until
from soperator_pulumi.render.change_impact import Change, Effect, changes
from soperator_pulumi.render.layout import JWT_KEY, NODE_GRES, RUN_DIR
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.daemon_log import errors_in
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Transport
from soperator_pulumi.slurm.trial import trial_files, trial_start
from soperator_pulumi.wording import listed

CONTROLLER_STATEFUL_SET = "controller"
CONTROLLER_POD = "controller-0"
CONTROLLER_CONTAINER = "slurmctld"

SLURM_CONFIG_MAP = "slurm-config"
"""Name of the ConfigMap with Slurm's files."""

START_SECONDS = 60
"""Time for the container of a starting controller to run."""

ANSWER_SECONDS = 300
"""Time for slurmctld to answer, in seconds: after a restart it recovers its state."""

_TRIAL_FOLDER = PurePosixPath("/tmp/trial")  # noqa: S108 in the controller's own /tmp
_MAKE_INCLUDED_FILE = f"test -e {NODE_GRES} || : > {NODE_GRES}"
"""Creates the file that gres.conf includes, if it is missing. Pods create it when they start, but not those of releases
before GPUs; slurmctld and slurmd wait a minute for it (`s_p_parse_file` in src/common/parse_config.c), then end, slurmd
with its jobs (measured). slurm may write there: it is the folder of the daemons' pid files."""

_TOKENS = "AuthAltTypes=auth/jwt"
_TOKENS_LATER = """\
The REST API needs tokens, which the controller's pod cannot read: it is of an earlier version of this package. Nothing
was changed. Run `up` without `rest` first, with the images of this version, then with `rest`."""

_CONSTRAINED_LATER = """\
With slurm.constrain: cgroup slurmd would end, with its jobs, in pods of an earlier version of this package: {pods}.
Nothing was changed. Run `up` with the old value first, which recreates them a few at a time, then with the new one."""

_BY_CGROUPS, _BINDS_TASKS = "ProctrackType=proctrack/cgroup", "SYS_NICE"
"""Line of slurm.conf that limits jobs to their resources, and the capability that workers of such a cluster have."""

_WORKER = "slurmd"

_REPORT_SECONDS = 10
_JOBS_SHOWN = 10


@dataclass(frozen=True)
class Slurmctld:
    """Activation by slurmctld."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]
    report: Report
    clock: Clock

    @property
    def _transport(self) -> Transport:
        return self.kube.transport(self.namespace, CONTROLLER_POD, CONTROLLER_CONTAINER)

    @property
    def _slurm(self) -> SlurmClient:
        return ScontrolClient(self._transport, pause=self.clock.sleep)

    def check(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Refuse impossible changes, changes that would lose jobs, and files that slurmctld does not accept."""
        if old == new or not self._installed():
            return
        self.allow(old, new)
        pod = self._pod()
        if pod is not None and pod.runs(CONTROLLER_CONTAINER) and not pod.going:
            self._try(new)

    def allow(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Refuse impossible changes, and changes that would lose jobs that exist or may exist."""
        try:
            reason = self.refusal(old, new)
        except (SlurmError, TransportError) as error:
            losing = [change for change in changes(old, new) if change.effect is Effect.LOSES_JOBS]
            raise ConfigRefusedError(
                f"slurmctld did not answer, so running jobs are unknown and could be lost ({error}):\n"
                f"{_reported(losing)}\n"
                "Nothing was changed. Run again when slurmctld answers."
            ) from error
        if reason:
            raise ConfigRefusedError(reason)

    def refusal(self, old: Mapping[str, str], new: Mapping[str, str], leaving: Collection[str] = ()) -> str:
        """Return why a change must not be made now; empty if it may.

        Args:
            old: Texts of the current files, by name.
            new: Texts of the desired files, by name.
            leaving: Nodes that will be free by then: jobs that hold only such nodes are no obstacle.

        Raises:
            SlurmError: the jobs are unknown, as slurmctld gave an unexpected answer.
            TransportError: the jobs are unknown, as slurmctld could not be reached.
        """
        if older := self._not_to_constrain(old, new):
            return _CONSTRAINED_LATER.format(pods=listed(older, _JOBS_SHOWN))
        found = [change for change in changes(old, new) if change.effect in {Effect.IMPOSSIBLE, Effect.LOSES_JOBS}]
        if not found or not self._installed():
            return ""
        if impossible := [change for change in found if change.effect is Effect.IMPOSSIBLE]:
            return f"A running cluster cannot take this change. Nothing was changed:\n{_reported(impossible)}"
        lost = self._lost(found, leaving)
        if not lost:
            return ""
        return (
            f"Jobs would {'lose their GPUs' if all(node.generic_resources for node in found) else 'be lost'}:\n"
            f"{_reported(found)}\n"
            f"These jobs have not ended: {listed(map(str, lost), _JOBS_SHOWN)}.\n"
            "Nothing was changed. Wait for them or cancel them, and run again."
        )

    def activate(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Reconfigure slurmctld, or restart it if a change needs that. Jobs continue either way."""
        if NODE_GRES in new.get("gres.conf", "") and NODE_GRES not in old.get("gres.conf", ""):
            self._prepare_workers()
        pod = self._started()
        if pod is None:
            return
        found = changes(old, new)
        restarting = [change.what for change in found if change.effect is Effect.RESTART]
        if pod.crashed(CONTROLLER_CONTAINER):
            self._restart(pod, "it is down")
        elif restarting:
            self._restart(pod, f"for {', '.join(restarting)}")
            if len(found) > len(restarting):
                self._reconfigure(pod)  # only then do the nodes fetch the files
        else:
            self._await_answer(pod, started=self.clock.now())
            self._reconfigure(pod)

    def _try(self, files: Mapping[str, str]) -> None:
        """Refuse files with which a second slurmctld, next to the running one, does not start."""
        if _TOKENS in files["slurm.conf"] and self._transport.run(["ls", f"{RUN_DIR}/{JWT_KEY}"]).returncode != 0:
            raise ConfigRefusedError(_TOKENS_LATER)
        self._make_included_file()
        try:
            trial_start(self._transport, trial_files({**files}, _TRIAL_FOLDER), _TRIAL_FOLDER)
        except SlurmError as error:
            raise ConfigRefusedError(f"Slurm refuses the configuration. Nothing was changed:\n{error}") from error

    def _lost(self, found: Collection[Change], leaving: Collection[str]) -> list[Job]:
        """Return the jobs that changes would lose, except those that only hold nodes in `leaving`."""
        every = any(change.partition is None and not change.generic_resources for change in found)
        partitions = {change.partition for change in found}
        gone = {name for change in found for name in change.generic_resources}
        losing = {node.name for node in self._slurm.nodes() if node.generic_resources & gone} if gone else set()
        return [
            job
            for job in self._slurm.jobs()
            if (every or job.partitions & partitions or (job.active and job.node_names & losing))
            and not (job.active and job.node_names <= {*leaving})
        ]

    def _make_included_file(self) -> None:
        self._transport.run(["/bin/sh", "-c", _MAKE_INCLUDED_FILE])

    def _workers(self) -> list[Pod]:
        """Return the pods in which slurmd runs, except those that are being deleted."""
        pods = find_pods(self.kube, self.namespace, {**self.selector, "app.kubernetes.io/component": "worker"})
        return [pod for pod in pods if pod.runs(_WORKER) and not pod.going]

    def _not_to_constrain(self, old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
        """Return the pods in which slurmd cannot limit jobs to their resources, as the new files require it."""
        if _BY_CGROUPS in old.get("slurm.conf", "") or _BY_CGROUPS not in new.get("slurm.conf", ""):
            return []
        return [pod.name for pod in self._workers() if _BINDS_TASKS not in _added(pod)]

    def _prepare_workers(self) -> None:
        """Create the file that gres.conf now includes in all worker pods: without it slurmd ends, like slurmctld."""
        reported = self.clock.now()
        for number, pod in enumerate(running := self._workers()):
            if self.clock.now() - reported > _REPORT_SECONDS:
                reported = self.clock.now()
                self.report(f"prepares the nodes for GPUs: {number} of {len(running)}")
            try:
                answer = self.kube.transport(self.namespace, pod.name, _WORKER).run(
                    ["/bin/sh", "-c", _MAKE_INCLUDED_FILE]
                )
            except TransportError as error:
                raise _unprepared(pod, str(error)) from error
            if answer.returncode != 0:
                raise _unprepared(pod, answer.message)

    def _installed(self) -> bool:
        """Return True if there is a controller: at first, a new cluster has none."""
        path = f"{stateful_sets_path(self.namespace)}/{CONTROLLER_STATEFUL_SET}"
        return self.kube.get(path) is not None

    def _pod(self) -> Pod | None:
        selector = {**self.selector, "app.kubernetes.io/component": "controller"}
        return next(iter(find_pods(self.kube, self.namespace, selector)), None)

    def _started(self) -> Pod | None:
        """Return the controller's pod; None if there is none, or if it will read the files when it starts."""
        if not self._installed():
            return None
        say = saying(self.report, "waits until slurmctld starts")
        for left in until(self.clock.now() + START_SECONDS, self.clock, say=say):
            pod = self._pod()
            if pod is None:
                continue  # just deleted
            lost = pod.crashed_with(STATE_LOST)  # it starts from a template that comes after the files
            if not (pod.going or lost) and (pod.runs(CONTROLLER_CONTAINER) or pod.crashed(CONTROLLER_CONTAINER)):
                return pod
            if pod.stuck or lost or left <= 0:
                self.report(
                    f"slurmctld is not running yet. It reads the files when it starts: {pod.name} "
                    f"{pod.why_not_ready(self.kube)}"
                )
                return None
        return None

    def _reconfigure(self, pod: Pod) -> None:
        began = self.clock.now()
        try:
            self._slurm.reconfigure()
        except SlurmError as error:
            raise self._refusal(pod, str(error), began) from error
        # slurmctld answers before it restarts itself; if the restart fails, it is gone.
        self._await_answer(pod, started=began)

    def _restart(self, pod: Pod, why: str) -> None:
        self.report(f"restarting slurmctld ({why}); jobs continue")
        began = self.clock.now()
        self.kube.delete(pod.path)
        self._await_answer(pod, started=began, replaced=True)

    def _await_answer(self, before: Pod, *, started: float, replaced: bool = False) -> None:
        """Wait until slurmctld answers, in a new pod if the old one was deleted."""
        reported = started
        for left in until(started + ANSWER_SECONDS, self.clock):
            pod = self._pod()
            current = pod is not None and not (replaced and pod.uid == before.uid)
            if pod is not None and current:
                if pod.crashed(CONTROLLER_CONTAINER):
                    raise self._refusal(pod, "slurmctld has ended", started)
                if pod.runs(CONTROLLER_CONTAINER) and self._answers():
                    return
            if self.clock.now() - reported > _REPORT_SECONDS:
                reported = self.clock.now()
                self.report(f"waits for slurmctld, {left:.0f} s left")
        why = "its pod is missing" if pod is None else pod.why_not_ready(self.kube)
        raise NotReadyError(
            f"slurmctld does not answer after {ANSWER_SECONDS} s: pod {self.namespace}/{CONTROLLER_POD} {why}. "
            "Fix the problems above and run again."
        )

    def _answers(self) -> bool:
        """Return True if slurmctld answers. If it waits for the included file, create that."""
        try:
            self._make_included_file()
        except TransportError:
            return False  # the container may be starting: the next look shows it
        return self._slurm.is_up()

    def _refusal(self, pod: Pod, message: str, since: float) -> ConfigRefusedError:
        """Return the refusal with the command's message and slurmctld's log, which often explains more."""
        seconds = int(self.clock.now() - since) + 2
        text = "".join(
            self.kube.log(pod.path, CONTROLLER_CONTAINER, previous=previous, since_seconds=seconds)
            for previous in (True, False)
        )
        reported = errors_in(text, CONTROLLER_CONTAINER)
        return ConfigRefusedError("\n".join(["Slurm refused the configuration:", message, *reported]))


def _unprepared(pod: Pod, reason: str) -> ConfigRefusedError:
    return ConfigRefusedError(
        f"{NODE_GRES} cannot be created in pod {pod.name}, whose slurmd would end with its jobs: {reason} "
        "Fix its machine, or delete the pod, and run again."
    )


def _reported(found: Collection[Change]) -> str:
    return "\n".join(f"  {change.what}: {change.reason}." for change in found)


def _added(pod: Pod) -> set[str]:
    """Return the capabilities that slurmd's container has in addition to the runtime's."""
    (daemon,) = (container for container in pod.body["spec"]["containers"] if container["name"] == _WORKER)
    return {*(((daemon.get("securityContext") or {}).get("capabilities") or {}).get("add") or [])}
