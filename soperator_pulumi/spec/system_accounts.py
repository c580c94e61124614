"""Names that exist in every image before any user of the spec: one of the spec would never be looked up.

The users and groups of Debian 13's base-passwd and of the packages in the images.
"""

SYSTEM_NAMES = frozenset(
    """
    _apt _ssh adm audio backup bin cdrom clock crontab daemon dialout dip disk fax floppy games input irc kmem kvm list
    lp mail man messagebus munge netdev news nobody nogroup operator plugdev proxy render root sasl sgx shadow slurm
    src sshd staff sudo sync sys systemd-journal systemd-network systemd-timesync tape tty users utmp uucp video voice
    www-data
    """.split()  # noqa: SIM905 one name a line would be a screen of nothing
)
"""Users and groups: a user's own group has the user's name, so they are one set."""
