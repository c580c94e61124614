"""Names that Kubernetes and Slurm accept, as annotated types."""

from typing import Annotated

from soperator_pulumi.spec.validation.base import Matches

_LABEL = r"[a-z]([a-z0-9-]*[a-z0-9])?"

DnsLabel = Annotated[
    str, Matches(_LABEL, "needs lower case letters, digits and '-', a letter first, no '-' at the end.", 63)
]
"""An RFC 1035 label, for names that become host names in Kubernetes: at most 63 characters."""

ObjectName = Annotated[
    str,
    Matches(
        r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?",
        "needs the name of a Kubernetes object: lower case letters, digits, '-' and '.'.",
        253,
    ),
]
"""An RFC 1123 subdomain, the name of most Kubernetes objects: at most 253 characters."""

HostName = Annotated[
    str,
    Matches(
        r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*",
        "needs a host name: letters, digits, '-' and '.'.",
        253,
    ),
]
"""A host name, with or without its domain (RFC 1123)."""

_QUALIFIED = r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"

ResourceName = Annotated[
    str,
    Matches(
        r"(?!([a-z0-9-]+\.)*kubernetes\.io/)[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/"
        r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
        "needs an extended resource: domain/name, as a device plugin names it, of another domain than kubernetes.io.",
    ),
]
"""Name of an extended resource of Kubernetes, such as `nvidia.com/gpu`."""

_UNIT = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"

NetworkName = Annotated[
    str,
    Matches(
        rf"({_UNIT}/)?{_UNIT}",
        "needs the name of a NetworkAttachmentDefinition, or namespace/name: lower case letters, digits and '-', with "
        "at most 63 characters in both parts.",
    ),
]
"""Name of a NetworkAttachmentDefinition as Multus accepts it in a list: parts without dots."""

LabelKey = Annotated[
    str,
    Matches(_QUALIFIED, "needs a label key: [prefix/]name, the name of at most 63 letters, digits, '-', '_', '.'."),
]
"""Key of a Kubernetes label or annotation."""

LabelValue = Annotated[
    str,
    Matches(
        r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?",
        "needs a label value: letters, digits, '-', '_', '.', a letter or digit first and last.",
        63,
    ),
]
"""Value of a Kubernetes label: at most 63 characters."""

Owner = Annotated[
    str,
    Matches(
        r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?",
        "needs letters, digits, '-', '_', '.', a letter or digit first and last.",
        63,
    ),
]
"""Value of the owner label on a cluster's objects, and part of the reasons of its drains."""

SlurmName = Annotated[
    str,
    Matches(
        r"(?![Dd][Ee][Ff][Aa][Uu][Ll][Tt]$)[A-Za-z0-9_][A-Za-z0-9_.-]*",
        "needs letters, digits, '_', '-' and '.', a letter, digit or '_' first, and not DEFAULT, which Slurm reserves.",
        63,
    ),
]
"""A name in slurm.conf that users give in options: partition, feature."""

ClusterName = Annotated[
    str,
    Matches(_LABEL, "needs lower case letters, digits and '-', a letter first, no '-' at the end.", 40),
]
"""Slurm's ClusterName: a DNS label, as it is the default namespace, in lower case (slurm.conf(5)), with at most 40
characters, as table names of the accounting database contain it."""

SlurmAccount = Annotated[
    str,
    Matches(
        r"(?!root$)[a-z0-9_][a-z0-9_.-]*",
        "needs lower case letters, digits, '_', '-' and '.', and not root, which is Slurm's own.",
        63,
    ),
]
"""Name of an account in the accounting database, which stores names in lower case."""
