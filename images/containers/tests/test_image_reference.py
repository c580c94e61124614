"""Images as users write them."""

import tarfile
from pathlib import Path

import pytest

from container_images.image_reference import ImageError, ImageReference, parse

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "skopeo"),
    [
        ("ubuntu", "docker://docker.io/ubuntu:latest"),
        ("ubuntu:24.04", "docker://docker.io/ubuntu:24.04"),
        ("nvcr.io#nvidia/pytorch:26.09-py3", "docker://nvcr.io/nvidia/pytorch:26.09-py3"),
        ("nvcr.io/nvidia/pytorch:26.09-py3", "docker://nvcr.io/nvidia/pytorch:26.09-py3"),
        ("docker://nvcr.io#nvidia/pytorch:26.09-py3", "docker://nvcr.io/nvidia/pytorch:26.09-py3"),
        ("docker://registry:5000/a/b", "docker://registry:5000/a/b:latest"),
        ("nvidia/cuda:13.1.0-base", "docker://docker.io/nvidia/cuda:13.1.0-base"),
        (f"ubuntu@{DIGEST}", f"docker://docker.io/ubuntu@{DIGEST}"),
        (f"registry:5000#a/b:1@{DIGEST}", f"docker://registry:5000/a/b@{DIGEST}"),
    ],
)
def test_an_image_of_a_registry_is_one_of_skopeos(text: str, skopeo: str, tmp_path: Path) -> None:
    assert parse(text, tmp_path).skopeo == skopeo


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ubuntu:24.04", ["docker.io/library/ubuntu:24.04"]),
        (f"ubuntu@{DIGEST}", [f"docker.io/library/ubuntu@{DIGEST}"]),
        (f"ubuntu:1@{DIGEST}", [f"docker.io/library/ubuntu@{DIGEST}", "docker.io/library/ubuntu:1"]),
        (f"reg:5000/a/b:1@{DIGEST}", [f"reg:5000/a/b@{DIGEST}", "reg:5000/a/b:1"]),
    ],
)
def test_an_image_with_a_tag_and_a_digest_has_two_names(text: str, names: list[str], tmp_path: Path) -> None:
    assert parse(text, tmp_path).full_names == names


def test_a_user_stands_before_the_registry(tmp_path: Path) -> None:
    image = parse("$oauthtoken@nvcr.io#nvidia/pytorch:26.09", tmp_path)

    assert image == ImageReference("docker://nvcr.io/nvidia/pytorch:26.09", "nvcr.io", "$oauthtoken")


@pytest.mark.parametrize(
    "text", ["", "Ubuntu", "-x", "a b", "a#b#c", "--x#y", "a:b:c", "nvcr.io#", "a@sha256:1", "a\tb"]
)
def test_what_is_no_image_is_refused_with_what_is_one(text: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"is not an image\. Give \[USER@\]"):
        parse(text, tmp_path)


def test_a_folder_with_an_oci_layout_is_an_image(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it/oci-layout").write_text("{}")
    (tmp_path / "it/index.json").write_text("{}")

    assert parse("./it", tmp_path).skopeo == f"oci:{tmp_path}/it"


def test_a_file_has_another_version_when_it_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it/oci-layout").write_text("{}")
    (tmp_path / "it/index.json").write_text("{}")
    (tmp_path / "link").symlink_to("it")
    first = parse("./it", tmp_path)

    assert parse("./link", tmp_path) == first
    assert first.file == tmp_path / "it/index.json"
    (tmp_path / "it/index.json").write_text("{ }")
    assert parse("./it", tmp_path) != first


@pytest.mark.parametrize(("name", "kind"), [("./oci-layout", "oci-archive"), ("manifest.json", "docker-archive")])
def test_an_archive_is_known_by_what_it_holds(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with tarfile.open(tmp_path / "it.tar", "w") as archive:
        archive.add(tmp_path / "file", name)

    assert parse(f"{tmp_path}/it.tar", tmp_path).skopeo == f"{kind}:{tmp_path}/it.tar"


def test_a_file_of_squashfs_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"hsqs" + bytes(1000))

    assert parse("./it", tmp_path).skopeo == f"squashfs:{tmp_path}/it"


@pytest.mark.parametrize("name", ["missing", "other.sqsh", "folder", "with:colon"])
def test_a_path_that_is_no_image_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "other.sqsh").write_bytes(b"sqsh" + bytes(1000))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ImageError, match=name):
        parse(f"{tmp_path}/{name}", tmp_path)
