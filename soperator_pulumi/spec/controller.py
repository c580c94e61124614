"""The controller: slurmctld, which holds the queue and decides."""

from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts


class ControllerSpec(Scheduled):
    """The pod that runs slurmctld."""

    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="500m", memory="1Gi"), limits=ResourceAmounts(memory="4Gi")
    )
    """What the slurmctld container asks for. Default: half a CPU and 1 GiB, at most 4 GiB of memory; CPU is not
    limited, as a throttled controller delays every job."""
