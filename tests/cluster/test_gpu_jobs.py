"""Jobs with GPUs: each opens its own and no others. Device nodes are real, and so is the kernel's refusal."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from soperator_pulumi.render.layout import NODE_GRES
from tests.cluster.device_plugin import CONTROL_MINOR, MAJOR, DevicePlugin, served
from tests.cluster.slurm import QUICK, Slurm, a_cluster, a_node_set, unique
from tests.cluster.workers import said
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import paths
from tools.engine import DeployError
from tools.kube.cgroups import hierarchies

pytestmark = pytest.mark.cluster

GPU, SLICED_GPU, SPARE_GPU = (f"nvidia.com/{kind}-of-jobs" for kind in ("gpu", "sliced-gpu", "spare-gpu"))
COUNT = 4
TOPOLOGY = '<system version="1"><cpu numaid="0"/></system>\n'

SOCKETS = (0, 1, 0, 1)
"""Sockets of the GPUs, not in the order in which Slurm would take these otherwise."""

TWO_SOCKETS = {"sockets": 2, "cores_per_socket": 1, "threads_per_core": 1}
ONE_SOCKET = {"sockets": 1, "cores_per_socket": 2, "threads_per_core": 1}

BEFORE = ("controller-0", "cpu-0")
"""Pods that are there before the cluster has GPUs."""

OTHERS = {"partitions": ["others"]}

OF_FABRICS = {
    "infiniband/uverbs0": (231, 192),
    "nvidia-caps/nvidia-cap1": (508, 1),
    "nvidia-caps-imex-channels/channel0": (507, 0),
}
"""Nodes in folders of /dev, with numbers as Linux and NVIDIA's driver give them. No GPU has these."""

OPEN = f'for i in $(seq 0 {COUNT - 1}); do echo "$i $(cat /dev/nvidia$i 2>&1)"; done'
"""A person's try to open every GPU of the machine. There is no silicon: ENXIO, but EPERM from the device cgroup."""


