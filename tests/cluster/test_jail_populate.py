"""Filling a tree: killed at any moment and run again, it is whole in the end and never called complete before."""

import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jail_testing.file_systems import in_memory_with, mounted

from tests.cluster.populating import POPULATE, TREE, VERIFY, Ended, Populating, last_numbers, volume
from tests.cluster.slurm import unique
from tests.conftest import Kubernetes
from tools.console import say

pytestmark = pytest.mark.cluster

SERIES, KILLS = 5, 10
"""Kills of a populate: in series, so that a part of `make soak` may have some of them."""

EVERYTHING = (
    f"cd /claim/trees/{TREE} && "
    "(find . -printf '%p %y %m %U %G %l\\n'; "
    "find . -type f -not -path ./etc/hostname -not -path ./etc/hosts -not -path ./etc/resolv.conf "
    "-printf '%p %s %T@\\n'; "
    "find . -type f -print0 | xargs -0 sha256sum)"
)
"""Prints a line or more for each file of a tree. Three are made by the populate itself, at its own time."""

COMPLETE = f"test -e /claim/meta/{TREE}/complete.json && echo complete || echo partial"


@pytest.fixture(scope="module")
def populating(kubernetes: Kubernetes, built_images: None) -> Iterator[Populating]:
    namespace = unique("populate")
    kubernetes.run("create", "namespace", namespace)
    yield Populating(kubernetes, namespace)
    kubernetes.throw_away(namespace)


@dataclass(frozen=True)
class Undisturbed:
    """A claim with a tree that was filled in one go, and what was seen of it then."""

    claim: str
    filled: Ended
    verified: Ended
    complete: str
    active: str
    files: set[str]

    @property
    def numbers(self) -> dict[str, float]:
        return last_numbers(self.filled)


@pytest.fixture(scope="module")
def undisturbed(populating: Populating) -> Undisturbed:
    claim = populating.claim()
    filled = populating.run(volume(claim), POPULATE)
    assert filled.code == 0, filled.log
    verified = populating.run(volume(claim), VERIFY)
    complete, active = populating.look(claim, f"{COMPLETE}; readlink /claim/active").splitlines()
    return Undisturbed(claim, filled, verified, complete, active, set(populating.look(claim, EVERYTHING).splitlines()))


def test_a_tree_is_filled_with_progress(undisturbed: Undisturbed) -> None:
    filled = undisturbed.filled

    assert re.search(r"^populate: [\d,]+ of [\d,]+ files, [\d,]+ of [\d,]+ MiB$", filled.log, re.MULTILINE)
    assert undisturbed.numbers["files"] > 3000
    assert (undisturbed.complete, undisturbed.active) == ("complete", f"trees/{TREE}")
    assert undisturbed.verified.code == 0, undisturbed.verified.log


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("series", range(SERIES))
def test_killed_at_random_moments_and_run_again_it_is_whole(
    populating: Populating, undisturbed: Undisturbed, series: int
) -> None:
    moments = random.Random(series)  # noqa: S311 - chosen for tests
    kills, rounds = 0, 0
    while kills < KILLS:
        rounds += 1
        claim, complete = populating.claim(), False
        # A few kills a tree: it is soon filled, as each run goes on where the last one was killed.
        for _ in range(min(4, KILLS - kills)):
            pod = populating.start(volume(claim), POPULATE)
            populating.wait_until_running(pod)
            time.sleep(moments.uniform(0, undisturbed.numbers["seconds"]))
            populating.kill(pod)
            kills += 1
            complete = populating.look(claim, COMPLETE) == "complete\n"
            if complete:
                break
        if not complete:
            assert populating.run(volume(claim), VERIFY).code == 78
            ended = populating.run(volume(claim), POPULATE)
            assert ended.code == 0, ended.log
        verified = populating.run(volume(claim), VERIFY)
        assert verified.code == 0, verified.log
        assert sorted(set(populating.look(claim, EVERYTHING).splitlines()) ^ undisturbed.files) == []
    say(f"{kills} kills in {rounds} trees")


def test_a_second_run_on_a_complete_tree_does_nothing(populating: Populating, undisturbed: Undisturbed) -> None:
    claim = undisturbed.claim
    populating.look(claim, f"echo mine > /claim/trees/{TREE}/etc/motd")

    again = populating.run(volume(claim), POPULATE)

    assert again.code == 0, again.log
    assert populating.look(claim, f"cat /claim/trees/{TREE}/etc/motd") == "mine\n"


