"""User database of libnss-extrausers in all pods, and the users' public keys.

Sorted by id, so that the order in a spec changes no file.
"""

from soperator_pulumi.render import layout
from soperator_pulumi.render.layout import lines
from soperator_pulumi.spec.cluster import ClusterSpec

_LAST_CHANGE = 19_000
"""Day of the last password change since 1970: any past day, as no account has a password."""


def passwd(spec: ClusterSpec) -> str:
    """Return the content of `passwd`: SlurmUser, which every client looks up, the long checks' user, and the users."""
    slurm, health = layout.SLURM_UID, layout.HEALTH_UID
    checks = f"{layout.HEALTH_USER}:x:{health}:{health}::{layout.HEALTH_FOLDER}:/usr/sbin/nologin"
    return lines(
        f"slurm:x:{slurm}:{slurm}::/nonexistent:/usr/sbin/nologin",
        *([checks] if spec.health.long_checks else []),
        *(
            f"{user.name}:x:{user.uid}:{user.gid}::/home/{user.name}:{user.shell}"
            for user in sorted(spec.users, key=lambda user: user.uid)
        ),
    )


def group(spec: ClusterSpec) -> str:
    """Return the content of `group`: slurm's, declared groups with their members, and users' own groups."""
    declared = {group_spec.gid for group_spec in spec.groups}
    rows = [
        (group_spec.gid, group_spec.name, [u.name for u in spec.users if group_spec.name in u.groups])
        for group_spec in spec.groups
    ]
    rows += [(user.gid, user.name, []) for user in spec.users if user.gid not in declared]
    return lines(
        f"slurm:x:{layout.SLURM_UID}:",
        *([f"{layout.HEALTH_USER}:x:{layout.HEALTH_UID}:"] if spec.health.long_checks else []),
        *(f"{name}:x:{gid}:{','.join(sorted(members))}" for gid, name, members in sorted(rows)),
    )


def shadow(spec: ClusterSpec) -> str:
    """Return the content of `shadow`, without passwords and expiry. It holds no secret."""
    users = sorted(spec.users, key=lambda user: user.uid)
    ours = ["slurm", *([layout.HEALTH_USER] if spec.health.long_checks else [])]
    return lines(*(f"{name}:*:{_LAST_CHANGE}:0:99999:7:::" for name in (*ours, *(user.name for user in users))))


def user_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of /var/lib/extrausers."""
    return {"passwd": passwd(spec), "group": group(spec), "shadow": shadow(spec)}


def authorized_keys(spec: ClusterSpec) -> dict[str, str]:
    """Return every user's public keys, one per line; an empty file for a user without keys."""
    return {user.name: "".join(f"{key}\n" for key in user.ssh_keys) for user in spec.users}
