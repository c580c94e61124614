"""CSI drivers of volumes, which must be registered before a claim can wait for one."""

from collections.abc import Collection, Iterator

from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, warned

_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"


def missing_drivers(kube: Kube, drivers: Collection[str]) -> Iterator[Diagnosis]:
    """Yield a warning for every driver without a CSIDriver. A chart of the same program may install it.

    Args:
        kube: The Kubernetes.
        drivers: Names of drivers.
    """
    for driver in drivers:
        if kube.get(f"{_DRIVERS}/{driver}") is None:
            yield warned(
                "prerequisites",
                f"CSIDriver {driver}",
                "missing, so its volumes are neither created nor mounted",
                f"the CSI driver {driver}",
                "Install it before the cluster (docs/storage.md has its name), unless the program itself does.",
            )
