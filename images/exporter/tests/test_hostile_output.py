"""Texts and numbers that users put into Slurm's answers: bounded, clean, and the failure of one source at most."""

import pytest
from exporter_testing.answers import DIAG, NODES, job_line
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from slurm_exporter import job_rows, job_samples, node_rows
from slurm_exporter.collection import Collector
from slurm_exporter.command import text_of
from slurm_exporter.metric_table import METRICS
from slurm_exporter.samples import Unread

HOSTILE = st.text(alphabet=st.sampled_from('\n\r\t\x00\x1b\x1c\x85\u2028\u202e"\\{}=,[]()|a0é '), max_size=70)
WIDE = st.one_of(HOSTILE, st.text(max_size=70), st.integers().map(str), st.just("9" * 70))
COLUMNS = st.dictionaries(st.sampled_from([*job_rows._WIDTHS]), WIDE, max_size=6)


def round_of(jobs: bytes, nodes: bytes = NODES.encode(), diag: bytes = DIAG.encode()) -> Collector:
    collector = Collector()
    given = {"squeue": jobs, "scontrol": nodes, "sdiag": diag}
    collector.round(lambda command: given[command[0]], lambda _: None)
    return collector


def errors(collector: Collector) -> dict[str, int]:
    return {source.name: source.errors for source in collector.sources}


def labels(collector: Collector) -> list[str]:
    families = text_string_to_metric_families(text_of(collector).decode())
    return [value for family in families for sample in family.samples for value in sample.labels.values()]


def line(columns: dict[str, str]) -> bytes:
    return job_line(**columns).replace(b"\n", b"\x0b")[:-1] + b"\n"


# What one user may put there ------------------------------------------------------------------------------------------


def test_control_characters_reach_no_label() -> None:
    hostile = "a\x1b[31m\x07\u202eb\x9b"
    collector = round_of(job_line(Name=hostile, Account=hostile, State="PENDING"))
    assert "a?[31m??b?" in labels(collector)
    assert all(value.isprintable() for value in labels(collector))


def test_the_bounds_are_those_of_the_pages() -> None:
    assert f"more than {job_samples.MOST_JOBS}" in METRICS["slurm_exporter_jobs_left_out"].help


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    """A lower bound of jobs and accounts."""
    monkeypatch.setattr(job_samples, "MOST_JOBS", 50)
    monkeypatch.setattr(job_samples, "MOST_ACCOUNTS", 50)
    return 50


def test_a_user_with_many_jobs_has_no_more_series_than_the_bound_and_takes_none_from_others(most: int) -> None:
    flood = [job_line(JobID=str(job), UserName="mallory", State="PENDING") for job in range(100, 200 + most)]
    others = [job_line(JobID="7000000", UserName="alice", State="PENDING"), job_line(JobID="7000001", UserName="bob")]
    found = job_samples.of_jobs(job_rows.parse([*flood, *others], Unread()))

    shown = {labels[0] for labels, _ in found["slurm_job_info"]}
    assert len(shown) == most
    assert {"7000000", "7000001"} <= shown
    assert found["slurm_exporter_jobs_left_out"] == [((), 102)]
    assert found["slurm_jobs"] == [((), most + 102)], "counts have all of them"


def test_jobs_that_run_have_series_before_those_that_wait(most: int) -> None:
    waiting = [job_line(JobID=str(job), UserName=f"u{job}", State="PENDING") for job in range(most + 1)]
    found = job_samples.of_jobs(job_rows.parse([*waiting, job_line(JobID="7000000", UserName="u0")], Unread()))
    assert "7000000" in {labels[0] for labels, _ in found["slurm_job_info"]}


def test_accounts_that_users_make_up_are_counted_together(most: int) -> None:
    made_up = [job_line(JobID=str(job), Account=f"a{job}", State="PENDING") for job in range(most + 9)]
    own = [job_line(JobID=str(job), Account="physics", State="PENDING") for job in range(7_000_000, 7_000_003)]
    found = job_samples.of_jobs(job_rows.parse([*made_up, *own], Unread()))

    pending = {labels[0]: count for labels, count in found["slurm_account_jobs_pending"]}
    assert len(pending) == most + 1
    assert pending["physics"] == 3
    assert pending["(others)"] == 10


# Any bytes ------------------------------------------------------------------------------------------------------------


@given(st.lists(COLUMNS, max_size=4))
@example([{"tres-alloc": "mem=" + "9" * 150}])
@example([{"NumCPUs": "1.5K"}, {"tres-alloc": "gres/gpu=2K"}])
@example([{"SubmitTime": "²"}, {"JobID": "¹"}])
@example([{"NodeList": "gpu-[0-99999999999]"}])
@example([{"NodeList": "gpu-[5-x]"}])
@example([{"State": "PENDING", "JobArrayID": "12_[0-99999999999:0]"}])
def test_a_job_of_any_form_costs_no_other_job_its_metrics(columns: list[dict[str, str]]) -> None:
    collector = round_of(b"".join([*map(line, columns), job_line(JobID="4711")]))

    assert errors(collector) == {"nodes": 0, "jobs": 0, "scheduler": 0}
    assert "4711" in labels(collector)
    assert all(value.isprintable() for value in labels(collector))


@given(st.binary(max_size=2000), st.binary(max_size=2000), st.binary(max_size=300))
@example(b"", b"NodeName=a State=IDLE", b"[]")
@example(b"", b"NodeName=a", b'{"statistics": {"jobs_submitted": null}}')
@example(b"", b"NodeName=a", b'{"statistics": 1}')
@example(b"", b"", b"[" * 100_000)
@example(b"", b"", b'{"statistics": {"jobs_submitted": 1' + b"0" * 400 + b"}}")
def test_an_answer_of_any_bytes_costs_its_own_source_alone(jobs: bytes, nodes: bytes, diag: bytes) -> None:
    text_of(round_of(jobs, nodes, diag))
    assert errors(round_of(job_line(), nodes, diag))["jobs"] == 0
    assert errors(round_of(jobs, NODES.encode(), DIAG.encode())) == {"nodes": 0, "jobs": 0, "scheduler": 0}


@given(st.sampled_from(["Reason", "Comment", "Extra"]), HOSTILE)
@example("Comment", "x\x1cNodeName=gpu-9 State=IDLE CPUEfctv=1 CPUAlloc=0 RealMemory=1 AllocMem=0")
def test_a_text_of_a_node_makes_no_other_node(key: str, text: str) -> None:
    written = NODES.encode() + f" {key}={text}".replace("\n", "").encode()
    rows = [*node_rows.parse(written.decode(errors="replace"), Unread())]
    assert [row.name for row in rows] == ["gpu-1", "gpu-0"]


def test_a_node_of_an_unknown_form_costs_no_other_its_samples() -> None:
    odd = "NodeName=odd State=IDLE CPUEfctv=many"
    assert [row.name for row in node_rows.parse(f"{odd}\n{NODES}", Unread())] == ["gpu-1", "gpu-0"]
    with pytest.raises(ValueError, match="none of 1 nodes has a known form: NodeName=odd"):
        next(node_rows.parse(odd, Unread()))
