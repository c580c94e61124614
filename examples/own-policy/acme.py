"""The policies: those of soperator-pulumi without one, and one that only this company has."""

from collections.abc import Iterator

from soperator_pulumi.policy import (
    POLICIES,
    UNKNOWN,
    Circumstances,
    Finding,
    PolicySettings,
    PolicySeverity,
    ResourcePolicy,
    ResourceView,
    levels,
    look,
    not_known,
    without,
)


class CostCentreSettings(PolicySettings):
    """Settings of `cost-centres`, in a stack's file under `soperator:policy.settings.cost-centres`."""

    prefix: str = "cc-"
    """First characters of every cost centre. Default: `cc-`."""


def check(resource: ResourceView, _run: Circumstances, settings: CostCentreSettings) -> Iterator[Finding]:
    """Yield a finding for a namespace that no one pays for."""
    if not (resource.is_kubernetes and resource.kind == "Namespace"):
        return
    path = ("metadata", "labels", "cost-centre")
    given = look(resource.props, *path)
    if given is UNKNOWN:
        yield not_known(resource, path)
    elif not str(given or "").startswith(settings.prefix):
        yield Finding(resource, path, f"needs a cost centre, {settings.prefix}...")


COST_CENTRES = ResourcePolicy(
    name="cost-centres",
    description="Somebody pays for every namespace.",
    violated_by="a Namespace without a label `cost-centre`",
    cure="Add the label: labels: {cost-centre: cc-4711} in the cluster's description.",
    levels=levels(local="disabled", dev="advisory", staging="mandatory", prod="mandatory"),
    severity=PolicySeverity.LOW,
    tags=("cost",),
    settings=CostCentreSettings,
    check=check,
)

POLICIES_OF_ACME = [
    *without(POLICIES, {"names": "our inventory gives all names, and checks them"}),
    COST_CENTRES,
]
