"""Clocks of machines compared with the API server's, from the renewals of the kubelets' Leases.

A kubelet renews its Lease every ten seconds with its own machine's time (kubernetes.io, Nodes). munge refuses a
credential if clocks differ by more than its time to live, 300 seconds (munge(7)).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned

CHECK = "clocks"

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

_CREDENTIAL_SECONDS = 300
"""Time to live of munge's credentials."""

_NOTED_SECONDS = 60
"""Difference that a pause between a kubelet's renewals cannot explain."""


def server_time(kube: Kube) -> datetime:
    """Return the API server's time, with a precision of a second, from an object that it admits but does not keep."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "soperator-preflight-clock"}}
    made = kube.create("/api/v1/namespaces", body, dry_run=True)
    return datetime.fromisoformat(made["metadata"]["creationTimestamp"])


def clock_findings(leases: Sequence[Json], machines: Sequence[Json], now: datetime) -> Iterator[Diagnosis]:
    """Yield machines whose clocks differ from the API server's or from each other.

    Args:
        leases: Leases of the kubelets.
        machines: Machines that are ready.
        now: The API server's time.
    """
    names = {machine["metadata"]["name"] for machine in machines}
    ahead: Mapping[str, float] = {
        lease["metadata"]["name"]: (datetime.fromisoformat(lease["spec"]["renewTime"]) - now).total_seconds()
        for lease in leases
        if lease["metadata"]["name"] in names and (lease.get("spec") or {}).get("renewTime")
    }
    wrong = {name: seconds for name, seconds in ahead.items() if abs(seconds) > _NOTED_SECONDS}
    for name, seconds in wrong.items():
        severity = refused if abs(seconds) >= _CREDENTIAL_SECONDS else warned
        way = "ahead of" if seconds > 0 else "behind"
        yield severity(
            CHECK,
            f"machine {name}",
            f"its clock is {abs(seconds):.0f} s {way} the API server's",
            f"a difference below {_CREDENTIAL_SECONDS} s, or munge refuses its credentials",
            "Synchronize the machine's clock with a time server (chrony, systemd-timesyncd).",
        )
    if ahead and not wrong:
        yield passed(CHECK, "machines", f"{len(ahead)} clocks are within {_NOTED_SECONDS} s of the API server's")
