"""Containers in jobs: images of users in place of the jail's files."""

from typing import Annotated

from soperator_pulumi.spec.validation.base import Model, whole


class ContainersSpec(Model):
    """Containers in jobs: `srun --container-image=...`, with the options of Pyxis."""

    writes_mib: Annotated[int, whole(1, 1_000_000)] = 1024
    """Limit in MiB of what a task changes in its container's own files. It is in memory, counts as the job's, and goes
    with the task. Default: 1 GiB."""
