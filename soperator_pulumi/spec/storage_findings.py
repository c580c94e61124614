"""Findings of the storage's probe that a user may accept."""

from enum import StrEnum
from typing import Annotated

from soperator_pulumi.spec.validation.base import Matches


class StorageProperty(StrEnum):
    """A property of a volume that the probe tries out (docs/storage.md)."""

    HARD_LINKS = "hard_links"
    """A second name of a file."""
    CASE = "case"
    """Names that differ in case alone."""
    CHARACTERS = "characters"
    """Any byte but / and NUL in names."""
    UNLINK_OPEN = "unlink_open"
    """Removed files stay for those who have them open."""
    REPLACE_OPEN = "replace_open"
    """Readers of a replaced file keep the old one."""
    EXECUTION = "execution"
    """Programs start from the volume, outside of views too."""
    FLOCK = "flock"
    """Locks of whole files."""
    RECORD_LOCKS = "record_locks"
    """Locks of records."""
    SHARED_LOCKS = "shared_locks"
    """Locks between machines."""
    SHARED_MAP = "shared_map"
    """Maps into memory that two processes write to."""
    HARD_LINK_LIMIT = "hard_link_limit"
    """Many names of one file."""
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


AcceptReason = Annotated[
    str,
    Matches(r"\S[^\x00-\x1f]*\S", "needs the reason in one line, for whoever reads the stack next.", 200),
]
"""Reason for which a finding does not count."""
