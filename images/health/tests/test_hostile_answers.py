"""Names and texts of users in what the checks read: no such text is a reading, a line or a node."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from health_testing.smi_outputs import query
from job_hooks import users_processes
from long_checks.programs import PROGRAMS, read
from long_checks.slurm_calls import parse_nodes
from node_health import kernel_files, smi
from node_health.bounded import is_there
from node_health.node_record import parse_node

TAGS = st.sampled_from(
    [
        *("</process_name>", "</process_info>", "</processes>", "</gpu>", "</nvidia_smi_log>", "<processes>", "<gpu>"),
        *('<gpu id="00000000:1B:00.0">', "<attached_gpus>1</attached_gpus>", "<nvidia_smi_log>", "<?xml ", "<!--"),
        "<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>",
        "<gpu_recovery_action>Reset</gpu_recovery_action>",
        *("GPU is lost", "Unknown Error", "\n", "&", "]]>", "\x00\x1b", "y"),
    ]
)
PLAIN = [gpu._replace(processes=()) for gpu in smi.parse_query(query("h100-550", count=2))]
TEXTS = st.text(alphabet=st.sampled_from("\r\t\x0b\x0c\x1c\x1d\x1e\x85\u2028=[]@ aN0\xe9"), max_size=12)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TAGS, max_size=12).map("".join), st.integers(0, 1))
def test_the_name_of_a_program_on_a_gpu_is_no_reading_of_it(name: str, of: int) -> None:
    process = f"<process_info>\n<pid>7</pid>\n<type>C</type>\n<process_name>{name}</process_name>\n</process_info>"
    changes = {"<processes></processes>": f"<processes>\n{process}</processes>"}
    try:
        gpus = smi.parse_query(query("h100-550", count=2, changes=changes, of=of))
    except smi.ForgedAnswerError:
        gpus = tuple(
            smi.parse_alone(query("h100-550", count=1, changes=changes if number == of else {}), number)
            for number in (0, 1)
        )
        assert [(gpu.broken, gpu.gone, gpu.recovery) for gpu in gpus] == [((), "", "")] * 2
    else:
        assert [gpu._replace(processes=()) for gpu in gpus] == PLAIN


@pytest.fixture(scope="module")
def proc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A /proc of one process, of the user 2001."""
    folder = tmp_path_factory.mktemp("root") / "proc"
    for name in ("7/task/7", "sys/kernel"):
        (folder / name).mkdir(parents=True)
    (folder / "loadavg").write_text("0.5 0.4 0.3 2/500 4711\n")
    (folder / "sys/kernel/pid_max").write_text("1000\n")
    (folder / "7/cmdline").write_bytes(b"slurmstepd: [1.batch]\x00")
    return folder


@given(TEXTS)
@example("\x1cUid:\t0")
@example("\x85Uid:\t0\t0\t0\t0")
@example("a) S 1 (b")
def test_the_name_of_a_process_changes_neither_its_user_nor_its_threads(proc: Path, name: str) -> None:
    written = name.encode()[:15]
    (proc / "7/stat").write_bytes(b"7 (" + written + b") S 1 7 7 0\n")
    status = b"\nUmask:\t0022\nUid:\t2001\t2001\t2001\t2001\nGid:\t0\t0\t0\t0\nThreads:\t40\n"
    (proc / "7/status").write_bytes(b"Name:\t" + written + status)

    assert kernel_files.process_ids(str(proc.parent)) == (46.0, {2001: 4.0})
    (entry,) = users_processes._entries(proc)
    assert (entry.uids, entry.parent) == (frozenset({2001}), 1)


@given(st.sampled_from(["Comment", "Extra", "Reason"]), TEXTS, st.sampled_from(["NodeName=gpu-9", "State=DOWN", ""]))
def test_a_text_of_a_node_is_no_node_and_no_state(key: str, text: str, forged: str) -> None:
    line = f"NodeName=gpu-0 State=IDLE NodeAddr=10.0.0.1  {key}={text}{forged} [root@2026-11-26T13:00:00]"
    assert [(node.name, node.state.state) for node in parse_nodes(line)] == [("gpu-0", "IDLE")]
    assert parse_node(line).state == "IDLE"


@given(st.sampled_from([*PROGRAMS]), st.text(max_size=200))
@example("dcgm", "[" * 100_000)
@example("tcp", "{" + '"a":{' * 50_000)
@example("tcp", '{"end": {"sum_received": {"bits_per_second": 1' + "0" * 400 + "}}}")
@example("memory", '{"bench": "memory", "errors": 0, "value": 1' + "0" * 400 + "}")
@example("rdma", "1 2 3 " + "9" * 400 + " 5")
def test_any_output_of_a_long_check_has_a_reading_or_none(program: str, output: str) -> None:
    found = read(program, output)
    assert found is None or isinstance(found.problem, str)


def test_a_process_is_there_whatever_bytes_its_name_has() -> None:
    script = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\xff) Z', 0, 0, 0); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert b"\xff" in Path(f"/proc/{process.pid}/stat").read_bytes()
        assert is_there(process.pid)
        process.communicate()
    assert not is_there(process.pid)
