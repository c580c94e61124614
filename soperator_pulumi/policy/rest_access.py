"""Policy on the REST API: tokens are never sent unencrypted."""

from collections.abc import Iterator

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look
from soperator_pulumi.policy.view import ResourceView


def _unencrypted(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.kind != "StatefulSet" or resource.part != "RestApi":
        return
    path = ("spec", "template", "spec", "volumes")
    volumes = look(resource.props, *path)
    if volumes is UNKNOWN or UNKNOWN in listed(volumes):
        yield not_known(resource, path)
    elif not any(look(volume, "name") == "tls" for volume in listed(volumes)):
        yield Finding(
            resource, path, "have no certificate: anyone who can read the network sees users' tokens and scripts"
        )


ENCRYPTED_REST = ResourcePolicy(
    name="encrypted-rest",
    description="Tokens and jobs reach the REST API encrypted.",
    violated_by="`rest` without `tls`",
    cure="Name a Secret with the API's certificate: rest.tls.secret.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    check=_unencrypted,
)
