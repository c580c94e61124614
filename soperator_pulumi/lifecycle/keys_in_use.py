"""The resource after the cluster's keys: up to date when every running daemon uses the newest keys."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, UpdateResult
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import secret_path
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.key_rotation import KeyRotation
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef, cluster_of
from soperator_pulumi.operations.progress import MachineClock, report

_FINGERPRINT_DIGITS = 12

KEYS_BEFORE = "keys_before"
"""Input with the recorded keys, for policies, which see inputs but no state."""


class KeyKind(StrEnum):
    """Kind of a key, and its name in messages."""

    MUNGE = "munge key"
    SSH_HOST = "ssh host key"
    JWT = "key that signs tokens"


class KeyInUse(BaseModel):
    """A key of the cluster, in a Secret."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: KeyKind
    secret: str
    key: str
    """Name of the key in the Secret's data."""
    fingerprint: str | None = None
    """Start of its SHA-256 sum; None to compute it from the user's own Secret."""


class KeysInUseInputs(ClusterRef):
    """The cluster's keys; the selector has the labels of all its pods."""

    keys: tuple[KeyInUse, ...]


def key_fingerprint(key: bytes) -> str:
    """Return the start of a key's SHA-256 sum: enough to detect another key, too little to find the key."""
    return hashlib.sha256(key).hexdigest()[:_FINGERPRINT_DIGITS]


def with_keys_before(olds: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with the recorded keys as `keys_before`; a new cluster has no such input."""
    before = olds.get("keys")
    return {**news} if before is None else {**news, KEYS_BEFORE: before}


class KeysInUseProvider(PinnedProvider):
    """Make daemons use new keys. Delete removes nothing."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Add the previous keys, and the fingerprints of keys in the user's own Secrets, so that previews know them.

        A live cluster without a recorded resource was created by an earlier release, whose states show generated keys:
        the check reports such keys.
        """
        checked = super().check(olds, with_keys_before(olds, news))
        given: list[dict[str, Any]] = checked.inputs["keys"]
        own = [key for key in given if not key.get("fingerprint")]
        try:
            if not olds:
                self._report_exposed(news, [key for key in given if key not in own])
            found = [{**key, "fingerprint": self._fingerprint(news, key)} if key in own else key for key in given]
        except KubernetesError:
            return checked  # the operation that acts reports it
        return CheckResult({**checked.inputs, "keys": found}, checked.failures)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Report the keys that change, and what the change costs."""
        changed = [key for key in news["keys"] if has_unknown(key) or key not in olds["keys"]]
        before = {key["kind"] for key in olds["keys"]}
        try:
            self._report_costs(news, [key for key in changed if key["kind"] in before and key["fingerprint"]])
        except KubernetesError as error:
            report(f"{cluster_of(news)}: cannot read its pods: {error}")
        return DiffResult(changes=bool(changed))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Make daemons use the keys: the cluster may be older than this resource."""
        self._bring(props, ())
        return CreateResult(f"{props['namespace']}/keys-in-use", {**props})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Make daemons use the changed keys."""
        self._bring(news, KeysInUseInputs.model_validate(olds).keys)
        return UpdateResult({**news})

    def _bring(self, props: dict[str, Any], in_use: Sequence[KeyInUse]) -> None:
        self.pinned_kube(props)
        rotation = self._rotation(props)
        for key in KeysInUseInputs.model_validate(props).keys:
            if key.kind is KeyKind.MUNGE and key not in in_use:
                rotation.munge(key.secret, key.key)
            if key.kind is KeyKind.SSH_HOST and key not in in_use:
                rotation.ssh_host(key.secret, key.key)

    def _report_exposed(self, news: dict[str, Any], generated: Sequence[Mapping[str, Any]]) -> None:
        live = [key for key in generated if self._fingerprint(news, key) not in {None, key["fingerprint"]}]
        if not live:
            return
        kinds = ", ".join(key["kind"] for key in live)
        report(
            f"{cluster_of(news)}: new keys replace generated ones ({kinds}) that an earlier release wrote as "
            "plain text into ids of this stack's state. They stay in its history and backups, but are useless after "
            "this update. See docs/state.md."
        )
        self._report_costs(news, live)

    def _report_costs(self, news: dict[str, Any], changed: Sequence[Mapping[str, Any]]) -> None:
        kinds = {key["kind"] for key in changed}
        cluster = cluster_of(news)
        if KeyKind.MUNGE in kinds and (pods := self._rotation(news).munge_pods()):
            report(
                f"{cluster}: a new munge key, which {len(pods)} pods load at the same moment. Running jobs continue. "
                "For four seconds no job starts, and a step that starts then may fail."
            )
        if KeyKind.SSH_HOST in kinds:
            report(
                f"{cluster}: a new host key of the login nodes: open sessions stay, and ssh clients refuse new ones "
                "until they know it. Give users its fingerprint, the output of the login nodes."
            )
        if KeyKind.JWT in kinds:
            report(
                f"{cluster}: a new key that signs tokens: slurmctld and slurmdbd restart, and every earlier "
                "token is refused."
            )

    def _fingerprint(self, props: Mapping[str, Any], key: Mapping[str, Any]) -> str | None:
        """Return the fingerprint of a key in a live Secret; None if there is none, or if it is not known yet."""
        if has_unknown([props["namespace"], key["secret"]]):
            return None
        found = self.kube(props).get(secret_path(props["namespace"], key["secret"])) or {}
        data = (found.get("data") or {}).get(key["key"])
        return None if data is None else key_fingerprint(base64.b64decode(data))

    def _rotation(self, props: Mapping[str, Any]) -> KeyRotation:
        return KeyRotation(self.kube(props), props["namespace"], props["selector"], report, MachineClock())


class KeysInUse(LiveResource, module="soperator", name="KeysInUse"):
    """Keys of a cluster that every daemon uses when the resource is up to date."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        keys: Sequence[Mapping[str, pulumi.Input[str] | None]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of all of its pods.
            keys: The keys, with the fields of `KeyInUse`.
            opts: Options of the resource.
        """
        super().__init__(KeysInUseProvider(), resource_name, cluster, {"keys": [*keys]}, opts)