def test_verification_names_all_that_was_spoilt(populating: Populating, undisturbed: Undisturbed) -> None:
    claim = undisturbed.claim
    spoil = (
        f"cd /claim/trees/{TREE}; printf X | dd of=usr/bin/env bs=1 seek=1000 conv=notrunc; "
        "rm usr/bin/tac; chmod 0600 usr/bin/sort; touch usr/bin/intruder; ln -sfn elsewhere usr/bin/awk"
    )
    populating.look(claim, spoil)

    verified = populating.run(volume(claim), VERIFY)

    assert verified.code != 0
    for path in ("usr/bin/env", "usr/bin/tac", "usr/bin/sort", "usr/bin/intruder", "usr/bin/awk"):
        assert path in verified.log
        assert path in verified.message
    assert "usr/bin/cut" not in verified.log


def test_a_claim_that_can_hold_a_jail_is_probed_once_and_found_good(
    populating: Populating, undisturbed: Undisturbed
) -> None:
    report = "\n".join(line for line in undisturbed.filled.log.splitlines() if line.startswith("storage:"))

    assert re.search(r"^storage: \w+: \d\d of \d\d properties as needed", report, re.MULTILINE)
    assert "refused" not in report
    recorded = json.loads(populating.look(undisturbed.claim, "cat /claim/meta/storage.json"))["storage"]
    (printed,) = (json.loads(line) for line in undisturbed.filled.log.splitlines() if line.startswith('{"storage"'))
    assert {row["level"] for row in recorded["findings"]} <= {"ok", "noted", "warning"}
    assert printed["storage"]["findings"] == recorded["findings"]
    assert "storage-probe" not in populating.look(undisturbed.claim, "ls -A /claim")


@pytest.mark.soak
def test_a_directory_of_the_machine_on_which_nothing_may_start_is_refused_before_it_is_filled(
    populating: Populating, tmp_path: Path
) -> None:
    """A view of a job has no noexec of the volume, so a user may accept it."""
    with mounted(in_memory_with("size=4G,noexec"), tmp_path) as folder:
        claim = {"hostPath": {"path": str(folder)}}

        refused = populating.run(claim, POPULATE)
        left = sorted(path.name for path in folder.iterdir())
        accepted = populating.run(claim, [*POPULATE, "--accept", "execution=jobs need it not"])

    assert refused.code == 78
    assert "refused  execution: found " in refused.message
    assert "Remove noexec from the mountOptions" in refused.message
    assert left == []
    assert accepted.code == 0, accepted.log


@pytest.mark.soak
@pytest.mark.parametrize(("spare_mib", "words"), [(-100, "MiB free"), (4, "No space left on device")])
def test_a_full_volume_is_reported_and_not_called_complete(
    populating: Populating, undisturbed: Undisturbed, spare_mib: int, words: str
) -> None:
    """The second one is large enough for the files' bytes, but not for the blocks that they take."""
    size_mib = int(undisturbed.numbers["bytes"] / 2**20) + spare_mib
    small = {"emptyDir": {"medium": "Memory", "sizeLimit": f"{size_mib}Mi"}}

    ended = populating.run(small, POPULATE)

    assert ended.code == 1
    assert words in ended.message
    assert "complete" not in ended.log


def test_a_tree_that_someone_else_made_is_refused_and_left_alone(populating: Populating) -> None:
    claim = populating.claim()
    populating.look(claim, f"mkdir -p /claim/trees/{TREE}/etc && echo precious > /claim/trees/{TREE}/etc/data")

    ended = populating.run(volume(claim), POPULATE)

    assert ended.code == 78
    assert TREE in ended.message
    assert "Nothing was changed" in ended.message
    assert populating.look(claim, f"cd /claim/trees/{TREE} && find . -type f | xargs cat") == "precious\n"


@pytest.mark.soak
def test_the_limit_is_kept(populating: Populating) -> None:
    ended = populating.run(volume(populating.claim()), [*POPULATE, "--limit-mib-per-second", "40"])
    numbers = last_numbers(ended)

    assert numbers["bytes"] / numbers["copy_seconds"] / 2**20 < 44
