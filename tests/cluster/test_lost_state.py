"""slurmctld on a volume without its state: refused with the reason, and accepted for a reason."""

import time
from collections.abc import Callable

import pytest

from tests.cluster.slurm import Slurm, a_node_set
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


def test_another_volume_without_the_state_is_refused_soon_and_accepted_for_a_reason(
    new_slurm: Callable[..., Slurm],
) -> None:
    slurm = new_slurm(node_sets=[a_node_set("cpu", replicas=1)])
    slurm.up()
    first = slurm.submit("true")
    slurm.wait_for_job(first, "COMPLETED")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    slurm.api.create_namespaced_persistent_volume_claim(slurm.namespace, {"metadata": {"name": "other"}, "spec": claim})

    slurm.cluster["storage"]["state"] = {"existing_claim": "other"}
    began = time.monotonic()
    with pytest.raises(DeployError, match="slurmctld has run before"):
        slurm.up()
    assert time.monotonic() - began < 240, "up waits for ten minutes if no pod says why"

    slurm.cluster["storage"]["state"]["accept"] = {"emptied": "a trial"}
    slurm.cluster["slurm"]["extra"]["FirstJobId"] = first + 100
    slurm.api.delete_namespaced_pod("cpu-0", slurm.namespace)  # a slurmd that runs does not register again
    slurm.up()
    second = slurm.submit("true")
    assert second >= first + 100
    slurm.wait_for_job(second, "COMPLETED")
