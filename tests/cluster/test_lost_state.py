"""slurmctld's state that is lost: slurmctld does not start as in a new cluster, until the loss is accepted."""

from collections.abc import Callable

import pytest

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = pytest.mark.cluster

LOSE = "pkill -STOP -x slurmctld && rm -rf /var/spool/slurmctld/* && pkill -KILL -x slurmctld"


def log_of(slurm: Slurm) -> str:
    return str(slurm.api.read_namespaced_pod_log("controller-0", slurm.namespace, container="slurmctld"))


def test_slurmctld_waits_for_its_lost_state_until_the_loss_is_accepted(new_slurm: Callable[..., Slurm]) -> None:
    slurm = new_slurm(ready_timeout_seconds=60)
    slurm.up()
    assert slurm.submit("true") == 1

    slurm.exec("controller-0", "slurmctld", "sh", "-c", LOSE)
    wait_until(
        lambda: "has run before (on the claim slurmctld-state)" in log_of(slurm),
        what="slurmctld refuses to start",
    )
    with pytest.raises(DeployError, match=r"storage\.state\.accept\.emptied"):
        slurm.up()

    slurm.cluster["storage"] = {
        **slurm.cluster.get("storage", {}),
        "state": {**slurm.cluster.get("storage", {}).get("state", {}), "accept": {"emptied": "a test"}},
    }
    slurm.up()
    assert slurm.submit("true") == 1
