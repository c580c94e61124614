"""Allowed registries: a name counts as the registry takes it."""

import re
from pathlib import Path

import pytest

from container_images.image_reference import ImageError, parse
from container_images.registry_settings import check_allowed

ALLOWED = ("nvcr.io", "docker.io/library", "r.example.com:5000/team")


@pytest.mark.parametrize(
    "image", ["nvcr.io#nvidia/pytorch:1", "ubuntu", "library/ubuntu:24.04", "r.example.com:5000/team/a/b"]
)
def test_an_image_of_an_allowed_registry_is_allowed(image: str) -> None:
    check_allowed(parse(image, Path()), ALLOWED)


@pytest.mark.parametrize(
    "image",
    [
        "nvcr.io.example.com/a",
        "nvcr.io:5000/a",
        "user@quay.io#a",
        "docker://quay.io/nvcr.io/a",
        "bitnami/redis",
        "r.example.com:5000/teams/a",
        "r.example.com/team/a",
    ],
)
def test_an_image_of_another_registry_is_refused_with_those_that_are_allowed(image: str) -> None:
    with pytest.raises(ImageError, match=re.escape("from nvcr.io, docker.io/library, r.example.com:5000/team alone")):
        check_allowed(parse(image, Path()), ALLOWED)


def test_a_file_is_of_no_registry(tmp_path: Path) -> None:
    (tmp_path / "oci-layout").touch()
    (tmp_path / "index.json").touch()

    check_allowed(parse(str(tmp_path), Path()), ALLOWED)


def test_without_a_list_all_are_allowed() -> None:
    check_allowed(parse("quay.io/a", Path()), ())
