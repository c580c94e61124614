"""Policy on container images: pinned, and from allowed registries."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import UNKNOWN, ResourceView, pods_of

_DOCKER_HUB = "docker.io"


class ImageSettings(PolicySettings):
    """Settings of `pinned-images`."""

    registries: tuple[str, ...] = ()
    """Allowed registries, and repositories in them: `registry.example.com`, `registry.example.com/research`. Default:
    any."""
    moving_tags: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "latest",
        "stable",
        "main",
        "master",
        "edge",
        "nightly",
    )
    """Tags that are no version."""


def _images(resource: ResourceView, _run: Circumstances, settings: ImageSettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        yield from (not_known(resource, path) for path in pod.unknown())
        for path, container in pod.containers():
            image, where = container.get("image"), (*path, "image")
            if image is UNKNOWN:
                yield not_known(resource, where)
            else:
                yield from (Finding(resource, where, text) for text in _problems(str(image or ""), settings))


def _problems(image: str, settings: ImageSettings) -> Iterator[str]:
    """Yield the problems of a reference, without repeating it."""
    name, _, digest = image.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # the colon of a registry's port
        repository, tag = name, ""
    if not digest and not tag:
        yield "needs a tag or a digest, has none: the registry decides which image runs"
    elif not digest and tag in settings.moving_tags:
        yield f'got the tag "{tag}", needs a version or a digest: the tag may name another image tomorrow'
    if settings.registries and not any(_is_from(repository, each) for each in settings.registries):
        yield f"is from another registry than {', '.join(settings.registries)}"


def _is_from(repository: str, allowed: str) -> bool:
    first, slash, _ = repository.partition("/")
    has_registry = bool(slash) and (first == "localhost" or "." in first or ":" in first)
    full = repository if has_registry else f"{_DOCKER_HUB}/{repository}"
    return f"{full}/".startswith(f"{allowed.rstrip('/')}/")


PINNED_IMAGES = ResourcePolicy(
    name="pinned-images",
    description="Images are pinned by a digest or a version, and come from allowed registries.",
    violated_by="an image without a tag, or with `latest`; one from a registry that `registries` does not name",
    cure="Pin the image: registry/name:version, or registry/name@sha256:... . Mirror it into an allowed registry.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("images", "supply chain"),
    settings=ImageSettings,
    check=_images,
)
