"""Settings of slurm.conf that the user writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.spec.slurm_parameters import (
    OWNED_PARAMETERS,
    OWNED_PARTITION_OPTIONS,
    PARAMETERS,
    PARTITION_OPTIONS,
    VERSIONS,
    Kind,
    version_problems,
)
from soperator_pulumi.spec.slurm_settings import settings_problems
from tests.strategies import a_spec

FREE = sorted(name for name in PARAMETERS if name.lower() not in OWNED_PARAMETERS)


def the_problem_of(key: str, value: object) -> str:
    (problem,) = settings_problems({key: value}, PARAMETERS, OWNED_PARAMETERS)
    assert problem.path == key
    return problem.text


def test_what_we_own_is_known_to_slurm() -> None:
    assert set(OWNED_PARAMETERS) <= {name.lower() for name in PARAMETERS}
    assert set(OWNED_PARTITION_OPTIONS) <= {name.lower() for name in PARTITION_OPTIONS}


@given(st.sampled_from(sorted(OWNED_PARAMETERS)), st.data())
def test_what_we_own_is_refused_however_it_is_spelled(name: str, drawn: st.DataObject) -> None:
    spelled = "".join(drawn.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in name)
    assert the_problem_of(spelled, "x").endswith("Remove it.")


@pytest.mark.parametrize("name", FREE)
def test_every_other_parameter_takes_a_value_of_its_kind(name: str) -> None:
    value = {Kind.NUMBER: 5, Kind.BOOLEAN: True, Kind.TEXT: "some text", Kind.TIME: "1-00"}[PARAMETERS[name]]
    assert settings_problems({name: value}, PARAMETERS, OWNED_PARAMETERS) == []


@given(st.sampled_from(FREE), st.data())
def test_a_name_is_written_as_slurm_spells_it(name: str, drawn: st.DataObject) -> None:
    spelled = drawn.draw(st.sampled_from([name.lower(), name.upper(), name]))
    value = "5" if PARAMETERS[name] is Kind.NUMBER else "YES"
    version = next(version for version in VERSIONS if not [*version_problems({name: value}, version, "")])
    assert a_spec(slurm={"version": version, "extra": {spelled: value}}).slurm.extra == {name: value}


@given(st.sampled_from(FREE), st.text().filter(lambda text: not text.isprintable() or set(text) & set('#"\\')))
def test_a_value_that_would_break_out_of_its_line_is_refused(name: str, value: str) -> None:
    assert the_problem_of(name, value)


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_a_name_that_slurm_does_not_know_is_refused(name: str) -> None:
    known = {parameter.lower() for parameter in PARAMETERS}
    if name.lower() not in known:
        assert the_problem_of(name, "x").startswith("Slurm has no such setting.")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("TaskProlog", "/bin/x", "every task ends with TaskProlog failed status=127"),
        ("TaskEpilog", "/bin/x", "runs it as the user outside the jail"),
        ("X11Parameters", "home_xauthority", "runs xauth as the user outside the jail. Remove it."),
        ("PrologFlags", "Alloc,x11", "has the entry x11, which is not supported: for X11 forwarding slurmd runs xauth"),
        ("prologflags", "X11", "has the entry x11"),
        ("SchedulerParameters", "defer,max_script_size=1", "set slurm.max_script_kib. Remove that entry"),
        ("SlurmctldParameters", "conmgr_max_connections=128", "needs a whole number of at least 129"),
        ("SlurmctldParameters", "CONMGR_MAX_CONNECTIONS = many", "needs a whole number of at least 129"),
        ("LaunchParameters", "mem_sort, disable_send_gids", "do not know users that were added inside the jail"),
    ],
)
def test_what_a_jail_does_not_allow_is_refused_with_the_reason(key: str, value: str, words: str) -> None:
    assert words in the_problem_of(key, value)


def test_other_entries_of_the_same_lists_are_taken() -> None:
    settings = {"PrologFlags": "Alloc,Contain", "LaunchParameters": "use_interactive_step", "Prolog": "/etc/x"}
    assert settings_problems(settings, PARAMETERS, OWNED_PARAMETERS) == []


@pytest.mark.parametrize(
    ("value", "good"),
    [
        *((value, True) for value in (60, "60", "12:00:00", "2-00", "1-12:30", "infinite")),
        *((value, False) for value in ("2d", "1:5", "-1", 1.5)),
    ],
)
def test_times_are_written_as_slurm_reads_them(value: object, *, good: bool) -> None:
    found = settings_problems({"MaxTime": value}, PARTITION_OPTIONS, OWNED_PARTITION_OPTIONS)
    assert (found == []) is good
