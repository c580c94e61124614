"""Conversion of what other projects describe into a stack of ours: Helm values and custom resources.

`python -m soperator_pulumi.convert FILE` writes a stack file and a report. The same from Python::

    from pathlib import Path

    from soperator_pulumi.convert import convert

    converted = convert([Path("values.yaml")])
    print(converted.stack_file())
    print(converted.report())
"""

from soperator_pulumi.convert.conversion import Addition, Fate, LeafAccount
from soperator_pulumi.convert.converter import Converted, convert

__all__ = ["Addition", "Converted", "Fate", "LeafAccount", "convert"]