@pytest.fixture(scope="module")
def plugins(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """GPUs of three resources: for jobs, for a changed number, and two of one device as with time-slicing."""
    offered = [
        DevicePlugin(GPU, tmp_path_factory.mktemp("devices"), count=COUNT),
        DevicePlugin(SPARE_GPU, tmp_path_factory.mktemp("spare"), count=2),
        DevicePlugin(SLICED_GPU, tmp_path_factory.mktemp("sliced"), count=2, node_of=lambda _: "nvidia0"),
    ]
    offered[0].shared_nodes = {**offered[0].shared_nodes, **OF_FABRICS}
    with ExitStack() as served_plugins:
        for plugin in offered:
            served_plugins.enter_context(served(plugin, kubernetes))
        yield


@pytest.fixture(scope="module")
def slurm(
    kubernetes: Kubernetes, built_images: None, plugins: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """A node of four GPUs, one for a test that changes it, and one that declares two where its pod has one."""
    of_sliced = {"gpus": {"count": 2, "resource": SLICED_GPU}, "max_unready": 1, "ready_timeout_seconds": 1}
    cluster = a_cluster(
        name=unique("gpus"),
        slurm={"constrain": "cgroup", "extra": dict(QUICK)},
        node_sets=[
            a_node_set(
                "gpu",
                gpus={"count": COUNT, "type": "h100", "resource": GPU, "sockets": SOCKETS},
                **TWO_SOCKETS,
                environment={"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "=mlx5_0 $(x)"},
                nccl_topology=TOPOLOGY,
            ),
            a_node_set("spare", partitions=["spare"], gpus={"count": 1, "resource": SPARE_GPU}, **ONE_SOCKET),
            a_node_set("sliced", partitions=["sliced"], **of_sliced),
        ],
    )
    made = Slurm(kubernetes, tmp_path_factory.mktemp("gpus"), {**cluster, "node_sets": [a_node_set("cpu", **OTHERS)]})
    try:
        make_of_a_release_before_gpus(made)
        made.cluster["node_sets"] = [*cluster["node_sets"], *made.cluster["node_sets"]]
        made.up()
        yield made
    finally:
        made.destroy()


def make_of_a_release_before_gpus(slurm: Slurm) -> None:
    """Deploy without GPUs, run a job, and take from the pods the file that gres.conf will include."""
    slurm.up()
    slurm.wait_for_job(slurm.submit("sleep 3600", options="-p others -J before -o /dev/null"), "RUNNING")
    for pod in BEFORE:
        included_by(slurm, pod).unlink()


def included_by(slurm: Slurm, pod: str) -> Path:
    """Return the file that gres.conf includes in a pod, as a path of this machine."""
    assert slurm.kubernetes.target.embedded
    uid = slurm.api.read_namespaced_pod(pod, slurm.namespace).metadata.uid
    volumes = slurm.kubernetes.target.embedded.settings.kubelet_root / "pods" / uid / "volumes/kubernetes.io~empty-dir"
    return Path(volumes / "run" / Path(NODE_GRES).name)


def opened(printed: str) -> set[int]:
    """Return the GPUs that a job may open. The kernel refused it the others."""
    answers = {int(number): rest for number, rest in re.findall(r"^(\d) (.*)$", printed, re.MULTILINE)}
    assert answers.keys() == set(range(COUNT)), printed
    mine = {number for number, rest in answers.items() if "No such device or address" in rest}
    assert all("Operation not permitted" in answers[number] for number in answers.keys() - mine), printed
    return mine


@pytest.mark.parametrize("count", [1, 2, COUNT])
def test_a_job_opens_the_gpus_that_it_has_and_no_others(slurm: Slurm, count: int) -> None:
    """CUDA counts from 0 whichever GPUs Slurm has chosen: the job of a test before may still be on the first."""
    printed = slurm.ssh(f"srun --gpus=h100:{count} sh -c '{OPEN}; echo gpus $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS'")

    seen, chosen = (
        {int(word) for word in numbers.split(",")} for numbers in printed.stdout.splitlines()[-1].split()[1:]
    )
    assert len(chosen) == count
    assert opened(printed.stdout) == chosen
    assert seen == set(range(count))


def test_a_job_without_gpus_opens_none(slurm: Slurm) -> None:
    printed = slurm.ssh(f"srun sh -c '{OPEN}; echo gpus $CUDA_VISIBLE_DEVICES'").stdout

    assert opened(printed) == set()
    assert printed.splitlines()[-1] == "gpus"


def test_a_job_has_the_devices_of_its_pod_at_their_own_places(slurm: Slurm) -> None:
    shown = "for node in " + " ".join(OF_FABRICS) + "; do [ ! -c /dev/$node ] || echo $node; done"

    assert slurm.ssh(f"srun -p main sh -c '{shown}'").stdout.split() == [*OF_FABRICS]
    assert slurm.ssh(f"srun -p spare sh -c '{shown}'").stdout == ""


@pytest.mark.skipif(hierarchies().unified, reason="with cgroup v2 a program of the kernel decides: it has no list")
def test_jobs_of_a_node_together_may_open_the_devices_of_its_pod_alone(slurm: Slurm) -> None:
    """The runtime's list of the container holds for them."""
    devices = slurm.exec("gpu-0", "slurmd", "cat", "/sys/fs/cgroup/devices/devices.list").splitlines()
    of_gpus = {*re.findall(rf"^c {MAJOR}:(\d+) ", "\n".join(devices), re.MULTILINE)}

    assert not [device for device in devices if device.startswith("a ")]
    assert of_gpus == {*map(str, range(COUNT)), str(CONTROL_MINOR)}


def test_two_jobs_at_a_time_have_different_gpus(slurm: Slurm) -> None:
    meet = "touch $0; for i in $(seq 300); do [ -e $1 ] && break; sleep 0.2; done; [ -e $1 ]"
    jobs = [f"srun --gpus=2 --mem=32M sh -c '{OPEN}; {meet}' {own} {other}" for own, other in ("ab", "ba")]
    printed = slurm.ssh(f"{jobs[0]} > first & {jobs[1]} > second; wait $!; status=$?; cat first; echo; cat second")

    first, second = map(opened, printed.stdout.split("\n\n"))
    assert len(first) == len(second) == 2
    assert first | second == set(range(COUNT))


def test_gpus_of_a_job_stay_its_own_when_slurm_reads_its_files_again(slurm: Slurm) -> None:
    job = slurm.submit("touch started; sleep 600", options="--gpus=2 --mem=128M -o /dev/null")
    wait_until(lambda: "started" in slurm.ssh("ls").stdout, what="the job works, and is not being launched")
    try:
        slurm.scontrol("reconfigure")
        other = opened(slurm.ssh(f"srun --gpus=2 --mem=128M sh -c '{OPEN}'").stdout)
        own = opened(slurm.ssh(f"srun --jobid={job} --overlap sh -c '{OPEN}'").stdout)
        assert len(own) == len(other) == 2
        assert not own & other
    finally:
        slurm.ssh(f"scancel {job}; rm -f started")


def test_each_task_opens_its_own_gpu(slurm: Slurm) -> None:
    printed = slurm.ssh(f"srun -n2 --label --gpus-per-task=1 --gpu-bind=single:1 sh -c '{OPEN}'").stdout

    of_tasks = ["\n".join(re.findall(rf"^{task}: (.*)$", printed, re.MULTILINE)) for task in (0, 1)]
    first, second = map(opened, of_tasks)
    assert len(first) == len(second) == 1
    assert first != second


def test_a_node_registers_its_sockets_and_those_of_its_gpus(slurm: Slurm) -> None:
    shown = {name: slurm.scontrol("show", "node", name).split() for name in ("gpu-0", "spare-0", "cpu-0")}

    assert {"Sockets=2", "CoresPerSocket=1", f"Gres=gpu:h100:{COUNT}(S:0-1)"} <= {*shown["gpu-0"]}
    assert {"Sockets=2", "CoresPerSocket=1", "ThreadsPerCore=1"} <= {*shown["cpu-0"]}, "of a node without a layout"
    # Its pod finds no socket of a GPU that the driver does not list, and joins without.
    assert {"Sockets=1", "CoresPerSocket=2"} <= {*shown["spare-0"]}
    (gres,) = [word for word in shown["spare-0"] if word.startswith("Gres=gpu:")]
    assert "(S:" not in gres


def test_a_job_has_the_cores_of_its_gpus_socket(slurm: Slurm) -> None:
    """Cores are counted from the machine's first CPU. Without sockets, the first job would have the GPUs 0 and 1."""
    meet = "touch $0; for i in $(seq 300); do [ -e $1 ] && break; sleep 0.2; done; [ -e $1 ]"
    said = f"echo $SLURM_STEP_GPUS $(sed -n s/Cpus_allowed_list://p /proc/self/status); {meet}"
    options = "--gpus=2 --mem=32M --gres-flags=enforce-binding"
    jobs = [
        f"srun {options} sh -c '{said}' {own} {other}" for own, other in (("near-a", "near-b"), ("near-b", "near-a"))
    ]
    printed = slurm.ssh(f"{jobs[0]} > first & {jobs[1]} > second; wait $!; cat first second").stdout

    of_gpus = dict(line.split() for line in printed.splitlines())
    assert of_gpus.keys() == {"0,2", "1,3"}
    assert of_gpus["0,2"].partition(",")[0] in {"0", "0-1"}
    assert of_gpus["0,2"] != of_gpus["1,3"]


def test_a_job_may_have_more_cpus_than_the_socket_of_its_gpu_unless_it_wants_only_near_ones(slurm: Slurm) -> None:
    for wanted in ("--gpus=1 -c2", "--gpus=1 -n2", f"--gpus={COUNT} -n1"):
        printed = slurm.ssh(f"srun --immediate=60 {wanted} sh -c 'echo $SLURM_CPUS_ON_NODE'", check=False)
        assert printed.returncode == 0, (wanted, printed)

    refused = slurm.ssh("srun --immediate=60 --gpus=1 -c2 --gres-flags=enforce-binding true", check=False)
    assert "Requested node configuration is not available" in refused.stderr


def test_the_command_of_the_page_prints_the_cpus_of_tasks(slurm: Slurm) -> None:
    (command,) = re.findall(r"(?m)^srun .*$", (paths.ROOT / "docs/placement.md").read_text())
    printed = slurm.ssh(command)

    cpus = dict(re.findall(r"(?m)^(\d): Cpus_allowed_list:\s+(\S+)$", printed.stdout))
    assert cpus.keys() == {"0", "1"}
    assert cpus["0"] != cpus["1"]
    assert len(re.findall(r"(?m)cpu-bind=MASK - gpu-0, task", printed.stderr)) == 2


def test_more_gpus_than_nodes_have_are_refused(slurm: Slurm) -> None:
    for wanted in (f"--gpus={COUNT + 1}", "--gpus=a100:1"):
        refused = slurm.ssh(f"srun {wanted} true", check=False)
        assert "Requested node configuration is not available" in refused.stderr


def test_a_job_that_requests_gpus_alone_has_their_share_of_the_memory(slurm: Slurm) -> None:
    job = slurm.submit("sleep 1", options="--gpus=1 -o /dev/null")

    assert slurm.job(job)["MinMemoryTRES"] == f"{1024 // COUNT}M"


def test_jobs_have_the_variables_of_their_node_set_unless_they_have_their_own(slurm: Slurm) -> None:
    shown = 'echo "$NCCL_DEBUG,$NCCL_IB_HCA"; cat $NCCL_TOPO_FILE; cat /run/slurm/job-files/environment'
    listed = "NCCL_DEBUG=INFO\nNCCL_IB_HCA==mlx5_0 $(x)\nNCCL_TOPO_FILE=/run/slurm/job-files/nccl/topology.xml\n"

    assert slurm.ssh(f"srun sh -c '{shown}'").stdout == f"INFO,=mlx5_0 $(x)\n{TOPOLOGY}{listed}"
    own = slurm.ssh(f"NCCL_DEBUG=WARN NCCL_IB_HCA= srun sh -c '{shown}'").stdout
    assert own.splitlines()[0] == "WARN,"


def test_a_changed_count_renews_the_record_and_a_pod_with_too_few_gpus_does_not_join(slurm: Slurm) -> None:
    def last_words() -> str:
        pod = slurm.api.read_namespaced_pod("sliced-0", slurm.namespace)
        (slurmd,) = [
            container_status
            for container_status in pod.status.container_statuses or []
            if container_status.name == "slurmd"
        ]
        ended = slurmd.last_state.terminated or slurmd.state.terminated
        return str(ended.message) if ended else ""

    reason = "slurmd is not started. GPUs in the pod: 1, declared by the node set: 2 (gpus.count)."
    wait_until(lambda: last_words().startswith(reason), what="slurmd has ended with its reason")
    _, spare, sliced, _ = slurm.cluster["node_sets"]
    spare["gpus"] = {"count": 2, "type": "h100", "resource": SPARE_GPU, "shards_per_gpu": 2}
    sliced["ready_timeout_seconds"] = 2

    result = slurm.up()

    assert "sliced-0: its pod slurmd: " in said(result)
    assert reason in said(result)
    assert "sliced-0" not in slurm.scontrol("show", "nodes")
    assert re.findall(r"Gres=(\S+)", slurm.scontrol("show", "node", "spare-0")) == ["gpu:h100:2,shard:h100:4"]
    assert slurm.ssh("srun -p spare --gpus=2 sh -c 'echo $CUDA_VISIBLE_DEVICES'").stdout == "0,1\n"
    assert slurm.ssh("srun -p spare -n2 --gres=shard:2 sh -c 'echo $CUDA_VISIBLE_DEVICES'").stdout == "0\n0\n"


def test_changed_sockets_of_gpus_count_once_slurmctld_has_read_its_files_again(slurm: Slurm) -> None:
    def gres() -> list[str]:
        return re.findall(r"Gres=(\S+)", slurm.scontrol("show", "node", "gpu-0"))

    (gpu,) = [node_set for node_set in slurm.cluster["node_sets"] if node_set["name"] == "gpu"]
    former, gpu["gpus"] = gpu["gpus"], {**gpu["gpus"], "sockets": (1,) * COUNT}
    try:
        slurm.up()

        assert "Cores=1-1" in slurm.exec("gpu-0", "slurmd", "cat", NODE_GRES)
        assert gres() == [f"gpu:h100:{COUNT}(S:0-1)"]
        slurm.scontrol("reconfigure")
        wait_until(lambda: gres() == [f"gpu:h100:{COUNT}(S:1)"], what="slurmctld has the sockets of the node")
    finally:
        gpu["gpus"] = former
        slurm.up()
        slurm.scontrol("reconfigure")
        wait_until(lambda: gres() == [f"gpu:h100:{COUNT}(S:0-1)"], what="slurmctld has the former sockets")


def test_gpus_that_come_with_this_version_leave_jobs_running(slurm: Slurm) -> None:
    """Without the file slurmctld and slurmd end a minute later, slurmd with its jobs."""
    (job,) = [job for job in slurm.jobs() if job["JobName"] == "before"]
    assert (job["JobState"], job["Restarts"]) == ("RUNNING", "0")
    assert all(included_by(slurm, pod).exists() for pod in BEFORE)


def test_gpus_are_not_removed_while_jobs_are_on_their_nodes(slurm: Slurm) -> None:
    node_sets = slurm.cluster["node_sets"]
    job = slurm.submit("sleep 600", options="--gpus=1 -o /dev/null")
    slurm.wait_for_job(job, "RUNNING")
    slurm.cluster["node_sets"] = [{key: item[key] for key in item.keys() - {"gpus"}} for item in node_sets]
    try:
        with pytest.raises(DeployError, match=rf"Jobs would lose their GPUs:\n.*GresTypes: .*\n.*{job} \(alice"):
            slurm.up()
        assert opened(slurm.ssh(f"srun --mem=128M sh -c '{OPEN}'").stdout) == set()
    finally:
        slurm.cluster["node_sets"] = node_sets
        slurm.ssh(f"scancel {job}")
