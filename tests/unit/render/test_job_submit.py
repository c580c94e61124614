"""job_submit.lua, run by real Lua of every version that slurmctld may have."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.render.jail import job_submit_lua
from soperator_pulumi.spec.cluster import ClusterSpec
from tests.strategies import Data, a_spec, cluster_specs

LUAS = ("lua51", "lua52", "lua53", "lua54")

SUBMOUNTS: list[Data] = [
    {"path": "/data", "existing_claim": "data"},
    {"path": "/reference", "existing_claim": "genomes", "read_only": True},
    {"path": "/login-only", "scratch_gib": 1, "roles": ["login"]},
    {"path": "/opt/software", "existing_claim": "software"},
    {"path": "/usr/local/cuda", "host_path": "/cuda"},
    {"path": "/var/spool/slurmd", "scratch_gib": 1, "roles": ["worker"]},
]

# slurm.log_user takes a format and its arguments, as slurmctld makes it (job_submit_lua.c).
PRELUDE = """
slurm = {SUCCESS = 0, ERROR = -1, ESLURM_ACCESS_DENIED = 2002}
said, logged = {}, {}
function slurm.log_user(...) said[#said + 1] = string.format(...) end
function slurm.log_error(...) logged[#logged + 1] = string.format(...) end
slurm.jobs = {}
"""


class Slurmctld:
    """The plugin's side of a submission, with the real script."""

    def __init__(self, spec: ClusterSpec, version: str = "lua54") -> None:
        self.lua: Any = import_module(f"lupa.{version}").LuaRuntime()
        self.lua.execute(PRELUDE)
        assert self.lua.execute(job_submit_lua(spec)) == 0

    def submit(self, **job: object) -> str | None:
        """Return what the user is told who is refused; None when the job is accepted."""
        code = self.lua.globals().slurm_job_submit(self._table(job), None, 2001)
        return self._answer(code)

    def modify(self, old: Mapping[str, object], **new: object) -> str | None:
        code = self.lua.globals().slurm_job_modify(self._table(new), self._table(old), None, 2001)
        return self._answer(code)

    def has_jobs(self, *jobs: Mapping[str, object]) -> None:
        listed = {str(number): self._table(job) for number, job in enumerate(jobs)}
        self.lua.globals().slurm.jobs = self.lua.table_from(listed)

    def log(self) -> list[str]:
        return list(self.lua.globals().logged.values())

    def _table(self, values: Mapping[str, object]) -> Any:
        return self.lua.table_from(dict(values))

    def _answer(self, code: int) -> str | None:
        told = list(self.lua.globals().said.values())
        self.lua.execute("said = {}")
        assert (code != 0) == bool(told)
        assert code in {0, 2002}
        return "\n".join(told) or None


@pytest.fixture(scope="module", params=LUAS)
def slurmctld(request: pytest.FixtureRequest) -> Slurmctld:
    return Slurmctld(a_spec(jail={"submounts": SUBMOUNTS}), request.param)


def a_batch_job(**fields: object) -> dict[str, object]:
    return {"script": "#!/bin/sh\n", "name": "train", "work_dir": "/home/alice", **fields}


ACCEPTED: list[dict[str, object]] = [
    {},
    {"work_dir": "/home"},
    {"work_dir": "/tmp/"},
    {"work_dir": "/dev/shm/x"},
    {"work_dir": "/data/a//b/./c"},
    {"work_dir": "/etc/../home/alice"},
    {"work_dir": "/", "std_out": "/tmp/out"},
    {"work_dir": "/reference", "std_out": "/tmp/out.%j", "std_in": "genome.fa"},
    {"std_out": "out.%j", "std_err": "logs/err-%A_%a", "std_in": "in.txt"},
    {"std_out": "/data/%u/%x.out", "std_err": "/dev/null", "std_in": "/dev/null"},
    {"std_out": "../alice/out"},
    {"std_out": "", "std_err": "", "std_in": ""},
    {"std_out": "/home/a\\%j"},
    {"std_out": "100%"},
    {"std_out": "/tmp/%%x", "name": "../../etc/x"},
]

REFUSED: list[tuple[dict[str, object], str]] = [
    ({"work_dir": "/etc"}, 'working directory "/etc"'),
    ({"work_dir": "/homeless"}, 'working directory "/homeless"'),
    ({"work_dir": "/home/../etc"}, 'working directory "/etc"'),
    ({"work_dir": "/home/alice/../../../../usr"}, 'working directory "/usr"'),
    ({"work_dir": "/login-only"}, 'working directory "/login-only"'),
    ({"work_dir": "/opt/software"}, 'working directory "/opt/software"'),
    ({"work_dir": "/usr/local/cuda"}, 'working directory "/usr/local/cuda"'),
    ({"work_dir": "/var/spool/slurmd"}, 'working directory "/var/spool/slurmd"'),
    ({"work_dir": "/dev"}, 'working directory "/dev"'),
    ({"work_dir": "home/alice"}, 'working directory "home/alice": not an absolute path'),
    ({"work_dir": ""}, 'working directory "": not an absolute path'),
    ({"work_dir": None}, 'working directory "": not an absolute path'),
    ({"work_dir": "/"}, 'output file "/slurm-%j.out"'),
    ({"work_dir": "/reference"}, 'output file "/reference/slurm-%j.out": /reference is read-only'),
    ({"std_out": "/etc/out"}, 'output file "/etc/out"'),
    ({"std_out": "/dev/stdout"}, 'output file "/dev/stdout"'),
    ({"std_out": "/dev/null/x"}, 'output file "/dev/null/x"'),
    ({"std_out": "../../out.%j"}, 'output file "/out.%j"'),
    ({"std_out": "\\../../../etc/x"}, 'output file "/etc/x"'),
    ({"std_err": "/opt/slurm/err"}, 'error file "/opt/slurm/err"'),
    ({"std_err": "/reference/err"}, 'error file "/reference/err": /reference is read-only'),
    ({"std_in": "/etc/passwd"}, 'input file "/etc/passwd"'),
    ({"std_out": "%x", "name": "../../etc/cron.d/x"}, 'output file "/etc/cron.d/x"'),
    ({"std_out": "/tmp/%5x", "name": "/../../root/x"}, 'output file "/root/x"'),
    ({"std_out": "/etc/a\nb"}, "std_out: has a control character"),
    ({"std_out": "/etc/%s%d%n"}, 'output file "/etc/%s%d%n"'),
]


@pytest.mark.parametrize("job", ACCEPTED, ids=str)
def test_a_job_whose_files_are_where_the_nodes_have_them_is_accepted(slurmctld: Slurmctld, job: Data) -> None:
    assert slurmctld.submit(**a_batch_job(**job)) is None


@pytest.mark.parametrize(("job", "words"), REFUSED, ids=str)
def test_any_other_path_is_refused_by_its_name(slurmctld: Slurmctld, job: Data, words: str) -> None:
    told = slurmctld.submit(**a_batch_job(**job))
    assert told is not None
    assert words in told


def test_slurms_own_containers_are_refused_with_the_option_to_use() -> None:
    told = Slurmctld(a_spec()).submit(work_dir="/home/alice", container="/home/alice/bundle")

    assert told == (
        '--container "/home/alice/bundle": OCI bundles are not supported. Give an image by --container-image.'
    )


def test_a_refusal_says_what_is_allowed(slurmctld: Slurmctld) -> None:
    assert slurmctld.submit(**a_batch_job(work_dir="/srv")) == (
        'working directory "/srv": not shared with the nodes, so no job can start in it. Change the directory, or give '
        "another by --chdir. Allowed: /data, /dev/shm, /home, /reference, /tmp, what is in them, and / itself."
    )
    assert slurmctld.submit(**a_batch_job(std_err="/srv/e")) == (
        'error file "/srv/e": not shared with the nodes. Give another by --error. '
        "Allowed: files in /data, /dev/shm, /home, /tmp, and /dev/null."
    )


def test_an_interactive_job_has_no_file_by_default(slurmctld: Slurmctld) -> None:
    assert slurmctld.submit(work_dir="/") is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({}, {"time_limit": 5}, None),
        ({"std_out": "/gone/out"}, {"time_limit": 5}, None),
        ({}, {"std_out": "/etc/out"}, 'output file "/etc/out"'),
        ({}, {"std_out": "../../out"}, 'output file "/out"'),
        ({"work_dir": "/tmp"}, {"std_err": "err"}, None),
        ({}, {"std_out": ""}, None),
        ({"work_dir": "/"}, {"std_out": ""}, 'output file "/slurm-%j.out"'),
        ({}, {"work_dir": "/etc"}, 'working directory "/etc"'),
        ({"std_err": "../err"}, {"work_dir": "/data"}, 'error file "/err"'),
        ({"std_err": "/home/err", "std_out": "/home/out"}, {"work_dir": "/"}, None),
        ({}, {"work_dir": "/"}, 'output file "/slurm-%j.out"'),
        ({"std_out": "%x.out"}, {"name": "../../etc/x"}, 'output file "/etc/x.out"'),
        ({"std_out": "/gone/out"}, {"name": "other"}, None),
    ],
    ids=str,
)
def test_a_waiting_job_cannot_be_changed_to_what_is_refused(
    slurmctld: Slurmctld, old: Data, new: Data, words: str | None
) -> None:
    told = slurmctld.modify({"work_dir": "/home/alice", "name": "train", **old}, **new)
    assert (told is None) == (words is None)
    assert words is None or (told is not None and words in told)


