"""A worker's slurmd as a service: what its watch kills, and what its end means. The cluster tier has the real ones."""

import pytest

from tests.unit.cluster.worker_container import Worker

ANSWERS, REFUSES, HANGS = 0, 1, 124  # by timeout(1)

TIMEOUT = """\
#!/bin/sh
cd "${CALLS%/*}"
case $* in *munge*) exit "$(cat munge)" ;; esac
code=$(head -n 1 answers-of-slurmd)
sed -i 1d answers-of-slurmd
exit "$code"
"""

SLEEP = """\
#!/bin/sh
echo "sleep $1" >> "$CALLS"
[ -s "${CALLS%/*}/answers-of-slurmd" ] || kill "$PPID"
"""


def watched(worker: Worker, *answers: int, munge: int = 0) -> list[str]:
    """Return what the watch does while slurmd gives these answers."""
    worker.start()
    worker.write(**{"answers-of-slurmd": "".join(f"{answer}\n" for answer in answers), "munge": str(munge)})
    worker.write(**{"bin/timeout": TIMEOUT, "bin/sleep": SLEEP})
    for program in ("timeout", "sleep"):
        (worker.root / "bin" / program).chmod(0o755)
    before = len(worker.calls.read_text().splitlines())
    worker.run(["sh", "-c", "cd services/watch && exec ./run"])
    return worker.calls.read_text().splitlines()[before:]


def test_a_slurmd_that_has_not_answered_three_times_is_killed_and_looked_at_anew(worker: Worker) -> None:
    killed = "pkill -KILL -x -U root slurmd"
    assert watched(worker, *[HANGS] * 5) == ["sleep 5", "sleep 5", killed, "sleep 5", "sleep 5", "sleep 5"]


@pytest.mark.parametrize(
    "answers",
    [
        [HANGS, HANGS, ANSWERS, HANGS, HANGS],
        [REFUSES] * 6,  # as while it starts
    ],
)
def test_a_slurmd_that_answers_late_or_refuses_is_left_alone(worker: Worker, answers: list[int]) -> None:
    assert {call.split()[0] for call in watched(worker, *answers)} == {"sleep"}


def test_a_slurmd_is_not_killed_for_a_munged_that_hangs(worker: Worker) -> None:
    assert {call.split()[0] for call in watched(worker, *[HANGS] * 6, munge=HANGS)} == {"sleep"}


def test_a_slurmd_that_has_answered_is_asked_four_times_a_minute_and_known_to_have_started(worker: Worker) -> None:
    assert watched(worker, ANSWERS, ANSWERS) == ["sleep 15", "sleep 15"]
    assert (worker.root / "services/slurmd/answered").exists()


@pytest.mark.parametrize(("code", "signal", "words"), [(1, 0, "exit code 1"), (256, 9, "signal 9")])
@pytest.mark.parametrize("answered", [True, False])
def test_the_end_of_slurmd_ends_the_container_only_if_it_has_never_answered(
    worker: Worker, answered: bool, code: int, signal: int, words: str
) -> None:
    worker.start()
    if answered:
        worker.write(**{"services/slurmd/answered": ""})
    worker.write(**{"bin/s6-svscanctl": '#!/bin/sh\necho "s6-svscanctl $*" >> "$CALLS"\n'})
    (worker.root / "bin/s6-svscanctl").chmod(0o755)

    done = worker.run(["sh", "-c", f"cd services/slurmd && exec ./finish {code} {signal}"])

    assert f"slurmd ended with {words}" in done.stderr
    assert ("s6-svscanctl -t .." in worker.calls.read_text()) != answered
    if not answered:
        assert (worker.root / "services/exit-code").read_text() == f"{code if code < 256 else 128 + signal}\n"
