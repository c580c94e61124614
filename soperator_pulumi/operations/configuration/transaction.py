"""Transaction of configuration files: the new files become effective everywhere, or the old ones are restored.

1. Refuse a change that would lose jobs.
2. Apply the ConfigMap or Secret in place, marked as not yet effective.
3. Make the kubelets update the files at once (a change of a pod's annotation triggers its kubelet), and wait until they
   are there.
4. Again refuse a change that would lose jobs: minutes may have passed.
5. Activate the files according to `AfterSync`. If a daemon refuses them, restore the old files in the same way, and
   report its message.
6. Mark the object as effective.

A run that is killed at any point leaves an object without the mark; the next run starts again at 1.
"""

import secrets
import shlex
from collections.abc import Mapping, Sequence
from typing import Protocol

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError, SoperatorError, TransportError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.configuration.desired_files import (
    AfterSync,
    DesiredFiles,
    LiveFiles,
    Reader,
    digest_of_sums,
)
from soperator_pulumi.operations.progress import Clock, Report, until

SYNC_SECONDS = 180
"""Time for a sync: without a trigger, a kubelet takes up to 90 s (measured), with one below 1 s."""

SYNC_ANNOTATION = "soperator-pulumi/sync"
_ASK_AGAIN_SECONDS = 10


class Activation(Protocol):
    """A way to make changed files effective."""

    def check(self, old: Mapping[str, str], new: Mapping[str, str], /) -> None:
        """Refuse a change that must not be made, before anything is changed.

        Raises:
            ConfigRefusedError: the change must not be made; with the reason.
        """
        ...

    def allow(self, old: Mapping[str, str], new: Mapping[str, str], /) -> None:
        """Refuse a change that must not be made, just before the files, which are in the pods, are activated.

        Raises:
            ConfigRefusedError: the change must not be made; with the reason.
        """
        ...

    def activate(self, old: Mapping[str, str], new: Mapping[str, str], /) -> None:
        """Activate files that are in the pods.

        Raises:
            ConfigRefusedError: the daemon refuses them; with its own message.
        """
        ...


