"""Remains of servers at places that cannot be chosen."""

import json
import socket
from pathlib import Path

import pytest

from tools.kube import cleanup
from tools.kube.settings import Settings


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    found = {
        "_CNI_RESULTS": tmp_path / "cni/results",
        "_CONTAINER_LOGS": tmp_path / "containers",
        "_DEVICE_PLUGINS": tmp_path / "kubelet/device-plugins",
        "_CONTAINERD": tmp_path / "containerd",
    }
    for name, folder in found.items():
        folder.mkdir(parents=True)
        monkeypatch.setattr(cleanup, name, folder)
    monkeypatch.setattr(cleanup, "_FOLDERS", [found["_CONTAINERD"] / "s", *found.values(), tmp_path / "kubelet"])
    return found


SETTINGS = Settings(state=Path("/state/kube"))


def test_ours_is_removed_and_others_stays(places: dict[str, Path], tmp_path: Path) -> None:
    (places["_CNI_RESULTS"] / "ours").write_text(json.dumps({"sandbox": f"{SETTINGS.containerd_state}/netns/1"}))
    (places["_CNI_RESULTS"] / "theirs").write_text(json.dumps({"sandbox": "/run/netns/1"}))
    (places["_CONTAINER_LOGS"] / "ours.log").symlink_to(SETTINGS.pod_logs / "pod" / "0.log")
    (places["_CONTAINER_LOGS"] / "theirs.log").symlink_to("/var/log/pods/pod/0.log")
    removed = cleanup.remove(SETTINGS, tmp_path / "no-memory")
    assert [path.name for path in places["_CNI_RESULTS"].iterdir()] == ["theirs"]
    assert [path.name for path in places["_CONTAINER_LOGS"].iterdir()] == ["theirs.log"]
    assert removed == [f"1 links to logs in {places['_CONTAINER_LOGS']}", f"1 CNI results in {places['_CNI_RESULTS']}"]


def test_sockets_on_which_no_one_listens_are_removed(places: dict[str, Path], tmp_path: Path) -> None:
    sockets = places["_CONTAINERD"] / "s"
    sockets.mkdir()
    with socket.socket(socket.AF_UNIX) as live, socket.socket(socket.AF_UNIX) as dead:
        live.bind(str(sockets / "live"))
        live.listen()
        dead.bind(str(sockets / "dead"))
        cleanup.remove(SETTINGS, tmp_path / "no-memory")
        assert [path.name for path in sockets.iterdir()] == ["live"]


def test_folders_that_are_empty_then_are_removed_too(places: dict[str, Path], tmp_path: Path) -> None:
    (places["_DEVICE_PLUGINS"] / "kubelet.sock").write_text("")
    cleanup.remove(SETTINGS, tmp_path / "no-memory")
    assert not any(folder.exists() for folder in (*places.values(), tmp_path / "kubelet"))


def test_cgroups_of_slurm_that_were_there_before_are_not_ours(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hierarchy = tmp_path / "cgroup"
    monkeypatch.setattr(cleanup, "_top_level_cgroups", lambda: sorted(hierarchy.glob("slurm_*")))
    (hierarchy / "slurm_host").mkdir(parents=True)
    cleanup.remember(tmp_path / "memory")
    (hierarchy / "slurm_worker-0" / "uid_0").mkdir(parents=True)
    (hierarchy / "slurm_busy").mkdir()
    (hierarchy / "slurm_busy" / "cgroup.procs").write_text("1\n")
    assert "2 cgroups of Slurm nodes and of `ctr run`" in cleanup.remove(SETTINGS, tmp_path / "memory")
    assert sorted(path.name for path in hierarchy.iterdir()) == ["slurm_busy", "slurm_host"]
