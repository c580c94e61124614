"""Conversion of other projects' Helm values and custom resources into a stack of this project.

`soperator convert FILE` writes a stack file and a report. From Python::

    from pathlib import Path

    from soperator_pulumi.convert import convert

    converted = convert([Path("values.yaml")])
    print(converted.stack_file())
    print(converted.report())
"""

from soperator_pulumi.convert.conversion import Addition, Fate, LeafAccount
from soperator_pulumi.convert.converter import Converted, convert

__all__ = ["Addition", "Converted", "Fate", "LeafAccount", "convert"]
