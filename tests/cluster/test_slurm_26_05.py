"""A new cluster of Slurm 26.05; other test clusters have 24.11, but in `make soak`, which also upgrades one."""

from collections.abc import Callable

import pytest

from tests.cluster.scrapes import scraped
from tests.cluster.slurm import QUICK, SMALL, Slurm, a_node_set
from tests.cluster.workers import nodes, scale
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

NEW = "26.05"


def test_jobs_run_in_the_jail_series_are_served_and_a_node_leaves(
    kubernetes: Kubernetes, new_slurm: Callable[..., Slurm]
) -> None:
    kubernetes.load_images(NEW)
    slurm = new_slurm(
        slurm={"version": NEW, "constrain": "none", "extra": dict(QUICK)},
        node_sets=[a_node_set("cpu", replicas=2)],
        metrics={"interval": "10s", "allowed_namespaces": [], "pod_resources": SMALL},
    )
    slurm.up()

    assert slurm.ssh("sinfo --version").stdout.startswith(f"slurm-wlm {NEW}")
    assert sorted(slurm.ssh("srun -N2 hostname").stdout.split()) == ["cpu-0", "cpu-1"]
    assert slurm.ssh("srun ls /").stdout == slurm.ssh("ls /").stdout
    status = dict(line.split(":", 1) for line in slurm.ssh("srun cat /proc/self/status").stdout.splitlines())
    assert (status["NoNewPrivs"].strip(), int(status["CapEff"], 16)) == ("1", 0)
    wait_until(lambda: scraped(slurm).get("slurm_nodes") == 2, what="the exporter knows both nodes")

    scale(slurm, 1)

    assert set(nodes(slurm)) == {"cpu-0"}
    assert slurm.deployer().up().changed == ()
