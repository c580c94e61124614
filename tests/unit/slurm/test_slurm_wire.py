"""The package writes what the programs in the images read, and reads what they write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_wire import drain_reasons, hostlists
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.hostlist import compress, expand
from soperator_pulumi.slurm.parsing import read_nodes

TEXTS = st.text(alphabet="ab-[],012 ", max_size=9)  # no longer range than Slurm's
NAMES = st.from_regex(r"[a-z]{1,3}(-[0-9]{1,4})?", fullmatch=True)


def read(hostlist: str, *, by_package: bool) -> list[str] | None:
    try:
        return expand(hostlist) if by_package else hostlists.names(hostlist)
    except ValueError:
        return None


@given(st.one_of(TEXTS, st.lists(NAMES).map(compress)))
def test_both_read_a_host_list_alike(hostlist: str) -> None:
    assert read(hostlist, by_package=False) == read(hostlist, by_package=True)


@pytest.mark.parametrize("operation", Operation)
def test_the_images_read_the_operation_of_a_drain(operation: Operation) -> None:
    marker = Marker("soperator.prod.hpc", operation, "" if operation.of_a_pod else "00ff00")
    assert drain_reasons.named_operation(str(marker)) == operation
    assert Marker.read(f"{marker} : Not responding", marker.owner) == marker


def test_a_new_node_is_drained_with_the_reason_that_long_checks_look_for() -> None:
    assert layout.NOT_VERIFIED == drain_reasons.NOT_VERIFIED


@pytest.mark.parametrize("checks", [("clock",), ("clock", "disk"), ()])
def test_the_package_reads_findings(checks: tuple[str, ...]) -> None:
    extra = drain_reasons.findings_text(checks)
    (node,) = read_nodes(f'{{"nodes": [{{"name": "gpu-0", "state": ["IDLE"], "extra": "{extra}"}}]}}')
    assert node.findings == checks


def test_a_text_of_an_admin_has_no_findings_for_both() -> None:
    (node,) = read_nodes('{"nodes": [{"name": "gpu-0", "state": ["IDLE"], "extra": "rack 12"}]}')
    assert node.findings == drain_reasons.findings("rack 12") == ()
