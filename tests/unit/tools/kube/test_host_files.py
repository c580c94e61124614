"""Files, links and mounts of this machine."""

from pathlib import Path

from tools.kube import host_files


def test_it_says_whether_the_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    assert host_files.write(path, "one")
    assert not host_files.write(path, "one")
    assert host_files.write(path, "two")
    assert path.read_text() == "two"


def test_a_file_is_for_its_owner_only(tmp_path: Path) -> None:
    host_files.write(tmp_path / "file", b"secret")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_a_link_is_moved_to_its_new_target(tmp_path: Path) -> None:
    for target in ("one", "one", "two"):
        host_files.link(tmp_path / "link", Path(target))
    assert (tmp_path / "link").readlink() == Path("two")


MOUNTINFO = r"""22 28 0:21 / /proc rw,relatime shared:5 - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 28 254:0 /kube /var/kube rw,relatime shared:9 - ext4 /dev/vda rw
91 90 0:50 / /var/kube/kubelet/pods/a\040b rw,relatime - tmpfs tmpfs rw
92 91 0:51 / /var/kube/kubelet/pods/a\040b/inner rw,relatime - overlay overlay rw
93 28 0:52 / /var/kubernetes rw,relatime - tmpfs tmpfs rw
"""


def test_mounts_at_and_below_a_folder_come_innermost_first() -> None:
    assert host_files.mounts_below(Path("/var/kube"), MOUNTINFO) == [
        Path("/var/kube/kubelet/pods/a b/inner"),
        Path("/var/kube/kubelet/pods/a b"),
        Path("/var/kube"),
    ]


def test_a_folder_without_mounts_has_none(tmp_path: Path) -> None:
    assert host_files.mounts_below(tmp_path) == []
    assert host_files.unmount_below(tmp_path) == 0