class Transaction:
    """Brings a ConfigMap or Secret, and the pods that read it, to a desired state."""

    def __init__(self, kube: Kube, activations: Mapping[AfterSync, Activation], report: Report, clock: Clock) -> None:
        self._kube = kube
        self._activations = activations
        self._report = report
        self._clock = clock

    def live(self, desired: DesiredFiles) -> LiveFiles | None:
        """Return the live files; None if the object does not exist."""
        body = self._kube.get(desired.path)
        return None if body is None else LiveFiles(body)

    def put(self, desired: DesiredFiles, known_good: Mapping[str, str] | None = None) -> None:
        """Make `desired` effective. If its files are in force already, only labels and annotations are written.

        Args:
            desired: The desired ConfigMap or Secret.
            known_good: Files of the last successful run, if there is one.

        Raises:
            ConfigRefusedError: the files were refused, and the old ones are effective.
        """
        live = self.live(desired)
        if live is not None and live.in_force and live.files == desired.files:
            self._kube.apply(desired.path, desired.manifest(in_force=True))
            return
        old = live.files if live is not None and live.in_force else known_good
        activation = self._activations[desired.after_sync]
        before = None if live is None else old if old is not None else live.files
        if before is not None:
            activation.check(before, desired.files)
        try:
            self._bring(desired, activation, old or {}, before)
        except ConfigRefusedError as refusal:
            self._restore(desired if live is None else desired.by(live.resource), activation, old, refusal)

    def _bring(
        self,
        desired: DesiredFiles,
        activation: Activation,
        old: Mapping[str, str],
        judged_by: Mapping[str, str] | None = None,
    ) -> None:
        """Make files effective. If `judged_by` is given, the change from it must be allowed first."""
        self._kube.apply(desired.path, desired.manifest(in_force=False))
        self._sync(desired)
        if judged_by is not None:
            activation.allow(judged_by, desired.files)
        activation.activate(old, desired.files)
        self._kube.apply(desired.path, desired.manifest(in_force=True))

    def _restore(
        self,
        desired: DesiredFiles,
        activation: Activation,
        old: Mapping[str, str] | None,
        refusal: ConfigRefusedError,
    ) -> None:
        if old is None:
            raise ConfigRefusedError(f"{refusal}\nNo earlier configuration is known to restore.") from None
        self._report(f"{desired.name}: refused, restoring the old files")
        try:
            self._bring(desired.with_files(old), activation, desired.files)
        except SoperatorError as error:
            raise ConfigRefusedError(
                f"{refusal}\nRestoring the old files failed as well: {error}\n"
                "Fix the configuration and run again: it is not in effect yet."
            ) from None
        raise ConfigRefusedError(f"{refusal}\nThe old files are in effect again.") from None

    def _sync(self, desired: DesiredFiles) -> None:
        """Wait until every running container that reads the files has them."""
        for reader in desired.readers:
            selector = {**desired.selector, "app.kubernetes.io/component": reader.component}
            pods = [pod for pod in find_pods(self._kube, desired.namespace, selector) if not pod.going]
            for pod in pods:
                ask_kubelet(self._kube, pod)
            for pod in pods if reader.verified else []:
                listing = _listing(desired, reader, pod)
                if listing is not None:
                    self._await_files(desired, reader, pod, listing)

    def _await_files(self, desired: DesiredFiles, reader: Reader, pod: Pod, listing: Sequence[str]) -> None:
        asked = self._clock.now()
        for left in until(asked + SYNC_SECONDS, self._clock):
            if not self._still_reads(pod, reader) or self._has_files(desired, reader, pod, listing):
                return
            if self._clock.now() - asked > _ASK_AGAIN_SECONDS:
                asked = self._clock.now()
                ask_kubelet(self._kube, pod)
                self._report(f"{desired.name}: waits for its files in {pod.name}, {left:.0f} s left")
        raise NotReadyError(
            f"{desired.name}: its new files are not in pod {desired.namespace}/{pod.name} after {SYNC_SECONDS} s. "
            "Check its machine's kubelet. Run again to continue."
        )

    def _still_reads(self, pod: Pod, reader: Reader) -> bool:
        """Return True if the pod runs. Any other pod gets the newest files when it starts."""
        body = self._kube.get(pod.path)
        return body is not None and Pod.of(body).uid == pod.uid and Pod.of(body).runs(reader.container)

    def _has_files(self, desired: DesiredFiles, reader: Reader, pod: Pod, listing: Sequence[str]) -> bool:
        try:
            place = self._kube.transport(desired.namespace, pod.name, reader.container)
            answer = place.run(listing, timeout_seconds=20)
        except TransportError:
            return False  # the pod may be about to go: the next look shows it
        pairs = (line.split(maxsplit=1) for line in answer.stdout.splitlines())
        sums = {name.removeprefix("./"): found for found, name in pairs}
        return answer.returncode == 0 and digest_of_sums(sums) == desired.digest


def ask_kubelet(kube: Kube, pod: Pod) -> None:
    """Make the pod's kubelet update changed files now: a changed annotation triggers it."""
    # A digest of a Secret's files would let readers of pods try passwords.
    kube.merge(pod.path, {"metadata": {"annotations": {SYNC_ANNOTATION: secrets.token_hex(8)}}})


def _listing(desired: DesiredFiles, reader: Reader, pod: Pod) -> Sequence[str] | None:
    """Return the command that prints the digests of the files in a container; None if it does not read them."""
    directory = pod.sees(desired.name, reader.container, secret=desired.is_secret)
    if directory is not None:
        command = f"cd {shlex.quote(directory)} && find -L . -maxdepth 1 -type f -exec sha256sum {{}} +"
        return ["/bin/sh", "-c", command]
    return None if reader.sums is None else ["cat", reader.sums]