def test_a_check_that_fails_refuses_the_job_and_tells_the_administrator_why(slurmctld: Slurmctld) -> None:
    told = slurmctld.submit(**a_batch_job(std_out=["not a text"]))
    assert told == "the job could not be checked. Report it to the administrator; the reason is in slurmctld's log."
    assert slurmctld.log()[-1].startswith("job_submit.lua: ")


_PATHS = st.lists(
    st.sampled_from(["home", "tmp", "data", "etc", "..", ".", "", "a b", "dev", "shm", "null", "x%j"]), max_size=7
).map("/".join)


@given(cluster_specs(), _PATHS)
def test_what_is_accepted_is_what_lies_in_a_shared_directory(spec: ClusterSpec, path: str) -> None:
    told = Slurmctld(spec).submit(**a_batch_job(std_out=path))
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"/home/alice/{path or 'slurm-%j.out'}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in {"", "."}:
            parts.append(part)
    whole = "/" + "/".join(parts)
    own = [submount.path for submount in spec.jail.submounts if "worker" in submount.roles and not submount.read_only]
    inside = any(whole == root or whole.startswith(f"{root}/") for root in ["/home", "/tmp", "/dev/shm", *own])
    if inside or whole == "/dev/null":
        assert told is None
    else:
        assert f'"{whole}"' in str(told)


