"""Reading slurm.conf back."""

import pytest

from soperator_pulumi.render.parse import parse_conf


def test_parameters_are_found_whatever_their_case_and_blanks() -> None:
    conf = parse_conf('KILLWAIT=30\n  mailprog = "/usr/bin/my mail" # a comment\n\n# Another=1\n')
    assert conf.parameters == {"KillWait": "30", "MailProg": "/usr/bin/my mail"}


def test_lines_of_a_kind_are_found_by_name() -> None:
    conf = parse_conf("NodeSet=a Feature=a\nPartitionName=p Nodes=a,b MaxTime=1-00\nPartitionName=q Nodes=b\n")
    assert conf.rows("NodeSet") == {"a": {"Feature": "a"}}
    assert conf.rows("PartitionName") == {"p": {"Nodes": "a,b", "MaxTime": "1-00"}, "q": {"Nodes": "b"}}
    assert conf.rows("NodeName") == {}


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_conf("SchedulerParameters=bf_window=60,defer").parameters == {
        "SchedulerParameters": "bf_window=60,defer"
    }


@pytest.mark.parametrize("text", ["KillWait", "KillWait=1 nonsense", "= 5"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not key=value"):
        parse_conf(text)
