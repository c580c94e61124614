"""Finished images on disk: whole or absent, each blob once, and no more than is of use."""

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest

from tools.console import UserError
from tools.images import store as store_module
from tools.images.store import KEPT_TAGS, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "images")
    store.folder.mkdir()
    return store


def write_blob(layout: Path, content: bytes) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    (layout / "blobs" / "sha256" / digest).write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def write_image(layout: Path, *layers: bytes) -> None:
    """Write what buildah writes into an OCI layout."""
    manifest = {
        "config": write_blob(layout, json.dumps([layer.decode() for layer in layers]).encode()),
        "layers": [write_blob(layout, layer) for layer in layers],
    }
    descriptor = write_blob(layout, json.dumps(manifest).encode())
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [descriptor]}))


def add(store: Store, name: str, tag: str, *layers: bytes, used_at: int = 0) -> None:
    with store.work_folder() as work, store.new_layout(name, tag, work) as layout:
        write_image(layout, *layers)
    if used_at:
        os.utime(store.layout(name, tag), (used_at, used_at))


def blobs(store: Store) -> set[bytes]:
    return {blob.read_bytes() for blob in store.blobs.glob("sha256/*")}


def test_a_finished_image_is_there(store: Store) -> None:
    assert not store.use("login", "1")
    add(store, "login", "1", b"layer")

    assert store.use("login", "1")


def test_a_finished_image_finds_its_blobs_when_the_cache_has_moved(store: Store, tmp_path: Path) -> None:
    add(store, "login", "1", b"layer")
    moved = Store(store.folder.rename(tmp_path / "moved"))

    assert (moved.layout("login", "1") / "blobs" / "sha256").is_dir()


def test_a_build_that_fails_leaves_no_image(store: Store) -> None:
    def fail() -> None:
        with store.work_folder() as work, store.new_layout("login", "1", work) as layout:
            write_image(layout, b"layer")
            raise UserError("no space left")

    with pytest.raises(UserError, match="no space left"):
        fail()

    assert not store.use("login", "1")


def test_what_a_killed_build_left_goes_with_the_next(store: Store) -> None:
    (store.folder / "work-killed" / "login-1").mkdir(parents=True)
    (store.temporary / "oci123").mkdir(parents=True)
    (store.temporary / "storage456").write_text("")

    with store.work_folder() as work:
        assert list(store.folder.glob("work-*")) == [work]
        assert list(store.temporary.iterdir()) == []
    assert list(store.folder.glob("work-*")) == []


def test_packages_that_apt_keeps_outlive_a_build(store: Store) -> None:
    kept = store.temporary / "buildah-cache" / "apt-archives"
    kept.mkdir(parents=True)

    with store.work_folder():
        assert kept.is_dir()


def test_a_shared_layer_is_stored_once(store: Store) -> None:
    add(store, "login", "1", b"shared", b"login")
    before = len(blobs(store))
    add(store, "worker", "1", b"shared", b"worker")

    assert len(blobs(store)) == before + 3  # its own layer, configuration and manifest


def test_an_archive_has_all_images_by_name_and_a_shared_layer_once(store: Store, tmp_path: Path) -> None:
    add(store, "login", "1", b"shared", b"login")
    add(store, "worker", "1", b"shared", b"worker")
    target = tmp_path / "images.tar"
    store.archive({"login/1": "localhost/x/login:1", "worker/1": "localhost/x/worker:1"}, target)

    with tarfile.open(target) as tar:
        names = tar.getnames()
        index = json.load(tar.extractfile("index.json") or pytest.fail("no index.json"))
        contents = [file.read() for name in names if (file := tar.extractfile(name))]
    assert {manifest["annotations"]["io.containerd.image.name"] for manifest in index["manifests"]} == {
        "localhost/x/login:1",
        "localhost/x/worker:1",
    }
    assert len(names) == len(set(names))
    assert contents.count(b"shared") == 1
    assert {b"login", b"worker"} <= set(contents)


def test_pruning_keeps_the_current_tag_and_those_used_last(store: Store) -> None:
    for number in range(1, 7):
        add(store, "login", str(number), f"layer {number}".encode(), used_at=number)
    add(store, "login", "current", b"current layer", used_at=1)
    store.prune({"login": "current"})

    kept = {path.name for path in (store.layouts / "login").iterdir()}
    assert kept == {"current", "6", "5", "4"}
    assert len(kept) == KEPT_TAGS


def test_using_an_image_keeps_it_from_being_pruned(store: Store) -> None:
    for number in range(1, KEPT_TAGS + 2):
        add(store, "login", str(number), b"layer", used_at=number)
    store.use("login", "1")
    store.prune({"login": str(KEPT_TAGS + 1)})

    assert store.use("login", "1")
    assert not store.use("login", "2")


def test_pruning_removes_the_blobs_that_no_image_needs_and_only_those(store: Store) -> None:
    add(store, "login", "1", b"shared", b"old", used_at=1)
    for number in range(2, KEPT_TAGS + 2):
        add(store, "login", str(number), b"shared", f"layer {number}".encode(), used_at=number)
    add(store, "worker", "1", b"shared", b"worker")
    store.prune({"login": str(KEPT_TAGS + 1), "worker": "1"})

    assert b"old" not in blobs(store)
    assert {b"shared", b"worker", b"layer 2"} <= blobs(store)


def test_a_second_build_waits_no_longer_than_it_should_and_says_for_whom(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_SECONDS", 0)

    with (
        store.lock(),
        pytest.raises(UserError, match=rf"`building images`, process {os.getpid()} of "),
        store.lock(),
    ):
        pass


def test_a_lock_is_free_again_after_its_build(store: Store) -> None:
    with store.lock():
        pass
    with store.lock() as descriptor:
        assert descriptor > 0
