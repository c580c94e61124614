"""Containers in jobs in a spec: each problem with its place, and no secret in a message."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from container_images.image_reference import parse
from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.images import ImageReference
from soperator_pulumi.spec.job_containers import full_name
from tests.cluster.certificates import Authority
from tests.strategies import a_cluster, a_spec

AUTHORITY = Authority.made("registries").pem.decode()


def problems(**containers: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as refused:
        parse_cluster(a_cluster(containers=containers))
    return {problem.path: problem.text for problem in refused.value.problems}


def test_all_problems_of_containers_are_reported_at_once() -> None:
    found = problems(
        images_gib=0,
        unused_days=0.5,
        allowed_registries=["nvcr.io", "docker.io/library/", "*"],
        proxy={"url": "http://user:secret@proxy:1", "direct": ["a/b"]},
        registries=[
            {"host": "docker.io", "mirrors": ["https://a"]},
            {"host": "a.example.com", "insecure": True, "authority": AUTHORITY},
            {"host": "b.example.com"},
            {"host": "b.example.com"},
            {"host": "Nvcr.io"},
        ],
    )

    assert found.keys() == {
        "containers.images_gib",
        "containers.unused_days",
        "containers.allowed_registries[1]",
        "containers.allowed_registries[2]",
        "containers.proxy.url",
        "containers.proxy.direct[0]",
        "containers.registries[0].mirrors[0]",
        "containers.registries[1].insecure",
        "containers.registries[2].host",
        "containers.registries[3].host",
        "containers.registries[4].host",
    }


def test_images_for_everyone_are_named_once_and_come_from_allowed_registries() -> None:
    found = problems(
        images=["ubuntu", "docker.io/library/ubuntu:latest", "nvcr.io/a/b:1", "nvcr.io.example.com/a:1", "no image"],
        allowed_registries=["docker.io/library", "nvcr.io"],
    )
    assert found.keys() == {"containers.images[4]"}

    found = problems(
        images=["ubuntu", "docker.io/library/ubuntu:latest", "nvcr.io/a/b:1", "nvcr.io.example.com/a:1"],
        allowed_registries=["docker.io/library", "nvcr.io"],
    )
    assert found.keys() == {"containers.images[1]", "containers.images[3]"}
    assert "more than once" in found["containers.images[1]"]
    assert "docker.io/library, nvcr.io alone" in found["containers.images[3]"]


def test_all_problems_of_local_copies_are_reported_at_once() -> None:
    local = {"host_path": "/var/lib/kubelet", "node_sets": ["cpu", "none"], "images_gib": 0, "free_percent": 100}
    assert problems(local=local).keys() == {
        "containers.local.host_path",
        "containers.local.node_sets[1]",
        "containers.local.images_gib",
        "containers.local.free_percent",
    }
    assert problems(local={"host_path": "/mnt/local", "node_sets": []}).keys() == {"containers.local.node_sets"}


def test_a_submount_of_other_machines_shows_no_copies() -> None:
    submounts = [{"path": "/local", "host_path": "/mnt/local", "node_sets": ["other"]}]
    spec = a_spec(
        containers={"local": {"host_path": "/mnt/local", "node_sets": ["cpu"]}},
        jail={"submounts": submounts},
        node_sets=[{"name": name, "replicas": 1, "cpus": 1, "memory_gib": 1} for name in ("cpu", "other")],
    )
    assert spec.containers
    assert spec.containers.local


@pytest.mark.parametrize("shown", ["/mnt", "/mnt/local", "/mnt/local/images"])
def test_containers_do_not_see_local_copies_in_a_submount(shown: str) -> None:
    submounts = [{"path": "/data", "host_path": "/mnt/data"}, {"path": "/local", "host_path": shown}]
    with pytest.raises(SpecError) as refused:
        a_spec(containers={"local": {"host_path": "/mnt/local"}}, jail={"submounts": submounts})

    (problem,) = refused.value.problems
    assert problem.path == "containers.local.host_path"
    assert "jail.submounts[1]" in problem.text


def test_a_repository_is_allowed_with_tag_and_digest() -> None:
    image = f"localhost:5000/team/image:1@sha256:{'0' * 64}"
    allowed = {"images": [image], "allowed_registries": ["localhost:5000/team/image"]}
    assert a_spec(containers=allowed).containers
    assert problems(**{**allowed, "allowed_registries": ["localhost:5000/team/im"]}).keys() == {"containers.images[0]"}


def test_docker_hubs_own_images_are_one_image_with_and_without_its_host() -> None:
    assert problems(images=["ubuntu:1", "docker.io/ubuntu:1", "docker.io/library/ubuntu:1"]).keys() == {
        "containers.images[1]",
        "containers.images[2]",
    }


def test_a_tag_has_one_digest() -> None:
    first, second = (f"@sha256:{digit * 64}" for digit in "01")
    pinned = ["localhost:5000/a:1" + first, "localhost:5000/a:2" + first, "b" + first, "b" + second]
    assert a_spec(containers={"images": pinned}).containers

    found = problems(images=[*pinned, "localhost:5000/a:1" + second, "localhost:5000/a:2"])
    assert found.keys() == {"containers.images[4]", "containers.images[5]"}
    assert f'containers.images[0] is "{pinned[0]}". Remove one.' in found["containers.images[4]"]


@pytest.mark.parametrize(
    "image",
    [
        "myImage:1x",
        "Team/image",
        "ubuntu:a:b",
        "reg.io:999999/x",
        "a_b.c/d",
        "reg..io/x",
        "-reg.io/x",
        "reg.io/x..y",
        "reg.io//x",
        "reg.io/x/",
        "ubuntu:1\n",
    ],
)
def test_an_image_of_a_form_that_no_registry_has_is_refused(image: str) -> None:
    assert problems(images=[image]).keys() == {"containers.images[0]"}


# Words of a few characters hit the rules for hosts, ports, tags and separators far more often than any text.
@given(
    st.from_regex(re.compile(TypeAdapter(ImageReference).json_schema()["pattern"]), fullmatch=True)
    | st.lists(
        st.sampled_from(
            ["a", "B", "0", ".", "-", "_", "__", ":", "/", "@", "docker.io", "localhost", "@sha256:" + "0" * 64]
        ),
        max_size=12,
    ).map("".join)
)
def test_the_importer_takes_every_image_of_a_spec_by_the_same_name(image: str) -> None:
    try:
        TypeAdapter(ImageReference).validate_python(image)
    except ValidationError:
        return
    name, at, digest = full_name(image).partition("@")
    if at:
        name = re.sub(r":[^:/]*$", "", name)
    assert parse(image, Path("/")).full_name == f"{name}{at}{digest}"


@pytest.mark.parametrize(
    "text", ["", "secret", AUTHORITY + "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"]
)
def test_an_authority_that_is_not_certificates_alone_is_refused_and_not_shown(text: str) -> None:
    found = problems(registries=[{"host": "a.example.com", "authority": text}])

    assert found.keys() == {"containers.registries[0].authority"}
    assert "secret" not in found["containers.registries[0].authority"]


def test_certificates_of_several_authorities_are_allowed() -> None:
    containers = a_spec(
        containers={"registries": [{"host": "a.example.com:5000", "authority": AUTHORITY * 2}]}
    ).containers

    assert containers
    assert containers.registries[0].authority == AUTHORITY * 2
