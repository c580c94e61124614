"""Containers in jobs: images of users in place of the jail's files."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.images import ImageReference
from soperator_pulumi.spec.node_set import NodeSetName, NodeSetSpec
from soperator_pulumi.spec.submount import (
    SubmountSpec,
    chosen_problems,
    host_path_problems,
    may_share,
)
from soperator_pulumi.spec.types.absolute_path import AbsolutePath, overlap
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Matches, Model, number, refused_quietly, whole
from soperator_pulumi.spec.validation.partial import known

_HOST = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?"

RegistryHost = Annotated[
    str, Matches(_HOST, 'needs the host of a registry, such as "docker.io" or "registry.example.com:5000".', 253)
]
"""Host of a registry, with a port if it has one."""

RegistryPlace = Annotated[
    str,
    Matches(
        rf"{_HOST}(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*",
        'needs the host of a registry, or a part of it, such as "nvcr.io" or "registry.example.com:5000/team".',
        512,
    ),
]
"""A registry, or a part of it given by a prefix of its names."""

ProxyUrl = Annotated[
    str,
    Matches(
        r"https?://[A-Za-z0-9.-]+(:\d{1,5})?",
        'needs an address such as "http://proxy.example.com:3128", without a user and a password: users can read it.',
        512,
    ),
]
"""Address of a proxy."""

_CERTIFICATES = re.compile(r"\s*(-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+")
_MAX_AUTHORITY_BYTES = 65_536


def _certificates(text: str) -> str:
    if not _CERTIFICATES.fullmatch(text) or len(text) > _MAX_AUTHORITY_BYTES:
        wanted = "needs certificates in PEM, of 64 KiB at most, and nothing else: users can read them"
        raise refused_quietly(f"{wanted}.")
    return text


class ImageRegistrySpec(Model):
    """Settings of one registry of images for containers in jobs."""

    host: RegistryHost
    """Host of the registry, as in image names."""
    mirrors: tuple[RegistryPlace, ...] = ()
    """Registries to try first, in this order; if none has the image, the registry itself is used. The mirror
    `registry.example.com/hub` of `docker.io` has `docker.io/library/ubuntu` as
    `registry.example.com/hub/library/ubuntu`."""
    authority: Annotated[str, AfterValidator(_certificates)] | None = None
    """PEM certificates of authorities to trust for this host, in addition to those of the jail."""
    insecure: bool = False
    """Use HTTP, or do not verify its certificate: anyone on the network path can change images."""


class RegistryProxySpec(Model):
    """A proxy to registries, for jobs that do not set `https_proxy` themselves."""

    url: ProxyUrl
    """Address of the proxy."""
    direct: tuple[RegistryHost, ...] = ()
    """Hosts to reach without the proxy, including all hosts below them (`no_proxy`)."""


class LocalCopiesSpec(Model):
    """Copies of images on the machines' own disks: tasks start from them, and not from the shared volume."""

    host_path: AbsolutePath
    """Existing directory of the machine, root's, on a local disk, for this cluster alone. Pods give it the mode 1777.
    Choose a disk that the kubelet does not use: users can fill it, and a full disk of the kubelet ends pods."""
    node_sets: tuple[NodeSetName, ...] | None = None
    """Node sets whose machines have the directory, by name. Default: all node sets."""
    images_gib: Annotated[float, number(0.001, what="a number of GiB")] | None = None
    """Limit in GiB of a user's copies on a node. If it is exceeded, the copy that was least recently started is removed
    first; copies in use stay. An image that does not fit starts from the shared volume. Default: none."""
    unused_days: Annotated[int, whole(1, 3650)] | None = None
    """Days after its last start when an unused copy is removed. Default: never."""
    free_percent: Annotated[float, number(0, 99, what="a percentage")] = 20
    """Percentage of the disk that copies leave free. Default: 20, because the kubelet ends pods when 15 % are left on
    a disk that it uses."""

    def is_on(self, node_set: str) -> bool:
        """Return True if the machines of a node set have the directory."""
        return self.node_sets is None or node_set in self.node_sets


class ContainersSpec(Model):
    """Containers in jobs: `srun --container-image=...`, with the options of Pyxis."""

    writes_mib: Annotated[int, whole(1, 1_000_000)] = 1024
    """Limit in MiB of the changes that a task makes to its container's own files. They are in memory, count as the
    job's, and are discarded after the task. Default: 1 GiB."""
    images_gib: Annotated[float, number(0.001, what="a number of GiB")] | None = None
    """Limit in GiB of a user's unpacked images and named containers. If it is exceeded, the image that was least
    recently started is removed first; images in use and named containers stay. An image that does not fit is refused.
    Default: none."""
    unused_days: Annotated[int, whole(1, 3650)] | None = None
    """Days after its last start when an unused image is removed. Default: never."""
    images: tuple[ImageReference, ...] = ()
    """Images that are shared by all users, on the jail's volume: users start them without a pull. Every user who may
    run jobs may start them, even without a password of the registry. An image that leaves the list is removed unless a
    task runs in it. Default: none."""
    images_secret: Maybe[ObjectName] | None = None
    """Name of a Secret in the namespace, of the type `kubernetes.io/dockerconfigjson`, with the credentials for
    `images`. Default: none are needed."""
    registries: tuple[ImageRegistrySpec, ...] = ()
    """Mirrors and authorities of registries. Default: none."""
    allowed_registries: tuple[RegistryPlace, ...] = ()
    """Registries from which images may come, and parts of them: `nvcr.io`, `registry.example.com/team`. Users' own
    files are always allowed. Default: any."""
    proxy: RegistryProxySpec | None = None
    """Proxy to registries. Default: none."""
    local: LocalCopiesSpec | None = None
    """Copies of images on the machines' own disks. The first start of an image on a node copies it there. Default: all
    nodes read the shared volume."""


