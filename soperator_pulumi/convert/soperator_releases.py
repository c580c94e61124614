"""Releases of soperator: those with workers inside the cluster's description, and those before the keys known here."""

import re
from collections.abc import Mapping
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.errors import ConversionError

_KNOWN = "5.0.0"
"""Release whose keys and defaults are known."""

_NODE_SETS = {"replicas": 1, "maxUnavailable": 500, "docker": {"enabled": True}}
_NODE_SETS_BEFORE = {"replicas": 1, "maxUnavailable": "20%"}
"""Defaults of a NodeSet until 4.1."""

_FORMER_KEYS = ("ncclSettings", "telemetry")
"""Keys that only the chart of 1.x has."""


def node_set_defaults(version: str) -> Mapping[str, Any]:
    """Return the defaults of a NodeSet that differ from those here. Without a version, they are those of 5.0.0."""
    major = _major(version)
    return _NODE_SETS_BEFORE if major is not None and major < int(_KNOWN[0]) else _NODE_SETS


def check_release(work: Conversion, cluster: Section, version: str, name: str) -> None:
    """Add a remark about an earlier release with the same form.

    Args:
        work: The conversion.
        cluster: Place with `slurmNodes`.
        version: Release that wrote the input, or an empty text.
        name: Name of the file in errors.

    Raises:
        ConversionError: The workers are described in the cluster, as in 1.x, and not in node sets.
    """
    size = cluster.at("slurmNodes", "worker", "size").plain()
    former = [key for key in _FORMER_KEYS if cluster.at(key)]
    major = _major(version)
    if major == 1 or former or (isinstance(size, int) and size > 0):
        release = "1.x or 2.x (slurmNodes.worker)" if size else f"1.x ({', '.join(former)})"
        raise ConversionError(
            f"{name}: soperator {f'1.x ({version})' if major == 1 else release} has its workers in slurmNodes.worker. "
            "Since 3.0 they are node sets: upgrade soperator first, or write them as `nodesets` of the chart nodesets, "
            "set slurmNodes.worker.size to 0, and remove crVersion and other keys of 1.x."
        )
    if major is not None and major < int(_KNOWN[0]):
        work.remarks.append(f"Written by soperator {version}, and read with the keys of {_KNOWN}.")


def _major(version: str) -> int | None:
    found = re.match(r"v?(\d+)\.", version)
    return int(found[1]) if found else None
