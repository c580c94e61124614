"""Policy on deployments: most nodes of a node set stay in service while others are recreated or missing."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import TypeAdapter, ValidationError, WithJsonSchema

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.value_tree import UNKNOWN, look, snake_keys, whole_number
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.types.int_or_percent import Share

_SHARE = TypeAdapter(Share)


class ServiceSettings(PolicySettings):
    """Settings of `nodes-in-service`."""

    at_most: Annotated[Share, WithJsonSchema({"type": ["integer", "string"]})] = Share(50, percent=True)
    """Nodes that a deployment may take out of service or lack, as a number or a percentage of the node set. Default: 50
    %. A rolling update may recreate one node at a time in any case."""


def _out_of_service(resource: ResourceView, _run: Circumstances, settings: ServiceSettings) -> Iterator[Finding]:
    if not resource.acts_as("NodesReady"):
        return
    nodes = whole_number(resource.input("replicas"))
    update, unready = snake_keys(resource.input("rolling_update")), resource.input("max_unready")
    if nodes is None or UNKNOWN in (unready, update, look(update, "max_unavailable")):
        yield not_known(resource, ("replicas",))
        return
    try:
        missing = _SHARE.validate_python(unready).of(nodes)
        recreated = _SHARE.validate_python(look(update, "max_unavailable")).of(nodes)
    except ValidationError:
        return  # the component refuses it
    allowed = settings.at_most.of(nodes)
    if missing > allowed:
        text = f"{missing} of {nodes} nodes may be missing at the end, at most {allowed} are allowed"
        yield Finding(resource, ("max_unready",), text)
    if recreated > max(1, allowed):
        where = ("rolling_update", "max_unavailable")
        text = f"{recreated} of {nodes} nodes may be out of service at once, at most {max(1, allowed)} are allowed"
        yield Finding(resource, where, text)


NODES_IN_SERVICE = ResourcePolicy(
    name="nodes-in-service",
    description="A deployment keeps most nodes of a node set in service, and fails without them.",
    violated_by="`max_unready` or `rolling_update.max_unavailable` above `at_most`, such as `100%`",
    cure="Lower node_sets[].max_unready and rolling_update.max_unavailable. For machines that "
    "an autoscaler brings, raise ready_timeout_seconds, or set wait_until_ready to false.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    settings=ServiceSettings,
    check=_out_of_service,
)
