"""The first resource of a cluster: its check reads the live Kubernetes before anything is applied."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG, ClusterConnection
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.holder import hold, holder
from soperator_pulumi.operations.preflight import (
    PrerequisitesInputs,
    Reference,
    closed_api_servers,
    missing_rights,
    problems,
    problems_before_up,
    ssh_host_public_key,
)

_PUBLIC_KEY = "ssh_host_public_key"
_FINGERPRINT = "ssh_host_fingerprint"
_API_SERVERS = "api_servers"


class PrerequisitesProvider(LiveProvider):
    """Check and read: nothing is created, and nothing is removed."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Fail with all problems in one message. Values that a preview does not know yet are checked in the deployment.

        Missing addresses of the Kubernetes API are filled in with those found, so that previews know them.
        """
        if has_unknown([news.get(KUBECONFIG), news.get(CONTEXT)]):
            return CheckResult(news, [])
        try:
            kube = self.kube(news)
            addresses, not_known = closed_api_servers(kube, news.get(_API_SERVERS))
            found = [*problems_before_up(kube, _asked(news), _asked(olds) if olds else None), *not_known]
        except KubernetesError as error:
            return CheckResult(news, [CheckFailure("", str(error))])
        if found:
            return CheckResult(news, [CheckFailure("", str(SpecError(news["where"], found)))])
        return CheckResult({**news, _API_SERVERS: addresses}, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare the inputs, and the live host key."""
        if has_unknown(news) or _asked(olds) != _asked(news):
            return DiffResult(changes=True)
        return DiffResult(changes=self._found(news) != {key: olds.get(key) for key in (_PUBLIC_KEY, _FINGERPRINT)})

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Record the host key, if the caller has the rights for everything that follows.

        Raises:
            SpecError: rights are missing, or objects that the program should have created before. Nothing has been
                applied.
        """
        self._require_all(props)
        return CreateResult(props["namespace"], {**props, **self._found(props)})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Record the host key. If the component was renamed, it holds the cluster under its new name from now on.

        Raises:
            SpecError: rights are missing, or objects that the program should have created before. Nothing has been
                applied.
        """
        self._require_all(news, olds)
        wanted, before = _asked(news), _asked(olds)
        kube = self.kube(news)
        if wanted.component != before.component and holder(kube, wanted.namespace) == before.component:
            hold(kube, wanted.namespace, wanted.component, wanted.part_of)
        return UpdateResult({**news, **self._found(news)})

    def _require_all(self, props: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> None:
        """Require what a preview can't: the rights, and the objects that the program creates before the cluster."""
        kube, wanted = self.kube(props), _asked(props)
        missing = [*missing_rights(kube, wanted.namespace)]
        if wanted != wanted.strict:
            missing += problems(kube, wanted.strict, _asked(before) if before else None)
        if missing:
            raise SpecError(props["where"], missing)

    def _found(self, props: Mapping[str, Any]) -> dict[str, str]:
        """Return the public half of the user's own host key; empty if the key is generated."""
        wanted = _asked(props)
        for reference in wanted.references:
            if reference.holds == "ssh host key":
                blob = ssh_host_public_key(self.kube(props), wanted.namespace, reference)
                if blob is None:
                    break  # it is gone since the check
                digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
                return {
                    _PUBLIC_KEY: f"ssh-ed25519 {base64.b64encode(blob).decode()}",
                    _FINGERPRINT: f"SHA256:{digest}",
                }
        return {_PUBLIC_KEY: "", _FINGERPRINT: ""}


def _asked(props: Mapping[str, Any]) -> PrerequisitesInputs:
    """Return the inputs, without references that are not known yet."""
    known = [reference for reference in props["references"] if not has_unknown(reference)]
    return PrerequisitesInputs.model_validate({**props, "references": known})


class Prerequisites(LiveResource, module="soperator", name="Prerequisites"):
    """Prerequisites of a cluster in Kubernetes: Secrets, claims, classes, and an exclusive namespace."""

    ssh_host_public_key: pulumi.Output[str]
    """Public half of the host key in the user's own Secret; empty if the key is generated."""

    ssh_host_fingerprint: pulumi.Output[str]
    """Fingerprint of that key."""

    api_servers: pulumi.Output[Sequence[str]]
    """Addresses of the Kubernetes API, in CIDR notation: as given, or as found."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        where: str,
        create_namespace: bool,
        namespace_created_by_program: pulumi.Output[bool] | None,
        keep_namespace: bool,
        owner_label: str,
        part_of: Mapping[str, str],
        references: Sequence[Mapping[str, pulumi.Input[str | bool]]],
        api_servers: Sequence[str] | None,
        ipv6: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "where": where,
            "create_namespace": create_namespace,
            "keep_namespace": keep_namespace,
            "owner_label": owner_label,
            "part_of": {**part_of},
            "references": [*references],
            _API_SERVERS: None if api_servers is None else [*api_servers],
            _PUBLIC_KEY: None,
            _FINGERPRINT: None,
            # Not in states of versions without them, which would show a change.
            **(
                {"namespace_created_by_program": created}
                if (created := namespace_created_by_program) is not None
                else {}
            ),
            **({"ipv6": True} if ipv6 else {}),
        }
        super().__init__(PrerequisitesProvider(), resource_name, cluster, inputs, opts)


__all__ = ["Prerequisites", "PrerequisitesProvider", "Reference"]
