"""Completes the configuration of a cluster on this machine: images built here, and the key of `make ssh`."""

from collections.abc import Mapping
from typing import Any

from tools import images, ssh


def complete(cluster: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster's configuration with the local images and the local user's key added.

    Args:
        cluster: Description of a cluster. Images that it names win.
        settings: The stack's `soperator:local`: `user`, the name of the user of `make ssh`.

    """
    user_name = settings["user"]
    users = [
        {**user, "ssh_keys": [*user.get("ssh_keys", []), ssh.public_key()]} if user.get("name") == user_name else user
        for user in cluster.get("users", [])
    ]
    return {"images": images.references(), **cluster, "users": users}
