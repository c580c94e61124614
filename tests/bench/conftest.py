"""Plugin of benchmarks: every one has to measure, and the run ends with the table of what they have measured."""

from collections.abc import Generator

import pytest

from tests.bench import sizes
from tests.bench.ratios import rows, table


def pytest_configure() -> None:
    """Refuse a size that does not exist."""
    sizes.check()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, bool | None, bool | None]:
    """Fail a benchmark that ends without a row of the table."""
    before = len(rows)
    result = yield
    assert len(rows) > before, "The benchmark has measured nothing: it calls `report` of tests/bench/ratios.py nowhere."
    return result


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    if rows:
        note = " in the smallest size, where ratios mean nothing" if sizes.SIZE == "smallest" else ""
        terminalreporter.section(f"benchmarks{note}")
        for line in table(sorted(rows, key=lambda row: row.what)):
            terminalreporter.write_line(line)
