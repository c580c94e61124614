"""The reader of what a populate prints."""

import json

import pytest

from tests.bench.test_populate import numbers

PRINTED = """\
storage: probing the claim, which takes seconds
storage: ext4: names with different case are different: yes
{"storage": {"version": 1, "filesystem": "ext4", "findings": []}}
populate: 12,345 of 30,000 files, 512 of 900 MiB
populate: tree 0123456789ab is the active one
"""


def test_the_numbers_of_a_populate_are_its_last_line() -> None:
    measured = {"files": 30000, "bytes": 943718400, "seconds": 9.5, "copy_seconds": 7.25, "verify_seconds": 2.125}
    assert numbers(f"{PRINTED}{json.dumps(measured)}\n") == measured


def test_a_populate_that_was_cut_off_has_no_numbers() -> None:
    with pytest.raises(json.JSONDecodeError):
        numbers(PRINTED)