@pytest.mark.parametrize("field", ["name", "comment", "work_dir", "mail_user", "std_out"])
@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "a\x7f", "a\u009bb"])
def test_what_a_terminal_would_obey_is_refused(slurmctld: Slurmctld, field: str, text: str) -> None:
    told = slurmctld.submit(**a_batch_job(**{field: text}))
    assert told == f"{field}: has a control character, as a line end or an escape. Give it without."
    assert slurmctld.modify({"work_dir": "/home/alice"}, **{field: text}) == told


@pytest.mark.parametrize("text", ["träning", "实验", "a b", "é\u00a0"])
def test_names_in_any_language_are_accepted(slurmctld: Slurmctld, text: str) -> None:
    assert slurmctld.submit(**a_batch_job(name=text)) is None


def test_a_text_that_slurmctld_would_take_long_for_is_refused(slurmctld: Slurmctld) -> None:
    dependency = "afterany:" + ":".join(str(job) for job in range(10_000))
    assert slurmctld.submit(**a_batch_job(dependency=dependency)) == (
        f"dependency: {len(dependency)} bytes. Allowed: 16384."
    )


@pytest.mark.parametrize(
    ("nodes", "accepted"),
    [
        ("cpu-[0-4095]", True),
        ("cpu-[0-1],gpu-[3,5-9]", True),
        ("rack[0-15]-[0-255]", True),
        ("cpu-[0-4095],gpu-0", False),
        ("x[0-9999][0-9999]", False),
        ("x[0-9999]y[1]", False),
        ("x[0-99999999999999999999]", False),
        ("x[1-2,0-9999]", False),
        ("x[][0-9999]", False),
        ("x[,][0-9999]", False),
        ("x[0-+9999][0-+9999]", False),
        ("x[0- 9999]", False),
        ("x[[0-60000]y[0-4094]", False),
        ("x[5-1", False),
    ],
)
@pytest.mark.parametrize("field", ["req_nodes", "exc_nodes"])
def test_a_list_of_more_nodes_than_the_cluster_can_have_is_refused(
    slurmctld: Slurmctld, field: str, nodes: str, accepted: bool
) -> None:
    told = slurmctld.submit(**a_batch_job(**{field: nodes}))
    assert (told is None) == accepted
    assert told is None or "more than 4096 names" in told or "not a list of nodes" in told
    assert slurmctld.modify({"work_dir": "/home/alice"}, **{field: nodes}) == told


