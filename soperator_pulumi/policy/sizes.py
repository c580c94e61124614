"""Policies on sizes and their changes: logins, drains, scale-down."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import WithJsonSchema

from soperator_pulumi.errors import SpecError
from soperator_pulumi.policy.cluster_settings import SLURM_CONF, conf_of, lowered
from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import patched
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, look, mapped, snake_keys, whole_number
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout, parse_drain
from soperator_pulumi.spec.types.duration import Duration, duration_text
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.validation.base import whole


class LoginSettings(PolicySettings):
    """Settings of `login-replicas`."""

    minimum: Annotated[int, whole(1, 64)] = 2
    """Smallest number of login pods. Default: 2."""


def _logins(resources: Sequence[ResourceView], _run: Circumstances, settings: LoginSettings) -> Iterator[Finding]:
    path = ("spec", "replicas")
    for resource in patched(resources):
        if not (resource.kind == "StatefulSet" and resource.is_made_by("LoginNodes")):
            continue
        given = look(resource.props, *path)
        replicas = 1 if given is None else whole_number(given)
        if replicas is None:
            yield not_known(resource, path)
        elif replicas < settings.minimum:
            text = (
                f"got {replicas}, needs {settings.minimum} or more: no one can log in there while the only one restarts"
            )
            yield Finding(resource, path, text)


LOGIN_REPLICAS = StackPolicy(
    name="login-replicas",
    description="Users have more than one login node in every pool.",
    violated_by="`replicas` of `login`, or of one of its pools, below `minimum`",
    cure="Raise login.replicas, and login.pools.<name>.replicas.",
    levels=levels("disabled", "disabled", "advisory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("availability",),
    settings=LoginSettings,
    check=_logins,
)


class DrainSettings(PolicySettings):
    """Settings of `drain-policies`."""

    minimum_timeout: Annotated[Duration, WithJsonSchema({"type": "string"})] = timedelta(minutes=10)
    """Least time that running jobs get. Default: `10m`."""
    minimum_before_requeue: Annotated[Duration, WithJsonSchema({"type": "string"})] = timedelta(hours=1)
    """Least time that running jobs get before a requeue, which repeats their work. Default: `1h`."""


def _drains(resource: ResourceView, _run: Circumstances, settings: DrainSettings) -> Iterator[Finding]:
    drain = _drain_of(resource)
    if drain is UNKNOWN:
        yield not_known(resource, ("policy",))
    elif isinstance(drain, DrainSpec):
        if not drain.wait:
            yield Finding(resource, ("policy", "wait"), "got false, needs true: a scale-down must wait for jobs")
        requeues = drain.on_timeout is OnTimeout.REQUEUE
        needed = max(settings.minimum_timeout, settings.minimum_before_requeue if requeues else timedelta())
        if drain.timeout < needed:
            got, least = duration_text(drain.timeout), duration_text(needed)
            yield Finding(resource, ("policy", "timeout"), f"got {got}, needs {least} or more for running jobs")


DRAIN_POLICIES = ResourcePolicy(
    name="drain-policies",
    description="Every node set has a drain policy that waits for jobs.",
    violated_by="`drain.wait: false`; `drain.timeout` below `minimum_timeout`, or below `minimum_before_requeue` with "
    "`on_timeout: requeue`",
    cure="Set drain.wait to true, and raise drain.timeout in the node set.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs",),
    settings=DrainSettings,
    check=_drains,
)


def _cancels(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    yield from _preempts(resource)
    drain = _drain_of(resource)
    if drain is UNKNOWN:
        yield not_known(resource, ("policy",))
    elif isinstance(drain, DrainSpec):
        if drain.on_timeout is OnTimeout.CANCEL:
            yield Finding(resource, ("policy", "on_timeout"), 'got "cancel", needs "abort", "wait" or "requeue"')
        if drain.on_timeout is OnTimeout.REQUEUE and drain.not_requeueable is NotRequeueable.CANCEL:
            yield Finding(resource, ("policy", "not_requeueable"), 'got "cancel", needs "abort"')


def _preempts(resource: ResourceView) -> Iterator[Finding]:
    if resource.acts_as("ConfigFiles") and look(resource.props, *SLURM_CONF) is UNKNOWN:
        yield not_known(resource, SLURM_CONF)
    if (conf := conf_of(resource, SLURM_CONF)) is None:
        return
    for settings in (conf.parameters, *conf.rows("PartitionName").values()):
        if "cancel" in lowered(settings).get("preemptmode", "").split(","):
            yield Finding(resource, SLURM_CONF, 'PreemptMode: got "CANCEL", needs "REQUEUE", "SUSPEND" or "OFF"')
            return


CANCELLED_JOBS = ResourcePolicy(
    name="cancelled-jobs",
    description="Neither a drain nor a job of higher priority cancels jobs without a reason.",
    violated_by="`drain.on_timeout: cancel`, or `requeue` with `not_requeueable: cancel`; `PreemptMode: CANCEL` in "
    "`slurm.extra` or in a partition's options",
    cure="Choose another value in the node set's drain, in slurm.extra or in the partition's options.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs",),
    check=_cancels,
)


class ScaleDownSettings(PolicySettings):
    """Settings of `scale-down`."""

    at_most: Annotated[Share, WithJsonSchema({"type": ["integer", "string"]})] = Share(25, percent=True)
    """Nodes that a node set may lose in one deployment, as a number or a percentage of the set. A percentage allows at
    least one node. Default: 25 %."""


def _scale_down(resource: ResourceView, _run: Circumstances, settings: ScaleDownSettings) -> Iterator[Finding]:
    if resource.acts_as("NodeDrain") and (given := resource.input("replicas_before")) is not None:
        before, now = whole_number(given), whole_number(resource.input("replicas"))
        if before is None or now is None:
            yield not_known(resource, ("replicas",))
            return
        yield from _loss(resource, ("replicas",), before, now, settings.at_most)
        drain = _drain_of(resource)
        if now < before and isinstance(drain, DrainSpec) and not (drain.wait and drain.timeout):
            text = f"a scale-down from {before} to {now} nodes needs a drain policy that waits for jobs"
            yield Finding(resource, ("policy",), text)
    elif resource.acts_as("RemovedNodeSets"):
        removed = resource.input("removed")
        if removed is UNKNOWN:
            yield not_known(resource, ("removed",))
        for name, given in mapped(removed).items():
            if (nodes := whole_number(given)) is None:
                yield not_known(resource, ("removed", name))
            else:
                yield from _loss(resource, ("removed", name), nodes, 0, settings.at_most)


def _loss(resource: ResourceView, path: Path, before: int, now: int, at_most: Share) -> Iterator[Finding]:
    allowed = _allowed(at_most, before)
    if before - now > allowed:
        text = f"{before - now} of {before} nodes would leave at once, but at most {allowed} are allowed ({at_most})"
        yield Finding(resource, path, text)


SCALE_DOWN = ResourcePolicy(
    name="scale-down",
    description="A deployment removes only a few nodes of a node set at once, and waits for their jobs.",
    violated_by="fewer `replicas` by more than `at_most`, or without a drain policy that waits; a removed node set "
    "that had more nodes",
    cure="Scale down in several deployments, to 0 before a node set is removed.",
    levels=levels("disabled", "advisory", "advisory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    settings=ScaleDownSettings,
    check=_scale_down,
)


def _allowed(at_most: Share, nodes: int) -> int:
    """Return the number of nodes that may leave. A percentage allows at least one, so small sets can shrink."""
    return max(1 if at_most.percent and at_most.amount else 0, at_most.of(nodes))


def _losses(resources: Sequence[ResourceView], _run: Circumstances, settings: ScaleDownSettings) -> Iterator[Finding]:
    sizes: dict[str, list[tuple[int, int]]] = {}
    for resource in resources:
        if resource.acts_as("NodeDrain"):
            now, before = whole_number(resource.input("replicas")), whole_number(resource.input("replicas_before"))
            # A stack's policies get from an engine the outputs of unchanged resources, which have no previous size.
            pairs = [] if now is None else [(now if before is None else before, now)]
        elif resource.acts_as("RemovedNodeSets"):
            removed = mapped(resource.input("removed")).values()
            pairs = [(nodes, 0) for value in removed if (nodes := whole_number(value)) is not None]
        else:
            continue
        sizes.setdefault(str(resource.namespace), []).extend(pairs)
    for namespace, pairs in sizes.items():
        before, left = sum(count for count, _ in pairs), sum(max(0, before - now) for before, now in pairs)
        allowed = _allowed(settings.at_most, before)
        if left > allowed:
            text = (
                f"{left} of {before} nodes would leave at once, but at most {allowed} are allowed ({settings.at_most})"
            )
            yield Finding(None, ("namespace", namespace), text)


class ClusterScaleDownSettings(ScaleDownSettings):
    """Settings of `cluster-scale-down`."""

    at_most: Annotated[Share, WithJsonSchema({"type": ["integer", "string"]})] = Share(25, percent=True)
    """Nodes that a cluster may lose in one deployment, as a number or a percentage of all its nodes. A percentage
    allows at least one node. Default: 25 %."""


CLUSTER_SCALE_DOWN = StackPolicy(
    name="cluster-scale-down",
    description="A deployment removes only a few nodes of a cluster at once, over all node sets.",
    violated_by="several node sets that lose as much as `scale-down` allows, together more than `at_most`; many small "
    "node sets removed at once",
    cure="Scale down in several deployments.",
    levels=levels("disabled", "advisory", "advisory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    settings=ClusterScaleDownSettings,
    check=_losses,
)


_SCALED = ("spec", "scaleTargetRef")
"""Path to the object that a HorizontalPodAutoscaler or a ScaledObject scales."""

_STRATEGY = ("spec", "updateStrategy", "type")

_GRACE = 30
"""Shortest time in seconds for a pod to end: Kubernetes' default, and the minimum of `drain.grace`."""


