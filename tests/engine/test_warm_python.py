"""The interpreter that tests fork their deployments from does as the real one would."""

import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm_python
from tests.waiting import wait_until

pytestmark = pytest.mark.engine

ANSWER = """\
import os, sys
print(sys.argv[1:], os.environ["COLOUR"], os.getcwd(), sys.stdin.read(), "pulumi" in sys.modules)
sys.stderr.write(f"{os.getppid()}")
sys.exit(7)
"""
HOLD = """\
import os, time
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_a_script_gets_what_it_was_started_with_and_its_end_is_reported(tmp_path: Path) -> None:
    (tmp_path / "answer.py").write_text(ANSWER)
    done = subprocess.run(
        [warm_python.executable(), "-u", tmp_path / "answer.py", "a b", "c"],
        input="read", capture_output=True, text=True, check=False, cwd=tmp_path, env={"COLOUR": "blue"},
    )  # fmt: skip
    assert done.stdout == f"['a b', 'c'] blue {tmp_path} read True\n"
    assert done.returncode == 7


def test_two_scripts_know_nothing_of_each_other(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(hasattr(sys, 'left'))\nsys.left = True\n")
    said = [subprocess.check_output([warm_python.executable(), "-u", script], text=True) for _ in range(2)]
    assert said == ["False\n", "False\n"]


@pytest.mark.parametrize("python", ["warm", "real"])
def test_bytes_of_a_script_arrive_while_it_runs(python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    (tmp_path / "port.py").write_text("import sys, time\nsys.stdout.buffer.write(b'8080\\n')\ntime.sleep(600)\n")
    interpreter = warm_python.executable() if python == "warm" else sys.executable
    with subprocess.Popen([interpreter, "-u", tmp_path / "port.py"], stdout=subprocess.PIPE) as started:
        assert started.stdout
        ready, _, _ = select.select([started.stdout], [], [], 20)
        started.kill()
    assert ready


@pytest.mark.parametrize("python", ["warm", "real"])
def test_a_script_that_is_killed_is_gone(python: str, tmp_path: Path) -> None:
    (tmp_path / "hold.py").write_text(HOLD)
    interpreter = warm_python.executable() if python == "warm" else sys.executable
    with subprocess.Popen([interpreter, "-u", tmp_path / "hold.py"], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout
        pid = int(started.stdout.readline())
        started.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "it is gone")