def problems(spec: ContainersSpec | None) -> Iterator[Problem]:
    """Yield registries and images that are given twice, and contradictory settings."""
    if spec is None or not known(spec):
        return
    if known(spec.registries):
        yield from _registry_problems(spec)
    if known(spec.images, spec.allowed_registries) and known(*spec.images, *spec.allowed_registries):
        yield from _image_problems(spec)


def local_problems(
    spec: ContainersSpec | None, node_sets: tuple[NodeSetSpec, ...], submounts: tuple[SubmountSpec, ...]
) -> Iterator[Problem]:
    """Yield node sets that copies on local disks cannot have, and directories that jobs see otherwise."""
    if spec is None or not known(spec) or not known(spec.local) or spec.local is None:
        return
    local, path = spec.local, "containers.local"
    if known(local.node_sets) and local.node_sets is not None:
        yield from chosen_problems(local.node_sets, [node_set.name for node_set in node_sets], f"{path}.node_sets")
    if not known(local.host_path):
        return
    cure = 'Give a directory for copies alone, such as "/mnt/nvme/images".'
    yield from host_path_problems(local.host_path, f"{path}.host_path", cure)
    for index, submount in enumerate(submounts):
        other = submount.host_path
        if not known(other, submount.node_sets, local.node_sets) or other is None:
            continue
        if may_share(submount.node_sets, local.node_sets) and overlap(other, local.host_path):
            yield Problem(
                f"{path}.host_path",
                f'got "{local.host_path}", and jail.submounts[{index}] shows "{other}" to containers: they could '
                "change the user's other images. Choose a directory of its own.",
            )


def full_name(image: str) -> str:
    """Return the name of an image with its registry and tag, by Docker's rules."""
    first, slash, rest = image.partition("/")
    if not slash or (first != "localhost" and not set(first) & set(".:")):
        first, rest = "docker.io", image
    if first == "docker.io" and "/" not in rest:
        rest = f"library/{rest}"
    tagged = "@" in rest or ":" in rest.rpartition("/")[2]
    return f"{first}/{rest}{'' if tagged else ':latest'}"


def name_by_tag(image: str) -> str:
    """Return the full name of an image, without the digest if it has a tag, as jobs may start it by its tag."""
    return re.sub(r"(:[^:/@]*)@.*", r"\1", full_name(image))


def name_by_digest(image: str) -> str:
    """Return the full name of an image, without the tag if it has a digest, as jobs may start it by its digest."""
    return re.sub(r":[^:/@]*@", "@", full_name(image))


def _image_problems(spec: ContainersSpec) -> Iterator[Problem]:
    names = [full_name(image) for image in spec.images]
    started = [name_by_tag(image) for image in spec.images]
    allowed = ", ".join(spec.allowed_registries)
    for index, name in enumerate(names):
        path = f"containers.images[{index}]"
        first = started.index(started[index])
        if first < index:
            yield Problem(
                path,
                f'got "{spec.images[index]}", whose name is in the list more than once: containers.images[{first}] is '
                f'"{spec.images[first]}". Remove one.',
            )
        repository = re.sub(r"(:[^:/@]*)?(@.*)?$", "", name)
        if spec.allowed_registries and not any(
            f"{repository}/".startswith(f"{place}/") for place in spec.allowed_registries
        ):
            yield Problem(
                path,
                f'got "{spec.images[index]}", and images may come from {allowed} alone. Remove it, or add its registry '
                "to containers.allowed_registries.",
            )


def _registry_problems(spec: ContainersSpec) -> Iterator[Problem]:
    registries = {
        index: registry for index, registry in enumerate(spec.registries) if known(registry) and known(registry.host)
    }
    hosts = Counter(registry.host for registry in registries.values())
    for index, registry in registries.items():
        path = f"containers.registries[{index}]"
        if hosts[registry.host] > 1:
            yield Problem(
                f"{path}.host", f'got "{registry.host}", which is in the list more than once. Join the entries.'
            )
        if known(registry.insecure, registry.authority) and registry.insecure and registry.authority:
            yield Problem(
                f"{path}.insecure", "got true, with an authority for a certificate that is not verified. Remove one."
            )
