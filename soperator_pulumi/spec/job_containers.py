"""Containers in jobs: images of users in place of the jail's files."""

from typing import Annotated

from soperator_pulumi.spec.validation.base import Model, number, whole


class ContainersSpec(Model):
    """Containers in jobs: `srun --container-image=...`, with the options of Pyxis."""

    writes_mib: Annotated[int, whole(1, 1_000_000)] = 1024
    """Limit in MiB of what a task changes in its container's own files. It is in memory, counts as the job's, and goes
    with the task. Default: 1 GiB."""
    images_gib: Annotated[float, number(0.001, what="a number of GiB")] | None = None
    """Limit in GiB of a user's unpacked images. The one that was not started for longest goes first; one in which a
    task runs stays. An image that does not fit is refused. Default: none."""
    unused_days: Annotated[int, whole(1, 3650)] | None = None
    """Days after its last start when an image in which no task runs goes. Default: it stays."""
