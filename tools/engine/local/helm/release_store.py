"""Records of releases in the cluster: helm keeps a Secret for every revision (helm's `pkg/storage/driver`)."""

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tools.engine.kubernetes.api_client import ApiConnection, Object
from tools.engine.values import PlainMap

OWNER_LABEL = "pulumi-local-engine"
"""Label of this engine's releases, with their stack and resource."""
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""YAML loader that reads all scalars as text: names are texts, and PyYAML knows no other form of the scalar `=`."""


@dataclass(frozen=True)
class StoredRelease:
    """Newest revision of a release."""

    secret: Object
    content: Mapping[str, Any]

    @property
    def status(self) -> str:
        """State of the revision, in helm's words."""
        return str(self.content["info"]["status"])

    @property
    def revision(self) -> int:
        """Number of the revision."""
        return int(self.content["version"])

    @property
    def pending(self) -> bool:
        """True while an operation is running, or after one was killed: helm then refuses further ones."""
        return self.status.startswith("pending-")

    @property
    def owner(self) -> str:
        """Stack and resource of a release that this engine made; empty for other releases."""
        return str(self.secret["metadata"]["labels"].get(OWNER_LABEL, ""))


async def newest(cluster: ApiConnection, namespace: str, name: str) -> StoredRelease | None:
    """Return the newest revision of a release; None if there is no release of that name."""
    secrets = await cluster.list("v1", "Secret", namespace, labelSelector=f"owner=helm,name={name}")
    if not secrets:
        return None
    secret = max(secrets, key=lambda secret: int(secret["metadata"]["labels"]["version"]))
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    return StoredRelease(secret, json.loads(gzip.decompress(packed)))


async def mark_failed(cluster: ApiConnection, stored: StoredRelease) -> None:
    """Record that a killed operation has failed, so that helm upgrades the release."""
    info = {**stored.content["info"], "status": "failed", "description": "the operation was cut off"}
    content = json.dumps({**stored.content, "info": info}).encode()
    packed = base64.b64encode(base64.b64encode(gzip.compress(content))).decode()
    metadata = stored.secret["metadata"]
    secret = {
        **stored.secret,
        "metadata": {**metadata, "labels": {**metadata["labels"], "status": "failed"}},
        "data": {"release": packed},
    }
    path = f"/api/v1/namespaces/{metadata['namespace']}/secrets/{metadata['name']}"
    await cluster.request("PUT", path, secret)


def outputs(inputs: PlainMap, stored: StoredRelease) -> PlainMap:
    """Return a release's outputs in pulumi-kubernetes' form: the inputs, and the release's own values."""
    content = stored.content
    chart = content["chart"]["metadata"]
    values = inputs.get("values")
    return {
        **inputs,
        "values": merged(values if isinstance(values, dict) else {}, content.get("config") or {}),
        "version": chart["version"],
        "resourceNames": dict(_resource_names(content.get("manifest") or "")),
        "status": {
            "appVersion": chart.get("appVersion", ""),
            "chart": chart["name"],
            "name": content["name"],
            "namespace": content["namespace"],
            "revision": stored.revision,
            "status": stored.status,
            "version": chart["version"],
        },
    }


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return maps merged recursively; `over` takes precedence."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merged(below or {}, value) if both else value
    return result


def _resource_names(manifest: str) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for obj in yaml.load_all(manifest, Loader=_LOADER):
        if not isinstance(obj, dict) or "kind" not in obj:
            continue
        version, kind, metadata = str(obj.get("apiVersion")), str(obj["kind"]), obj.get("metadata") or {}
        group = version.rpartition("/")[0]
        key = f"{kind}.{group}/{version}" if group else f"{kind}/{version}"
        name = "/".join(filter(None, [metadata.get("namespace"), metadata.get("name")]))
        found.setdefault(key, set()).add(name)
    return {key: sorted(names) for key, names in sorted(found.items())}
