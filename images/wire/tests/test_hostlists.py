"""Host lists, unfolded."""

import contextlib

import pytest

from slurm_wire import hostlists


@pytest.mark.parametrize(
    ("hostlist", "names"),
    [
        ("", []),
        ("cpu-0", ["cpu-0"]),
        ("gpu-[0-2,7],cpu-0", ["gpu-0", "gpu-1", "gpu-2", "gpu-7", "cpu-0"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ],
)
def test_host_lists_are_unfolded(hostlist: str, names: list[str]) -> None:
    assert hostlists.names(hostlist) == names


@pytest.mark.parametrize(
    "hostlist",
    [
        "gpu-[0-99999999999]",
        "gpu-[0-65535,0-65535][0-65535][0-65535]",
        f"gpu-[{'9' * 5000}]",
        "gpu-[9-0]",
        "gpu-[a-b]",
        "gpu-[0",
        "][",
    ],
)
def test_a_host_list_of_any_form_has_an_end(hostlist: str) -> None:
    with contextlib.suppress(ValueError):
        assert len(hostlists.names(hostlist)) <= hostlists.MOST_NAMES
