"""Policy on container images: pinned, and from allowed registries."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.pod_view import PodView, pods_of, values_outside_pods
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look
from soperator_pulumi.policy.view import ResourceView

_DOCKER_HUB = "docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


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
    """Tags that are not a version. A tag without a digit is not one either."""


def _images(resource: ResourceView, _run: Circumstances, settings: ImageSettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        yield from (not_known(resource, path) for path in pod.unknown())
        for where, image in _references(pod):
            if image is UNKNOWN:
                yield not_known(resource, where)
            else:
                yield from (Finding(resource, where, text) for text in _problems(str(image or ""), settings))
    for where, image in values_outside_pods(resource):
        if where[-1] == "image" and isinstance(image, str) and not resource.is_chart:
            whole = _joined(look(resource.props, *where[:-1]), image)
            yield from (Finding(resource, where, text) for text in _problems(whole, settings))


def _joined(parts: object, image: str) -> str:
    """Return an image's reference, joined from its parts if these have keys of their own, as in a NicClusterPolicy."""
    repository, version = look(parts, "repository"), look(parts, "version")
    named = f"{repository}/{image}" if isinstance(repository, str) and repository else image
    return f"{named}:{version}" if isinstance(version, str) and version else named


def _references(pod: PodView) -> Iterator[tuple[Path, object]]:
    """Yield the images of containers and of volumes. A patch may leave out an image that it does not change."""
    for path, container in pod.containers():
        if "image" in container or not pod.resource.is_patch:
            yield (*path, "image"), container.get("image")
    for index, volume in enumerate(listed(look(pod.spec, "volumes"))):
        if (source := look(volume, "image")) is not None and volume is not UNKNOWN:
            yield (*pod.path, "volumes", index, "image", "reference"), look(source, "reference")


def _problems(image: str, settings: ImageSettings) -> Iterator[str]:
    """Yield the problems of a reference, without quoting it."""
    name, at, digest = image.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # the colon of a registry's port
        repository, tag = name, ""
    if at and not _DIGEST.fullmatch(digest):
        yield "needs a digest after the @: sha256: and 64 hexadecimal digits"
    elif not digest and not tag:
        yield "needs a tag or a digest, has none: the registry decides which image runs"
    elif not digest and (tag in settings.moving_tags or not any(map(str.isdigit, tag))):
        got = f'got the tag "{tag}"' if tag in settings.moving_tags else "got a tag without a digit"
        yield f"{got}, needs a version or a digest: the tag may name another image tomorrow"
    if settings.registries and not any(_is_from(repository, registry) for registry in settings.registries):
        yield f"is not from an allowed registry: {', '.join(settings.registries)}"


def _is_from(repository: str, allowed: str) -> bool:
    first, slash, _ = repository.partition("/")
    has_registry = bool(slash) and (first == "localhost" or "." in first or ":" in first)
    full = repository if has_registry else f"{_DOCKER_HUB}/{'' if slash else 'library/'}{repository}"
    return f"{full}/".startswith(f"{allowed.rstrip('/')}/")


PINNED_IMAGES = ResourcePolicy(
    name="pinned-images",
    description="Images are pinned by a digest or a version, and come from allowed registries.",
    violated_by="an image without a tag, or with `latest`; an image from a registry that `registries` does not list",
    cure="Pin the image: registry/name:version, or registry/name@sha256:... . Mirror it into an allowed registry.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("images", "supply chain"),
    settings=ImageSettings,
    check=_images,
)