@pytest.mark.parametrize(
    ("field", "setting"),
    [
        ("environment", "max_environment_kib"),
        ("argv", "max_arguments_kib"),
        ("spank_job_env", "max_arguments_kib"),
    ],
)
def test_strings_that_the_image_has_found_too_large_are_refused_in_words(field: str, setting: str) -> None:
    slurmctld = Slurmctld(a_spec(slurm={"max_environment_kib": 64}))
    found = {"SOPERATOR_TOO_LARGE": "600000"} if field == "environment" else {0: "SOPERATOR_TOO_LARGE=600000"}
    told = slurmctld.submit(**a_batch_job(**{field: slurmctld.lua.table_from(found)}))

    assert told is not None
    assert told.startswith(f"{field}: 600000 bytes. Allowed: 65536 (slurm.{setting}). ")


def test_a_variable_with_the_name_of_the_mark_refuses_no_job(slurmctld: Slurmctld) -> None:
    environment = slurmctld.lua.table_from({"SOPERATOR_TOO_LARGE": "a word of the user's"})
    assert slurmctld.submit(**a_batch_job(environment=environment)) is None


@pytest.mark.parametrize("field", ["argv", "spank_job_env"])
def test_arguments_that_slurmctld_would_keep_are_bounded_by_their_sum(slurmctld: Slurmctld, field: str) -> None:
    def told(count: int) -> str | None:
        strings = slurmctld.lua.table_from(dict.fromkeys(range(count), "x" * 1015))
        return slurmctld.submit(**a_batch_job(**{field: strings}))

    assert told(128) is None
    assert str(told(129)).startswith(f"{field}: 132096 bytes. Allowed: 131072 (slurm.max_arguments_kib). ")


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("field", ["argv", "spank_job_env"])
def test_a_user_s_own_mark_hides_no_large_arguments(slurmctld: Slurmctld, field: str, place: str) -> None:
    large, mark = ["x" * 1015] * 129, ["SOPERATOR_TOO_LARGE=1"]
    strings = slurmctld.lua.table_from(mark + large if place == "first" else large + mark)

    told = slurmctld.submit(**a_batch_job(**{field: strings}))

    assert str(told).startswith(f"{field}: 132126 bytes. Allowed: 131072 (slurm.max_arguments_kib). ")


def test_a_script_over_the_limit_is_refused_in_words(slurmctld: Slurmctld) -> None:
    allowed = 256 * 1024
    assert slurmctld.submit(**a_batch_job(script="x" * allowed)) is None
    assert slurmctld.submit(**a_batch_job(script="x" * (allowed + 1))) == (
        "script: 262145 bytes. Allowed: 262144 (slurm.max_script_kib). Put the data into a file."
    )


def test_environments_and_arguments_of_other_jobs_are_accepted(slurmctld: Slurmctld) -> None:
    given = {field: slurmctld.lua.table_from({0: "A=1"}) for field in ("argv", "spank_job_env")}
    assert slurmctld.submit(**a_batch_job(environment=slurmctld.lua.table_from({"A": "1"}), **given)) is None


PENDING, RUNNING, COMPLETED = 0, 1, 3
REQUEUED = 0x400


@pytest.mark.parametrize(
    ("array", "accepted"),
    [("", True), ("0-3", True), ("0-4", False), ("[0-4]", False), ("1,3,5-9:2%1", False), ("0-30:10", True)],
)
def test_a_user_has_a_bounded_number_of_jobs_and_tasks_that_have_not_ended(array: str, accepted: bool) -> None:
    slurmctld = Slurmctld(a_spec(slurm={"max_jobs_per_user": 10}))
    slurmctld.has_jobs(
        *[{"user_id": 2001, "job_state": state} for state in (RUNNING, PENDING | REQUEUED, COMPLETED)],
        {"user_id": 2001, "job_state": PENDING, "array_task_cnt": 4},
        {"user_id": 2002, "job_state": PENDING, "array_task_cnt": 900},
    )

    told = slurmctld.submit(**a_batch_job(user_id=2001, array_inx=array))

    assert (told is None) == accepted
    assert told is None or told.startswith(
        "you have 6 jobs that have not ended, and this adds 5. Allowed: 10 at a time"
    )


def test_jobs_count_from_their_submission_on_though_slurmctld_lists_its_jobs_once_a_second() -> None:
    slurmctld = Slurmctld(a_spec(slurm={"max_jobs_per_user": 2}))
    job = a_batch_job(user_id=2001)

    assert slurmctld.submit(**{**job, "work_dir": "/nowhere"}) is not None  # counts for nothing
    assert [slurmctld.submit(**job) is None for _ in range(3)] == [True, True, False]
    assert slurmctld.submit(**{**job, "user_id": 2002}) is None
    slurmctld.has_jobs({"user_id": 2001, "job_state": RUNNING})
    assert [slurmctld.submit(**job) is None for _ in range(2)] == [True, False]
