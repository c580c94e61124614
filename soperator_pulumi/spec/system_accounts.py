"""Names that exist in every image before any user of the spec: a user of that name would never be looked up.

From Debian 13's base-passwd (passwd.master, group.master) and the packages in the images.
"""

_BOTH = frozenset(
    "root daemon bin sys games man lp mail news uucp proxy www-data backup list irc _apt nobody "
    "slurm munge sshd messagebus systemd-network systemd-timesync".split()
)

SYSTEM_USERS = _BOTH | {"sync"}
"""Users that are there already."""

SYSTEM_GROUPS = _BOTH | frozenset(
    "adm tty disk dialout fax voice cdrom floppy tape sudo audio dip operator src shadow utmp video sasl plugdev "
    "staff users nogroup crontab input sgx clock kvm render netdev _ssh systemd-journal".split()
)
"""Groups that are there already."""
