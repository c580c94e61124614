"""The resource that owns a ConfigMap of configuration files and changes it in a transaction.

`operations.configuration` does the work. The diff compares with the live object and reports changed lines; for a
Secret, whose files `SecretFiles` owns, only the changed keys.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, UpdateResult

from soperator_pulumi.errors import KubernetesError, SlurmError, TransportError
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.configuration.accounting_change import effect_of_another_database, effect_of_switch
from soperator_pulumi.operations.configuration.activations import Nothing, Sshd
from soperator_pulumi.operations.configuration.concealed import Concealed, changed_keys
from soperator_pulumi.operations.configuration.desired_files import (
    AfterSync,
    DesiredFiles,
    LiveFiles,
    Reader,
    differences,
)
from soperator_pulumi.operations.configuration.slurmctld import Slurmctld
from soperator_pulumi.operations.configuration.slurmdbd import Slurmdbd
from soperator_pulumi.operations.configuration.transaction import Activation, Transaction
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, Report, report

KNOWN_GOOD = "known_good"
"""Output with the files of the last successful run; a refresh sets `files` to the live ones, and leaves this
unchanged."""


class ConfigFilesProvider(PinnedProvider):
    """Create, change and delete the ConfigMap or Secret."""

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live files, and report the lines that will change."""
        if has_unknown(news):
            return DiffResult(changes=True)
        desired = DesiredFiles.model_validate(news)
        if (desired.namespace, desired.name) != (olds.get("namespace"), olds.get("name")):
            return DiffResult(changes=True, replaces=["namespace", "name"], delete_before_replace=True)
        hidden = Concealed.of(desired.files) if desired.is_secret else Concealed()
        try:
            live = _live(self.pinned_kube(news), desired)
        except KubernetesError as error:
            report(f"{desired.name}: cannot compare with the live files: {hidden.text(str(error))}")
            return DiffResult(changes=True)
        before = {} if live is None else live.files
        lines = changed_keys if desired.is_secret else differences
        for line in [*lines(desired.name, before, desired.files), *self._against(news, desired, before)]:
            report(line)
        if live is not None and live.is_as(desired.by(id_)):
            return DiffResult(changes=desired != DesiredFiles.model_validate(olds))
        if live is not None and live.files == desired.files and not live.in_force:
            report(f"{desired.name}: completes an interrupted change")
        return DiffResult(changes=True)

    def _against(self, news: Mapping[str, Any], desired: DesiredFiles, before: Mapping[str, str]) -> Iterator[str]:
        """Yield what happens to accounting's records, and why Slurm's files cannot be changed now."""
        if desired.after_sync is AfterSync.SLURMDBD and (fate := effect_of_another_database(before, desired.files)):
            yield f"{desired.name}: {fate}"
        if desired.after_sync is not AfterSync.SLURM or not before:
            return
        if fate := effect_of_switch(before, desired.files):
            yield f"{desired.name}: {fate}"
        slurmctld = Slurmctld(self.kube(news), desired.namespace, desired.selector, report, MachineClock())
        try:
            reason = slurmctld.refusal(before, desired.files)
        except (KubernetesError, SlurmError, TransportError) as error:
            reason = f"Cannot check whether jobs would be lost: {error}"
        if reason:
            yield f"{desired.name}: would be refused now. {reason}"

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Apply the object. If pods already read it, after a killed run, apply it as an update."""
        desired = DesiredFiles.model_validate(props)
        id_ = f"{desired.namespace}/{desired.name}/{secrets.token_hex(4)}"
        _put(self.pinned_kube(props), desired.by(id_))
        return CreateResult(id_, _outputs(props))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Return the live files; none if the user has given up the namespace.

        Raises:
            KubernetesError: the namespace is missing, or has another UID: this may be the wrong cluster.
        """
        if ClusterRef.model_validate(props).given_up(self.kube(props)):
            return ReadResult("", {})
        recorded = DesiredFiles.model_validate(props)
        live = _live(self.pinned_kube(props), recorded)
        if live is None:
            return ReadResult("", {})
        return ReadResult(id_, {**props, "files": live.files})

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Change the files in a transaction, and record them if it succeeds."""
        desired = DesiredFiles.model_validate(news)
        _put(self.pinned_kube(news), desired.by(id_), olds[KNOWN_GOOD])
        return UpdateResult(_outputs(news))

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Delete the object. A replaced resource leaves its successor's object, which has the same name."""
        recorded = DesiredFiles.model_validate(props)
        kube = self.recorded_kube(props)
        live = _live(kube, recorded)
        if live is not None and live.resource in {id_, ""}:
            kube.delete(recorded.path)


def _outputs(props: dict[str, Any]) -> dict[str, Any]:
    return {**props, KNOWN_GOOD: props["files"]}


def _live(kube: Kube, desired: DesiredFiles) -> LiveFiles | None:
    body = kube.get(desired.path)
    return None if body is None else LiveFiles(body)


def _put(kube: Kube, desired: DesiredFiles, known_good: Mapping[str, str] | None = None) -> None:
    """Make the files effective, without showing values of a Secret in messages."""
    hidden = Concealed()
    if desired.is_secret:
        live = _live(kube, desired)
        hidden = Concealed.of(desired.files, known_good or {}, {} if live is None else live.files)
    with hidden.in_errors():
        _transaction(kube, desired, hidden.report(report)).put(desired, known_good)


def _transaction(kube: Kube, desired: DesiredFiles, shown: Report) -> Transaction:
    clock = MachineClock()
    activations: dict[AfterSync, Activation] = {
        AfterSync.NOTHING: Nothing(),
        AfterSync.SLURM: Slurmctld(kube, desired.namespace, desired.selector, shown, clock),
        AfterSync.SSHD: Sshd(kube, desired.namespace, desired.selector),
        AfterSync.SLURMDBD: Slurmdbd(kube, desired.namespace, desired.selector, shown, clock),
    }
    return Transaction(kube, activations, shown, clock)


class ConfigFiles(LiveResource, module="soperator", name="ConfigFiles"):
    """A ConfigMap whose files are in effect when the resource is up to date."""

    def __init__(
        self,
        resource_name: str,
        *,
        config_map: str,
        cluster: ClusterConnection,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        files: Mapping[str, str],
        readers: Sequence[Reader],
        after_sync: AfterSync = AfterSync.NOTHING,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "name": config_map,
            "labels": {**labels},
            "annotations": {**annotations},
            "files": {**files},
            "readers": [reader.model_dump() for reader in readers],
            "after_sync": after_sync.value,
        }
        super().__init__(ConfigFilesProvider(), resource_name, cluster, inputs, opts)
