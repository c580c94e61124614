"""GPUs of a worker's pod: found by their device files, compared with the node set's, and described for slurmd."""

from collections.abc import Iterable

import pytest

from soperator_pulumi.render.gres import start_arguments
from soperator_pulumi.spec.gpus import GpusSpec
from tests.unit.cluster.worker_container import CONF, Worker


def has(worker: Worker, *devices: str) -> None:
    for device in devices:
        place = worker.root / "dev" / device
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def has_instances(worker: Worker, *instances: tuple[int, int, int, int], own: Iterable[int] = range(100)) -> None:
    """Let the driver list MIG instances: GPU, GPU instance, and the capabilities of it and of its compute instance."""
    for gpu, instance, of_instance, of_compute in instances:
        folder = worker.root / f"proc/driver/nvidia/capabilities/gpu{gpu}/mig/gi{instance}"
        (folder / "ci0").mkdir(parents=True)
        for place, minor in ((folder, of_instance), (folder / "ci0", of_compute)):
            (place / "access").write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
            if minor in own:
                has(worker, f"nvidia-caps/nvidia-cap{minor}")


def declare(worker: Worker, **gpus: object) -> None:
    worker.options["gpus"] = start_arguments(GpusSpec.model_validate(gpus))


def gres_of(worker: Worker) -> list[str]:
    """Return the lines that slurmd includes, with paths as in a pod."""
    header, *lines = (worker.root / "gres.conf").read_text().replace(f"{worker.root}/", "/").splitlines()
    assert header.startswith("#")
    return lines


def test_gpus_are_those_that_the_pod_has_in_the_order_of_their_numbers(worker: Worker) -> None:
    has(worker, "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "null")
    declare(worker, count=2, type="h100")
    assert worker.start()[0] == "-D"
    assert gres_of(worker) == [
        "Name=gpu Type=h100 File=/dev/nvidia2 Flags=nvidia_gpu_env",
        "Name=gpu Type=h100 File=/dev/nvidia10 Flags=nvidia_gpu_env",
    ]


def test_gpus_without_a_type_have_none(worker: Worker) -> None:
    has(worker, "nvidia0")
    declare(worker, count=1)
    worker.start()
    assert gres_of(worker) == ["Name=gpu File=/dev/nvidia0 Flags=nvidia_gpu_env"]


def test_gpus_of_amd_are_their_render_nodes(worker: Worker) -> None:
    has(worker, "kfd", "dri/card0", "dri/card1", "dri/renderD129", "dri/renderD128", "dri/by-path/x-render")
    declare(worker, count=2, type="mi300x", resource="amd.com/gpu")
    worker.start()
    assert gres_of(worker) == [
        "Name=gpu Type=mi300x File=/dev/dri/renderD128 Flags=amd_gpu_env",
        "Name=gpu Type=mi300x File=/dev/dri/renderD129 Flags=amd_gpu_env",
    ]


def test_each_gpu_has_its_shards(worker: Worker) -> None:
    has(worker, "nvidia0", "nvidia1")
    declare(worker, count=2, shards_per_gpu=4)
    worker.start()
    assert gres_of(worker)[2:] == ["Name=shard Count=4 File=/dev/nvidia0", "Name=shard Count=4 File=/dev/nvidia1"]


def test_mig_instances_are_those_whose_capabilities_the_pod_has(worker: Worker) -> None:
    """The driver lists those of other pods as well."""
    has(worker, "nvidia0", "nvidia1", "nvidiactl")
    has_instances(worker, (0, 9, 21, 22), (0, 10, 30, 31), (1, 9, 60, 61), own={21, 22, 60, 61, 31})
    declare(worker, mig={"1g.10gb": 2})
    worker.start()
    caps = "/dev/nvidia-caps/nvidia-cap"
    assert gres_of(worker) == [
        f"Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia0,{caps}21,{caps}22 Flags=nvidia_gpu_env",
        f"Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia1,{caps}60,{caps}61 Flags=nvidia_gpu_env",
    ]


def test_a_gpu_with_mig_instances_is_no_whole_one(worker: Worker) -> None:
    has(worker, "nvidia0", "nvidia1")
    has_instances(worker, (1, 9, 60, 61))
    declare(worker, count=1, type="h100", mig={"1g.10gb": 1})
    worker.start()
    assert [line.split()[1:3] for line in gres_of(worker)] == [
        ["Type=h100", "File=/dev/nvidia0"],
        ["Type=1g.10gb", "MultipleFiles=/dev/nvidia1,/dev/nvidia-caps/nvidia-cap60,/dev/nvidia-caps/nvidia-cap61"],
    ]


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ({"count": 2}, "GPUs in the pod: 1, declared by the node set: 2 (gpus.count)"),
        ({"mig": {"1g.10gb": 7}}, "GPUs in the pod: 1, declared by the node set: 0 (gpus.count)"),
        (
            {"count": 1, "type": "h100", "mig": {"1g.10gb": 7}},
            "MIG instances in the pod: 0, declared by the node set: 7 (gpus.mig)",
        ),
        ({"count": 1, "resource": "amd.com/gpu"}, "GPUs in the pod: 0, declared by the node set: 1 (gpus.count)"),
    ],
)
def test_slurmd_does_not_start_on_another_number_of_gpus_and_the_pods_last_words_say_so(
    worker: Worker, gpus: dict[str, object], words: str
) -> None:
    has(worker, "nvidia0")
    declare(worker, **gpus)
    worker.write(**{"termination-log": "", "open_as_user.so": ""})
    done = worker.run(worker.start_command())
    assert done.returncode == 1
    assert "-D" not in done.stdout
    assert words in done.stderr
    assert (worker.root / "termination-log").read_text() == done.stderr
    assert worker.changes() == [], "the record of the node stays"


def test_a_node_set_without_gpus_describes_none_whatever_the_pod_has(worker: Worker) -> None:
    has(worker, "nvidia0")
    worker.start()
    assert gres_of(worker) == []


@pytest.mark.parametrize(
    ("gres", "changed"),
    [
        ("gpu:h100:8,shard:16", False),
        ("gpu:h100:8(S:0-1),shard:h100:16(S:0-1)", False),  # as slurmctld writes it when the node has registered
        ("gpu:h100:4,shard:h100:16", True),
        ("gpu:h100:8,shard:h100:8", True),
        ("gpu:h100:8", True),
        ("(null)", True),
    ],
)
def test_a_record_with_other_gpus_is_deleted_before_slurmd_registers(worker: Worker, gres: str, changed: bool) -> None:
    worker.conf = f"{CONF} Gres=gpu:h100:8,shard:16"
    worker.node("IDLE+DYNAMIC_NORM", gres=gres)
    worker.start()
    assert worker.changes() == (["delete nodename=cpu-4"] if changed else [])
