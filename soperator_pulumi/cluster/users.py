"""The sidecar that merges the users of the spec with those that were added inside the jail."""

from pulumi_kubernetes.core.v1 import ContainerArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.cluster_inputs import Parts
from soperator_pulumi.cluster.containers import BURSTABLE, asks, hardened, requirements
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.render import layout

USERS_CONFIG_MAP = "users"
"""passwd, group and shadow of the users of the spec."""

MERGED_SUMS = f"{layout.USER_FILES}/declared.sha256"
"""What the sidecar writes last: sums of the declared files that it has merged."""

READS = ("DAC_READ_SEARCH",)
"""Some distributions give shadow the mode 0000."""

WRITES = ("CHOWN", "DAC_OVERRIDE")
"""What it takes to replace files of a tree, where they may have any group and mode."""

_LOOK = f"import os, sys; sys.exit(not os.path.exists({MERGED_SUMS!r}))"


def merged_users() -> Mount:
    """Mount the merged files in the container of a daemon."""
    return mounts.memory("extrausers", layout.USER_FILES, "16Mi", read_only=True)


def users_sidecar(parts: Parts, *, writes_tree: bool = False) -> tuple[ContainerArgs, list[Mount]]:
    """Return the sidecar, and its mounts.

    Args:
        parts: The cluster's.
        writes_tree: Whether it also keeps the users of the spec in the files of the active tree, where every
            program of the jail finds them. One pod of the cluster does that.
    """
    images = parts.spec.images
    own = [
        mounts.claim("jail", parts.jail.name, layout.JAIL_DIR, read_only=not writes_tree),
        mounts.config_files(USERS_CONFIG_MAP, layout.DECLARED_USERS),
        mounts.memory("extrausers", layout.USER_FILES, "16Mi"),
    ]
    container = ContainerArgs(
        name="users",
        image=images.jail_tools,
        image_pull_policy=images.pull_policy,
        restart_policy="Always",
        command=[
            *(*layout.JAIL_TOOLS, "users", "--jail", layout.JAIL_DIR),
            *("--declared", layout.DECLARED_USERS, "--out", layout.USER_FILES),
            *(["--write-tree"] if writes_tree else []),
        ],
        security_context=hardened(capabilities=WRITES if writes_tree else READS),
        resources=requirements(BURSTABLE),
        startup_probe=asks(layout.JAIL_TOOLS[0], "-I", "-c", _LOOK, period=1, failures=60),
        volume_mounts=[mount.in_container() for mount in own],
    )
    return container, own
