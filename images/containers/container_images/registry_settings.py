"""The admin's settings of registries in skopeo's format: mirrors, authorities, and registries without TLS."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from container_images.image_reference import ImageError, ImageReference


@dataclass(frozen=True)
class Registry:
    """Settings of a registry.

    Attributes:
        host: Its host, with a port if one is given.
        mirrors: Places that are asked before it: hosts, or parts of them.
        authority: Certificates in PEM of authorities that sign its certificate; empty for the system's alone.
        insecure: True if it is asked by HTTP, or without a look at its certificate.

    """

    host: str
    mirrors: tuple[str, ...] = ()
    authority: str = ""
    insecure: bool = False


def in_mirrors(image: ImageReference, registries: Iterable[Registry]) -> list[ImageReference]:
    """Return an image as its registry's mirrors have it, without the user, whose password is for the registry only."""
    return [
        replace(
            image,
            skopeo=f"docker://{place}{image.skopeo.removeprefix(f'docker://{registry.host}')}",
            registry=place.partition("/")[0],
            user=None,
        )
        for registry in registries
        if registry.host == image.registry
        for place in registry.mirrors
    ]


def check_allowed(image: ImageReference, allowed: Sequence[str]) -> None:
    """Refuse an image whose registry is not allowed. The list has hosts or parts of them; an empty list allows any.

    Raises:
        ImageError: The registry is not allowed.
    """
    name = replace(image, skopeo=image.repository).full_name
    if allowed and image.registry and not any(f"{name}/".startswith(f"{place}/") for place in allowed):
        message = f"{name}: images may come from {', '.join(allowed)} alone (containers.allowed_registries)."
        raise ImageError(message)


@contextmanager
def skopeo_home(registries: Sequence[Registry]) -> Iterator[Path]:
    """Yield a home folder for skopeo with the admin's settings, ignoring settings in the user's own home."""
    with TemporaryDirectory(prefix="skopeo-") as home:
        settings = Path(home, ".config/containers")
        settings.mkdir(parents=True)
        (settings / "registries.conf").write_text(_registries_conf(registries))
        for registry in registries:
            if registry.authority:
                folder = settings / "certs.d" / registry.host
                folder.mkdir(parents=True)
                (folder / "ca.crt").write_text(registry.authority)
        yield Path(home)


def _registries_conf(registries: Sequence[Registry]) -> str:
    """Return containers-registries.conf(5). A JSON string is also a valid TOML string."""
    insecure = {registry.host for registry in registries if registry.insecure}
    lines = []
    for registry in registries:
        lines += ["[[registry]]", *_place(registry.host, insecure)]
        for mirror in registry.mirrors:
            lines += ["[[registry.mirror]]", *_place(mirror, insecure)]
    return "\n".join([*lines, ""])


def _place(place: str, insecure: Iterable[str]) -> list[str]:
    return [
        f"location = {json.dumps(place)}",
        f"insecure = {json.dumps(place.partition('/')[0] in insecure)}",
    ]
