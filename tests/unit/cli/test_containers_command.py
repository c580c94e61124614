"""`soperator containers list`."""

from typing import Any

import pytest

from soperator_pulumi.cli import container_list
from soperator_pulumi.errors import SoperatorError
from tests.fakes.objects import NAMESPACE
from tests.fakes.small_world import SmallWorld

FOUND: dict[str, Any] = {
    "published": [
        {
            "names": ["docker.io/library/ubuntu:24.04"],
            "digest": "sha256:" + "a" * 64,
            "size_bytes": 3 * 1024**3,
            "filled_at": 0,
            "in_use": True,
        },
        {"names": [], "digest": "sha256:" + "b" * 64, "size_bytes": None, "filled_at": 86_400, "in_use": None},
    ],
    "users": [{"user": "al\x1bice", "images": 2, "named_containers": 1, "size_bytes": 1024**3}],
    "nodes": [{"node": "gpu-0", "images": 2, "size_bytes": 3 * 1024**3}],
}


def test_images_are_shown_with_size_age_and_use_and_users_with_what_they_hold() -> None:
    assert [*container_list.text(FOUND, 2 * 86_400)] == [
        "SHARED IMAGES",
        "  docker.io/library/ubuntu:24.04: 3.00 GiB, 2 days old, in use",
        "  sha256:bbbbbbbbbbbb (removed from the list): size unknown, 1 days old, use unknown",
        "",
        "STORES OF USERS",
        "  al?ice: 2 images, 1 named containers, 1.00 GiB",
        "",
        "COPIES ON NODES' DISKS",
        "  gpu-0: 2 copies, 3.00 GiB",
    ]


def test_an_image_of_an_earlier_version_lists_no_copies() -> None:
    before: dict[str, Any] = {"published": [], "users": []}
    assert [*container_list.text(before, 0)] == ["There are no shared images (containers.images)."]


def test_a_cluster_without_workers_is_reported() -> None:
    world = SmallWorld()
    world.add_pod("controller-0", "controller")

    with pytest.raises(SoperatorError, match="no worker pod runs in the namespace"):
        container_list.show(world, NAMESPACE, as_json=False)
