"""Findings about volumes that a user may accept."""

from enum import StrEnum
from typing import Annotated

from soperator_pulumi.spec.validation.base import Matches


class StorageProperty(StrEnum):
    """A property of the jail's volume that is tested before a tree is filled (docs/storage.md)."""

    HARD_LINKS = "hard_links"
    """Several names for one file."""
    CASE = "case"
    """Names that differ only in case."""
    CHARACTERS = "characters"
    """Any bytes except / and NUL in names."""
    UNLINK_OPEN = "unlink_open"
    """Removed files stay for processes that have them open."""
    REPLACE_OPEN = "replace_open"
    """Readers of a replaced file keep the old one."""
    EXECUTION = "execution"
    """Programs start from the volume, also outside of views."""
    FLOCK = "flock"
    """Locks of whole files."""
    RECORD_LOCKS = "record_locks"
    """Locks of byte ranges, by fcntl(2)."""
    SHARED_LOCKS = "shared_locks"
    """Locks between machines."""
    SHARED_MAP = "shared_map"
    """Shared memory maps that two processes write to."""
    HARD_LINK_LIMIT = "hard_link_limit"
    """The number of names that a file may have."""
    SYMLINK_LINKS = "symlink_links"
    """A second name of a symbolic link."""
    NAME_LENGTH = "name_length"
    """Names of 255 bytes."""
    FIFOS_AND_SOCKETS = "fifos_and_sockets"
    """Fifos and sockets."""
    USER_ATTRIBUTES = "user_attributes"
    """Extended attributes user.*."""
    ACCESS_LISTS = "access_lists"
    """Access control lists."""
    FLUSH_LATENCY = "flush_latency"
    """Latency of a flush."""
    FILE_CREATION = "file_creation"
    """Rate of new files."""
    EMPTIED = "emptied"
    """A claim without the jail that was filled before: a new jail may be filled, without the users' files."""


class StateProperty(StrEnum):
    """A property of the volume of slurmctld's state that is tested before slurmctld starts."""

    EMPTIED = "emptied"
    """A volume without the state that slurmctld had: it may start with an empty queue, and job ids from 1."""


AcceptReason = Annotated[
    str,
    Matches(r"\S[^\x00-\x1f]*\S", "needs a reason in one line, for the next reader of the stack.", 200),
]
"""Reason why a finding does not matter."""
