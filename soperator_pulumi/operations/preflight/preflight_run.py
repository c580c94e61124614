"""The whole preflight: what is read, what the server admits, and what pods test, with all findings at once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from soperator_pulumi.errors import KubernetesError, SlurmError, TransportError
from soperator_pulumi.kube.verbs import Json, Kube, pods_path
from soperator_pulumi.operations.configuration.slurmdbd import ACCOUNTING_CONTAINER, ACCOUNTING_POD
from soperator_pulumi.operations.preflight import machine_clocks
from soperator_pulumi.operations.preflight.access_rights import object_findings, platform_right_findings
from soperator_pulumi.operations.preflight.admission import admission_findings
from soperator_pulumi.operations.preflight.admitting_machines import MACHINES, machines_for, usable
from soperator_pulumi.operations.preflight.api_server import closed_api_servers, kubelet_findings, release_findings
from soperator_pulumi.operations.preflight.cluster_probe import NAMESPACES, ClusterProbe, ProbePlace
from soperator_pulumi.operations.preflight.diagnosis import (
    Diagnosis,
    Severity,
    answered,
    not_checked,
    of_problem,
    passed,
    warned,
)
from soperator_pulumi.operations.preflight.image_pulls import image_probes
from soperator_pulumi.operations.preflight.machine_fit import (
    DAEMON_SETS,
    fit_findings,
    layout_findings,
    limit_findings,
)
from soperator_pulumi.operations.preflight.machine_probe import machine_probes
from soperator_pulumi.operations.preflight.network_probe import network_probe
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPlatform
from soperator_pulumi.operations.preflight.prerequisites import problems
from soperator_pulumi.operations.preflight.provided_parts import (
    critical_pod_findings,
    load_balancer_findings,
    missing_drivers,
)
from soperator_pulumi.operations.preflight.shared_claim import storage_probe
from soperator_pulumi.operations.progress import Clock, MachineClock, Report
from soperator_pulumi.slurm.named_qos import unknown_qos
from soperator_pulumi.slurm.sacctmgr import Sacctmgr

PROBE_SECONDS = 120.0
"""Time for all pods of the probes, which run at the same time."""

_POLICY_SECONDS = 20.0
"""Time for a NetworkPolicy to take effect: network plugins take up to a few seconds."""

PROBES = ("admission", "images", "runtime", "network", "storage")
"""Checks that need a namespace for their objects."""

CHECKS = ("release", "rights", "prerequisites", "machines", "clocks", "load balancer", *PROBES)
"""Names of all checks, in their order."""


@dataclass
class Preflight:
    """Preflight of one cluster."""

    kube: Kube
    planned: PlannedCluster
    report: Report
    """Function that shows progress."""
    probes: Collection[str] = PROBES
    """Checks of `PROBES` to make. Empty: only read."""
    accepted: Collection[str] = ()
    """Checks whose refusals count as warnings."""
    probe_seconds: float = PROBE_SECONDS
    clock: Clock = field(default_factory=MachineClock)

    def findings(self) -> list[Diagnosis]:
        """Return all findings, first from reads, then from probes.

        Raises:
            KubernetesError: the cluster does not answer, or its namespaces cannot be read.
        """
        self.report(f"{self.planned.key}: reads {self.kube}")
        namespace = self.kube.get(f"{NAMESPACES}/{self.planned.prerequisites.namespace}")
        if not self.planned.owner_known:
            self.planned = _of_the_owner_of(self.planned, namespace)
        found = [*self._read(), *self._probed(exists=namespace is not None)]
        return [_weighed(diagnosis, self.accepted) for diagnosis in found]

    def _machines(self) -> list[Json]:
        return self.kube.find(MACHINES)

    def _read(self) -> Iterator[Diagnosis]:
        kube, planned = self.kube, self.planned
        namespace = planned.prerequisites.namespace
        looks = (
            ("release", "Kubernetes", lambda: release_findings(kube, planned.objects)),
            ("rights", "kubeconfig", lambda: object_findings(kube, planned.objects, namespace)),
            ("prerequisites", "namespace", self._prerequisites),
            ("prerequisites", "QoS", self._of_qos),
            *_looks_at(kube, planned.platform),
            ("machines", "machines", self._of_machines),
            ("clocks", "machines", self._clocks),
            ("load balancer", "login.service", lambda: load_balancer_findings(kube, planned.of_kind("Service"))),
        )
        for check, place, look in looks:
            yield from answered(check, place, look)

    def _prerequisites(self) -> Iterable[Diagnosis]:
        wanted = self.planned.prerequisites
        _, not_known = closed_api_servers(self.kube, wanted.api_servers)
        found = [*problems(self.kube, wanted), *not_known]
        if not found:
            yield passed(
                "prerequisites", "namespace", f'"{wanted.namespace}" and all named objects are as they must be'
            )
        yield from (of_problem("prerequisites", problem) for problem in found)

    def _of_qos(self) -> Iterator[Diagnosis]:
        """Yield the names without a QoS in the database of a cluster that is up already."""
        namespace = self.planned.prerequisites.namespace
        if not self.planned.qos or self.kube.get(f"{pods_path(namespace)}/{ACCOUNTING_POD}") is None:
            return
        try:
            place = self.kube.transport(namespace, ACCOUNTING_POD, ACCOUNTING_CONTAINER)
            for problem in unknown_qos(Sacctmgr(place, ""), self.planned.qos):
                yield warned("prerequisites", problem.path, problem.found, "a QoS of the database", problem.cure)
        except (SlurmError, TransportError) as error:
            text = f"not checked: {error}".removesuffix(".")
            yield warned("prerequisites", "QoS", text, "", "Compare the names with `sacctmgr show qos format=name`.")

    def _of_machines(self) -> Iterator[Diagnosis]:
        machines = self._machines()
        yield from kubelet_findings(machines)
        to_come = self.planned.platform.devices_to_come
        daemon_sets: list[Json] = []
        try:
            daemon_sets = self.kube.find(DAEMON_SETS)
        except KubernetesError as error:
            yield not_checked("machines", "DaemonSets", error)
        yield from fit_findings(self.planned.pods, machines, daemon_sets=daemon_sets, to_come=to_come)
        yield from layout_findings(self.planned.workers, machines)
        yield from limit_findings(self.kube, self.planned.pods, machines)

    def _clocks(self) -> Iterator[Diagnosis]:
        leases = self.kube.find(machine_clocks.LEASES)
        now = machine_clocks.server_time(self.kube)
        yield from machine_clocks.clock_findings(leases, usable(self._machines()), now)

    # -- what is tried out --------------------------------------------------------------------------------------

    def _probed(self, *, exists: bool) -> Iterator[Diagnosis]:
        if not self.probes:
            return
        prerequisites = self.planned.prerequisites
        place = ProbePlace(self.kube, prerequisites.owner, self.report, self.clock)
        try:
            with place.opened(prerequisites.namespace, exists=exists) as namespace:
                if "admission" in self.probes:
                    self.report(f"{self.planned.key}: has the API server judge the objects, and keep nothing")
                    look = lambda: admission_findings(self.kube, self.planned, namespace)  # noqa: E731 as above
                    yield from answered("admission", "namespace", look)
                yield from self._run(place)
        except KubernetesError as error:
            text = f"no probe can run: {error}".removesuffix(".")
            cure = (
                "Give the user of the kubeconfig the right, or name a namespace that exists (create_namespace: false)."
            )
            yield warned("probes", "namespace", text, "the right to make a namespace and pods", cure)

    def _run(self, place: ProbePlace) -> Iterator[Diagnosis]:
        try:
            machines = self._machines()
        except KubernetesError as error:
            yield warned("probes", "machines", f"no probe can run: {error}".removesuffix("."), "", "See rights above.")
            return
        made = [*self._made(place, machines)]
        yield from (item for item in made if isinstance(item, Diagnosis))
        ready = [item for item in made if isinstance(item, ClusterProbe)]
        started = []
        for probe in ready:
            try:
                for body in probe.objects:
                    place.put(body)
                started.append(probe)
            except KubernetesError as error:
                text = f"its probe is refused: {error}".removesuffix(".")
                yield warned(
                    probe.check, probe.place, text, "", "Exclude the namespace from the policy, or run it there."
                )
        awaited = [name for probe in started for name in probe.awaited]
        if not awaited:
            return
        self.report(f"{self.planned.key}: waits for {len(awaited)} probes, {self.probe_seconds:.0f} s at most")
        pods = place.wait(awaited, self.probe_seconds)
        for probe in started:
            yield from probe.judge(pods)

    def _made(self, place: ProbePlace, machines: Sequence[Json]) -> Iterator[ClusterProbe | Diagnosis]:
        planned = self.planned
        candidates = [machine for pods in planned.pods for machine in machines_for(pods, machines)]
        unique = [*{candidate["metadata"]["name"]: candidate for candidate in candidates}.values()]
        if not unique:
            yield warned("probes", "machines", "no probe can run: no machine fits", "", "See the machines above.")
            return
        if "images" in self.probes:
            yield from image_probes(place, planned.pods, machines)
        if "runtime" in self.probes:
            yield from machine_probes(place, planned, machines)
        if "network" in self.probes:
            yield network_probe(place, planned, unique, min(_POLICY_SECONDS, self.probe_seconds / 6))
        if "storage" in self.probes:
            yield storage_probe(place, planned, unique)


def platform_findings(
    kube: Kube, planned: PlannedPlatform, report: Report, accepted: Collection[str] = ()
) -> list[Diagnosis]:
    """Return the findings about a platform without a cluster, which only reads tell.

    Args:
        kube: The Kubernetes.
        planned: The platform.
        report: Function that shows progress.
        accepted: Checks whose refusals count as warnings.

    Raises:
        KubernetesError: the Kubernetes does not answer.
    """
    report(f"{planned.key}: reads {kube}")
    kube.get("/version")  # every check would tell by itself, as a warning, that nothing answers
    found = [finding for look in _looks_at(kube, planned) for finding in answered(*look)]
    return [_weighed(finding, accepted) for finding in found] or [
        passed("rights", "platform", "the program makes no part and no object of it, so there are no rights to review")
    ]


def _looks_at(kube: Kube, planned: PlannedPlatform) -> tuple[tuple[str, str, Callable[[], Iterable[Diagnosis]]], ...]:
    """Return the checks of a platform: name, place, and function of the findings."""
    namespaces = planned.critical_namespaces
    return (
        ("rights", "platform", lambda: platform_right_findings(kube, planned.charts, planned.objects)),
        ("prerequisites", "CSI drivers", lambda: missing_drivers(kube, planned.csi_drivers)),
        (
            "prerequisites",
            "GPU Operator",
            lambda: critical_pod_findings(kube, namespaces, kube.find(MACHINES)) if namespaces else (),
        ),
    )


def _weighed(found: Diagnosis, accepted: Collection[str]) -> Diagnosis:
    if found.severity is Severity.REFUSED and found.check in accepted:
        return replace(found, severity=Severity.WARNED)
    return found


def _of_the_owner_of(planned: PlannedCluster, namespace: Json | None) -> PlannedCluster:
    """Return the plan with the owner recorded in an existing namespace."""
    wanted = planned.prerequisites
    owner = ((namespace or {"metadata": {}})["metadata"].get("labels") or {}).get(wanted.owner_label, wanted.owner)
    return replace(planned, prerequisites=wanted.model_copy(update={"owner": owner}))
