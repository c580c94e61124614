"""Completes the configuration of a cluster on this machine: images built here, and the key of `make ssh`."""

from collections.abc import Mapping
from typing import Any


def complete(cluster: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster's configuration with the local images and the local user's key added.

    Args:
        cluster: Description of a cluster. Images that it names win.
        settings: The stack's `soperator:local`: `user`, the name of the user of `make ssh`.

    """
    from tools import images  # noqa: PLC0415 - no stack of another Kubernetes waits for the tools

    given = cluster.get("users", [])
    users = [_with_key(user, settings["user"]) for user in given] if isinstance(given, list) else given
    return {"images": images.references(slurm=images.version_of(cluster)), **cluster, "users": users}


def _with_key(user: object, name: str) -> object:
    """Return the user, with the key of `make ssh` if the name matches. The spec reports an invalid user."""
    if not isinstance(user, Mapping) or user.get("name") != name:
        return user
    from tools import ssh  # noqa: PLC0415 - as above

    keys = user.get("ssh_keys", [])
    return {**user, "ssh_keys": [*keys, ssh.public_key()]} if isinstance(keys, list) else user
