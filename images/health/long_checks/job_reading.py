"""Result of a measuring program, as its output has it."""

from typing import NamedTuple


class Reading(NamedTuple):
    """Result of one job."""

    value: float | None = None
    """Value in the check's unit. None: the program only passes or fails."""
    problem: str = ""
    """Fault that the program itself found, with what is allowed after a comma: `3 errors, allowed 0`."""
    finding: str = ""
    """Setting, other process or such that the program complained of, and that is no fault of the hardware."""
    nvls: bool | None = None
    """NCCL reduced in the switches (NVLS, SHARP), which is faster. None: the program does not state it."""
