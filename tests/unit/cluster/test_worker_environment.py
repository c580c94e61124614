"""Variables of a node set, in a file that the SPANK plugin reads in each task, and every job can read."""

import re
from pathlib import Path

from tests.unit.cluster.worker_container import Worker, paths


def listed(worker: Worker, **environment: str) -> str:
    worker.options["environment"] = environment
    worker.start()
    return (worker.root / "job-files/environment").read_text()


def test_each_variable_is_a_line(worker: Worker) -> None:
    odd = "a 'b' \"c\" \\n `id` %s"
    assert listed(worker, NCCL_IB_HCA="=mlx5_0:1,mlx5_1:1", ODD=odd) == f"NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nODD={odd}\n"


def test_a_restarted_container_has_the_variables_once(worker: Worker) -> None:
    listed(worker, NCCL_DEBUG="INFO")
    assert listed(worker, NCCL_DEBUG="WARN") == "NCCL_DEBUG=WARN\n"
    assert listed(worker) == ""


def test_the_plugin_reads_the_file_that_the_pod_writes() -> None:
    header = (Path(__file__).parents[3] / "spank-plugin/node_environment.h").read_text()
    assert re.findall('NODE_ENVIRONMENT "(.*)"', header) == [f"{paths()['JOB_FILES']}/environment"]
