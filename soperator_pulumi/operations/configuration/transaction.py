"""Changing configuration files as a transaction: in force everywhere, or the old ones again.

1. Refuse what would kill jobs.
2. Apply the ConfigMap in place, marked as not yet in force.
3. Have the kubelets bring the files at once (an annotation on a pod makes its kubelet look), and wait until
   they are there.
4. Look again for what would kill jobs: that may be minutes later.
5. Make them count, as `AfterSync` says. When a daemon refuses: the old files again, the same way, and its words.
6. Mark the ConfigMap as in force.

A run that is killed at any point leaves a ConfigMap that is not marked; the next one begins at 1.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Protocol

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError, SoperatorError, TransportError
from soperator_pulumi.operations.configuration.files import AfterSync, DesiredFiles, LiveFiles, Reader, digest_of_sums
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.pods import Pod, find_pods
from soperator_pulumi.operations.progress import Clock, Report, until

SYNC_SECONDS = 180
"""Without our asking a kubelet takes up to 90 s (measured); with it less than one."""

SYNC_ANNOTATION = "soperator-pulumi/sync"
_ASK_AGAIN_SECONDS = 10


class Activation(Protocol):
    """What makes changed files count."""

    def check(self, old: Mapping[str, str], new: Mapping[str, str], /) -> None:
        """Refuse, before anything is changed, what must not be done now.

        Raises:
            ConfigRefusedError: with the reason.
        """
        ...

    def allow(self, old: Mapping[str, str], new: Mapping[str, str], /) -> None:
        """Refuse, right before files that are in the pods are made to count, what must not be done by then.

        Raises:
            ConfigRefusedError: with the reason.
        """
        ...

    def activate(self, old: Mapping[str, str], new: Mapping[str, str], /) -> None:
        """Make files that are in the pods count.

        Raises:
            ConfigRefusedError: the daemon refuses them; its own words.
        """
        ...


class Transaction:
    """Brings one ConfigMap and its readers to a desired state."""

    def __init__(self, kube: Kube, activations: Mapping[AfterSync, Activation], report: Report, clock: Clock) -> None:
        self._kube = kube
        self._activations = activations
        self._say = report
        self._clock = clock

    def live(self, desired: DesiredFiles) -> LiveFiles | None:
        """Return what is there."""
        body = self._kube.get(desired.path)
        return None if body is None else LiveFiles(body)

    def put(self, desired: DesiredFiles, known_good: Mapping[str, str] | None = None) -> None:
        """Bring `desired` into force.

        Args:
            desired: The ConfigMap as it shall be.
            known_good: The files of the last run that went well, if there was one.

        Raises:
            ConfigRefusedError: the files were refused, and the old ones are in force.
        """
        live = self.live(desired)
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
        """Bring files into force; `judged_by` are those from which the change must be allowed, if it must be."""
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
            raise ConfigRefusedError(f"{refusal}\nNo earlier configuration is known to go back to.") from None
        self._say(f"{desired.name}: refused, restoring the old files")
        try:
            self._bring(desired.with_files(old), activation, desired.files)
        except SoperatorError as error:
            raise ConfigRefusedError(
                f"{refusal}\nRestoring the old files failed as well: {error}\n"
                "Correct the configuration and run again: it is not in force yet."
            ) from None
        raise ConfigRefusedError(f"{refusal}\nThe old files are in force again.") from None

    def _sync(self, desired: DesiredFiles) -> None:
        """Wait until every container that reads the files and runs has them."""
        for reader in desired.readers:
            pods = self._pods(desired, reader)
            for pod in pods:
                self._ask_kubelet(pod, desired.digest)
            for pod in pods if reader.verified else []:
                listing = _listing(desired, reader, pod)
                if listing is not None:
                    self._await_files(desired, reader, pod, listing)

    def _pods(self, desired: DesiredFiles, reader: Reader) -> list[Pod]:
        selector = {**desired.selector, "app.kubernetes.io/component": reader.component}
        return [pod for pod in find_pods(self._kube, desired.namespace, selector) if not pod.going]

    def _ask_kubelet(self, pod: Pod, mark: str) -> None:
        self._kube.merge(pod.path, {"metadata": {"annotations": {SYNC_ANNOTATION: mark}}})

    def _await_files(self, desired: DesiredFiles, reader: Reader, pod: Pod, listing: Sequence[str]) -> None:
        asked = self._clock.now()
        for left in until(asked + SYNC_SECONDS, self._clock):
            if not self._still_reads(pod, reader) or self._has_files(desired, reader, pod, listing):
                return
            if self._clock.now() - asked > _ASK_AGAIN_SECONDS:
                asked = self._clock.now()
                self._ask_kubelet(pod, f"{desired.digest[:16]}-{left:.0f}")
                self._say(f"{desired.name}: waits for its files in {pod.name}, {left:.0f} s left")
        raise NotReadyError(
            f"{desired.name}: its new files are not in pod {desired.namespace}/{pod.name} after {SYNC_SECONDS} s. "
            "Is its machine's kubelet well? Run again to go on."
        )

    def _still_reads(self, pod: Pod, reader: Reader) -> bool:
        """Whether the pod runs. One that doesn't gets the newest files when it starts."""
        body = self._kube.get(pod.path)
        return body is not None and Pod.of(body).uid == pod.uid and Pod.of(body).runs(reader.container)

    def _has_files(self, desired: DesiredFiles, reader: Reader, pod: Pod, listing: Sequence[str]) -> bool:
        try:
            place = self._kube.transport(desired.namespace, pod.name, reader.container)
            answer = place.run(listing, timeout_seconds=20)
        except TransportError:
            return False  # the pod may be going: the next look tells
        return answer.returncode == 0 and _digest(answer.stdout) == desired.digest


def _listing(desired: DesiredFiles, reader: Reader, pod: Pod) -> Sequence[str] | None:
    """Return the command that prints the digests of the files in a container; None where it does not read them."""
    directory = pod.sees(desired.name, reader.container)
    if directory is not None:
        command = f"cd {shlex.quote(directory)} && find -L . -maxdepth 1 -type f -exec sha256sum {{}} +"
        return ["/bin/sh", "-c", command]
    return None if reader.sums is None else ["cat", reader.sums]


def _digest(listing: str) -> str:
    """Return the digest of the files in the output of `sha256sum`."""
    pairs = (line.split(maxsplit=1) for line in listing.splitlines())
    return digest_of_sums({name.removeprefix("./"): found for found, name in pairs})
