"""The tests of `make check`, and the installed package, on Pythons that users have and this machine has not."""

import shlex

import pytest

from tests.other_pythons import RELEASES, OtherPython
from tools import check

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(2400)]

TIMEOUT_SECONDS = 1200
QUICK_TESTS = next(shlex.split(source_check.line) for source_check in check.THEN if source_check.name == "tests")

USE_THE_WHEEL = """
set -e
.venv/bin/python -m hatchling build --target wheel --directory /tmp/dist
python3 -m venv --without-pip /tmp/user
.venv/bin/python -m pip --python /tmp/user/bin/python --quiet install --no-compile /tmp/dist/*.whl pytest
cp -r examples/testing /tmp/program
cd /tmp/program
/tmp/user/bin/python -m pytest --quiet
"""
"""A user's environment with what the package declares, in versions of the day, and the tests of a program in it."""


@pytest.fixture(params=RELEASES)
def python(request: pytest.FixtureRequest) -> OtherPython:
    return OtherPython(request.param)


def test_the_tests_of_make_check_pass(python: OtherPython) -> None:
    assert python.run(*QUICK_TESTS, timeout_seconds=TIMEOUT_SECONDS) == 0


def test_the_wheel_serves_a_program_in_an_environment_of_its_own(python: OtherPython) -> None:
    assert python.run("sh", "-c", USE_THE_WHEEL, timeout_seconds=TIMEOUT_SECONDS) == 0
