"""Dumps of the accounting database to a volume, by a CronJob."""

from typing import Annotated

from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.storage import MAX_GIB, VolumeSpec
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.types.schedule import Schedule
from soperator_pulumi.spec.validation.base import whole


class DumpVolume(VolumeSpec):
    """The volume (ReadWriteOnce) with the dumps."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 20
    """Size in GiB. Default: 20. A compressed dump takes a tenth of the database's size."""


class DumpSpec(Scheduled):
    """Dumps of the database by a CronJob."""

    schedule: Schedule = "30 1 * * *"
    """Schedule in cron's syntax, in UTC. Default: every day at 01:30."""
    keep: Annotated[int, whole(1, 1000)] = 14
    """Number of dumps to keep. An old one is removed when a new one is complete and checked. Default: 14."""
    storage: DumpVolume = DumpVolume()
    """The volume (ReadWriteOnce) with the dumps, kept in a `destroy` like those of `storage`."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="100m", memory="128Mi"), limits=ResourceAmounts(memory="1Gi")
    )
    """Resources of the container that dumps. Default: a tenth of a CPU and 128 MiB, at most 1 GiB of memory."""
