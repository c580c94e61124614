"""The list of images for the admin: whatever users have put into their stores."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from container_images.image_store import STORE
from container_images.list_command import main
from container_images.published_images import write_names
from container_images.store_sizes import size_of_image

DIGEST = "a" * 64


def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(tmp_path / "published", tmp_path / "home") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def publish(tmp_path: Path) -> Path:
    store = tmp_path / "published"
    (store / "uses").mkdir(parents=True)
    (store / f"images/{DIGEST}.x86_64").mkdir(parents=True)
    (store / f"images/{DIGEST}.x86_64/size").write_text("1024")
    (store / f"uses/{DIGEST}.x86_64").touch()
    write_names(store, {"docker.io/library/ubuntu:24.04": f"sha256:{DIGEST}"})
    return store


def test_published_images_are_listed_with_their_names_size_and_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = publish(tmp_path) / f"uses/{DIGEST}.x86_64"

    (image,) = listed(tmp_path, capsys)["published"]
    assert image["names"] == ["docker.io/library/ubuntu:24.04"]
    assert (image["size_bytes"], image["architecture"], image["in_use"]) == (1024, "x86_64", False)
    with mark.open() as task:
        fcntl.flock(task, fcntl.LOCK_SH)
        assert listed(tmp_path, capsys)["published"][0]["in_use"]


def test_an_image_whose_name_has_moved_is_listed_by_its_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_names(publish(tmp_path), {"docker.io/library/ubuntu:24.04": f"sha256:{'b' * 64}"})

    assert listed(tmp_path, capsys)["published"][0]["names"] == [f"docker.io/library/ubuntu@sha256:{DIGEST}"]


def test_users_stores_are_counted_whatever_users_have_put_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("42")
    images = tmp_path / "home/alice" / STORE / "images"
    for name in ("a", "b", "c", "d", "e"):
        (images / name).mkdir(parents=True)
    (images / "a/size").write_text("100")
    (images / "b/size").write_text("no number")
    (images / "c/size").symlink_to(tmp_path / "secret")
    os.mkfifo(images / "d/size")
    (tmp_path / "home/bob").mkdir()

    assert listed(tmp_path, capsys)["users"] == [
        {"user": "alice", "images": 5, "named_containers": 0, "size_bytes": 100}
    ]


def test_a_folder_in_place_of_a_size_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "a/size").mkdir(parents=True)
    opened = [*Path("/proc/self/fd").iterdir()]

    assert size_of_image(tmp_path, Path("a")) is None
    assert [*Path("/proc/self/fd").iterdir()] == opened


@pytest.mark.parametrize("link", [".local", ".local/share", f"{STORE}/images", f"{STORE}/images/a"])
def test_a_link_in_place_of_a_users_folder_is_not_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], link: str
) -> None:
    place = tmp_path / "home/alice" / link
    (tmp_path / "home/alice" / STORE / "images/a").mkdir(parents=True)
    (tmp_path / "home/alice" / STORE / "images/a/size").write_text("100")
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")

    assert sum(user["size_bytes"] for user in listed(tmp_path, capsys)["users"]) == 0


def test_an_image_that_goes_while_it_is_listed_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (publish(tmp_path) / f"images/{DIGEST}.x86_64/size").unlink()

    assert listed(tmp_path, capsys)["published"] == []


def test_nodes_with_copies_are_listed_unless_they_have_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = publish(tmp_path) / "nodes"
    nodes.mkdir()
    copies = {"images": 2, "bytes": 120}
    for name, text in {
        "gpu-0": json.dumps({"copies": copies}),
        "gpu-1": json.dumps({"copies": copies}),
        "cpu-0": json.dumps({"copies": None}),
        "cpu-1": "",
        "cpu-2": "null",
        "cpu-3": json.dumps({"copies": {"of": "another version"}}),
    }.items():
        (nodes / f"{name}.json").write_text(text)
    os.utime(nodes / "gpu-1.json", (0, 0))

    assert listed(tmp_path, capsys)["nodes"] == [{"node": "gpu-0", "images": 2, "size_bytes": 120}]
