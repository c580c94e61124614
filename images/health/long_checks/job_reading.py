"""Result of a measuring program, read from its output."""

from typing import NamedTuple


class Reading(NamedTuple):
    """Result of one job."""

    value: float | None = None
    """Value in the check's unit. None: the program only passes or fails."""
    problem: str = ""
    """Fault that the program itself found, with the allowed value after a comma: `3 errors, allowed 0`."""
    finding: str = ""
    """Complaint of the program that is not a hardware fault, such as a setting or another process."""
    nvls: bool | None = None
    """NCCL reduced in the switches (NVLS, SHARP), which is faster. None: the program does not state it."""
