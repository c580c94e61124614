"""The record of a fault: one text, whether it is given in sentences or in parts."""

from soperator_pulumi.errors import Problem


def test_a_problem_in_parts_reads_as_one_in_sentences() -> None:
    whole = Problem("node_sets[0].cpus", "got 9. Needed: 8 or fewer. Lower it.")
    parts = Problem("node_sets[0].cpus", "got 9", "8 or fewer", "Lower it.")
    assert str(parts) == str(whole) == "node_sets[0].cpus: got 9. Needed: 8 or fewer. Lower it."


def test_a_problem_of_a_whole_spec_names_no_place() -> None:
    assert str(Problem("", "got a list.")) == "got a list."


def test_a_problem_that_ends_with_a_command_or_a_question_gets_no_final_stop() -> None:
    assert (
        str(Problem("source.folder", "helm pull chart --version 1.2")) == "source.folder: helm pull chart --version 1.2"
    )
    assert Problem("replicsa", 'Did you mean "replicas"?', cure="Rename it.").text.startswith(
        'Did you mean "replicas"? R'
    )
