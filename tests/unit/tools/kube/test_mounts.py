"""Mounts that a killed run leaves."""

from pathlib import Path

from tools.kube import mounts

MOUNTINFO = r"""22 28 0:21 / /proc rw,relatime shared:5 - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 28 254:0 /kube /var/kube rw,relatime shared:9 - ext4 /dev/vda rw
91 90 0:50 / /var/kube/kubelet/pods/a\040b rw,relatime - tmpfs tmpfs rw
92 91 0:51 / /var/kube/kubelet/pods/a\040b/inner rw,relatime - overlay overlay rw
93 28 0:52 / /var/kubernetes rw,relatime - tmpfs tmpfs rw
"""


def test_mounts_at_and_below_a_folder_come_innermost_first() -> None:
    assert mounts.below(Path("/var/kube"), MOUNTINFO) == [
        Path("/var/kube/kubelet/pods/a b/inner"),
        Path("/var/kube/kubelet/pods/a b"),
        Path("/var/kube"),
    ]


def test_a_folder_without_mounts_has_none(tmp_path: Path) -> None:
    assert mounts.below(tmp_path) == []
    assert mounts.remove_below(tmp_path) == 0