def _undrained(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    drains = {
        (str(resource.namespace), str(resource.input("node_set"))): resource.input("replicas")
        for resource in resources
        if resource.acts_as("NodeDrain")
    }
    path = ("spec", "replicas")
    for resource in resources:
        yield from _killed(resource)
        scaled = (str(resource.namespace), str(look(resource.props, *_SCALED, "name")))
        if resource.is_kubernetes and scaled in drains:
            yield Finding(
                resource, _SCALED, "scales the StatefulSet of a node set: no NodeDrain drains its nodes first"
            )
        key = (str(resource.namespace), str(look(resource.props, "metadata", "name")))
        if not (resource.is_kubernetes and resource.kind == "StatefulSet" and key in drains):
            continue
        yield from _restarts(resource)
        given = look(resource.props, *path)
        if UNKNOWN in (given, drains[key]):
            yield not_known(resource, path)
            continue
        freed, now = whole_number(drains[key]), whole_number(given)
        if freed is not None and now is not None and now < freed:
            yield Finding(resource, path, f"got {now}, needs {freed}: its NodeDrain has drained no more nodes")


def _restarts(resource: ResourceView) -> Iterator[Finding]:
    given = look(resource.props, *_STRATEGY)
    is_kept = resource.is_patch and given is None
    if given is UNKNOWN:
        yield not_known(resource, _STRATEGY)
    elif given != "OnDelete" and not is_kept:
        yield Finding(resource, _STRATEGY, 'needs "OnDelete": Kubernetes would recreate pods with running jobs')


def _killed(resource: ResourceView) -> Iterator[Finding]:
    """Yield times that are too short for a cluster's pods to finish their work."""
    path = ("spec", "template", "spec", "terminationGracePeriodSeconds")
    seconds = whole_number(look(resource.props, *path))
    if (
        resource.kind == "StatefulSet"
        and seconds is not None
        and seconds < _GRACE
        and (resource.is_ours or resource.is_patch)
    ):
        yield Finding(
            resource, path, f"got {seconds}, needs {_GRACE} or more: Kubernetes would kill the pod while it works"
        )


UNDRAINED_NODES = StackPolicy(
    name="undrained-nodes",
    description="Nodes leave a node set, and are recreated, only after they were drained.",
    violated_by="a transformation or a patch that lowers the `replicas` of a node set's StatefulSet, or changes its "
    "`updateStrategy`; an autoscaler that scales it; `terminationGracePeriodSeconds` below 30 in a pod of a cluster",
    cure="Leave the StatefulSet as it is, and set node_sets[].replicas, which drains first, and drain.grace.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    check=_undrained,
)


def _drain_of(resource: ResourceView) -> object:
    """Return the drain policy of a NodeDrain; UNKNOWN if a part is not known, None for other resources."""
    if not resource.acts_as("NodeDrain"):
        return None
    policy = snake_keys(resource.input("policy"))
    if policy is UNKNOWN or (isinstance(policy, Mapping) and UNKNOWN in policy.values()):
        return UNKNOWN
    try:
        return parse_drain(policy, "drain")
    except SpecError:
        return None  # the component refuses it, and reports all problems
