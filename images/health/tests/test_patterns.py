"""Regular expressions of a round are compiled at their first use."""

import re
import subprocess
import sys

import pytest

from node_health.patterns import pattern

LOADS = """
import sys
sys.path[:0] = {path!r}
import re
compiled = []
usual = re.compile
re.compile = lambda text, flags=0: compiled.append(str(text)) or usual(text, flags)
import node_health.command
from node_health.kernel_log import KernelLog
KernelLog({{}}, "").add(iter(["6,1,1000000,-;eth0: link is up"]))
print("xml.etree.ElementTree" in sys.modules, any("NVRM" in text or "nvidia" in text for text in compiled))
"""


def test_a_round_loads_no_xml_and_compiles_nothing_of_gpus_before_it_meets_one() -> None:
    done = subprocess.run(
        [sys.executable, "-IS", "-c", LOADS.format(path=sys.path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.split() == ["False", "False"]


def test_a_pattern_finds_what_a_compiled_one_finds() -> None:
    found = pattern(r"(A+)b", re.IGNORECASE)

    assert found.pattern == "(A+)b"
    for _ in range(2):
        match = found.fullmatch("aab")
        assert match is not None
        assert match[1] == "aa"
    assert found.search("c") is None


def test_an_error_in_a_pattern_comes_at_its_first_use() -> None:
    wrong = pattern("(")

    with pytest.raises(re.error):
        wrong.match("a")
