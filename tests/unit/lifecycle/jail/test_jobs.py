"""Following a Job: what is told while it runs, and how it ends."""

from dataclasses import replace

import pytest

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.batch_jobs import BatchJob, JobFollower
from tests.fakes.jail import MAKER, REFUSED, JailWorld, Run
from tests.fakes.objects import JOBS, NAMESPACE, PODS

NAME = "jail-populate-x"


@pytest.fixture
def world() -> JailWorld:
    world = JailWorld()
    world.programs["populate"] = lambda _arguments: Run(0, 'half\n{"files": 2}')
    return world


def following(world: JailWorld) -> JobFollower:
    world.reported.clear()
    return JobFollower(world, NAMESPACE, NAME, "populate", "jail", world.reported.append, world.clock)


def started(world: JailWorld) -> Json:
    world.add_job(NAME, "populate", container="populate")
    return the_pod(world)


def the_pod(world: JailWorld) -> Json:
    return world.job_pods()[-1]


def prints(world: JailWorld, pod: Json, *lines: str, every: float = 1.0) -> None:
    """Let a pod print lines, one after the other."""
    for number, line in enumerate(lines):

        def show(text: str = line) -> None:
            world.logs[pod["metadata"]["name"]] = text

        world.clock.after(every * number, show)


def test_a_job_that_is_complete_returns_what_its_pod_printed(world: JailWorld) -> None:
    started(world)
    outcome = following(world).end()
    assert outcome.failure == ""
    assert outcome.log == ("half", '{"files": 2}')


def test_what_its_pod_prints_is_reported_while_it_runs_and_once(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(0, seconds=20)
    prints(world, started(world), "1 of 2 files", "1 of 2 files", "2 of 2 files")
    following(world).end()
    assert world.reported == ["jail: 1 of 2 files", "jail: 2 of 2 files"]


def test_all_that_it_prints_is_reported_also_what_comes_at_once_and_last(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(0, 'a\nb\n\nc\nd\n{"files": 2}', seconds=5)
    prints(world, started(world), "a", "a\nb\n\nc")
    following(world).end()
    assert world.reported == ["jail: a", "jail: b", "jail: c", "jail: d"]


def test_it_is_reported_once_a_second_at_most(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(0, seconds=10)
    reported_at: list[float] = []
    prints(world, started(world), *[f"{number} files" for number in range(100)], every=0.1)
    replace(following(world), report=lambda _line: reported_at.append(world.clock.now())).end()
    assert 5 <= len(reported_at) <= 11


def test_a_flood_is_cut_and_the_rest_pointed_to(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(0, "\n".join(f"file {number}" for number in range(100)))
    started(world)
    following(world).end()
    assert world.reported[59:] == ["jail: file 59", f"jail: and 40 more lines: kubectl logs -n {NAMESPACE} job/{NAME}"]


def test_what_takes_long_in_silence_is_reported_again_now_and_then(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(0, seconds=100)
    pod = started(world)
    pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
    following(world).end()
    assert world.reported == [f"jail: its pod starts; {left} s left" for left in (1800, 1770, 1739, 1709)]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: no claim."}
                ]
            },
            "its pod waits for a machine: 0/1 nodes are available: no claim.",
        ),
        (
            {
                "containerStatuses": [
                    {"name": "populate", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
                ]
            },
            "its pod populate: ErrImagePull: no such image",
        ),
    ],
    ids=["pending", "image"],
)
def test_a_pod_that_cannot_start_is_given_up_with_the_reason(world: JailWorld, status: Json, words: str) -> None:
    started(world)["status"] = {"phase": "Pending", **status}
    world.clock.later.clear()
    with pytest.raises(NotReadyError, match="makes no progress") as raised:
        following(world).end()
    assert words in str(raised.value)
    assert world.reported[0] == f"jail: {words}; 600 s left"
    assert 600 <= world.clock.time < 610


def test_a_pod_that_may_not_be_made_is_reported(world: JailWorld) -> None:
    pod = started(world)
    del world.objects[f"{PODS}/{pod['metadata']['name']}"]
    uid = world.objects[f"{JOBS}/{NAME}"]["metadata"]["uid"]
    about = {"metadata": {}, "type": "Warning", "involvedObject": {"uid": uid}}
    event = {**about, "reason": "FailedCreate", "message": "exceeded quota"}
    world.objects[f"/api/v1/namespaces/{NAMESPACE}/events/e"] = event
    with pytest.raises(NotReadyError, match="FailedCreate: exceeded quota"):
        following(world).end()


def test_a_program_that_hangs_is_given_up_in_the_end(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(seconds=1e6)
    started(world)
    with pytest.raises(NotReadyError, match="makes no progress: runs"):
        following(world).end()
    assert 1800 <= world.clock.time < 1810
    assert all(line.endswith("s left to report anything new") for line in world.reported[1:])


def test_a_program_that_makes_progress_is_never_cut_off(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(0, seconds=850)
    prints(world, started(world), *[f"{number} files" for number in range(11)], every=80)
    assert replace(following(world), stuck_seconds=20, silent_seconds=90).end().failure == ""


def test_a_pod_that_starts_for_ever_is_given_up_whatever_reasons_it_has_for_that(world: JailWorld) -> None:
    pod = started(world)
    world.clock.later.clear()
    for number in range(40):
        waiting = {"waiting": {"reason": "ContainerCreating" if number % 2 else "ErrImagePull"}}

        def wait(state: Json = waiting) -> None:
            pod["status"]["containerStatuses"][0]["state"] = state

        world.clock.after(100 * number, wait)
    with pytest.raises(NotReadyError, match="makes no progress: its pod"):
        following(world).end()
    assert 1800 <= world.clock.time < 1810


def test_a_wait_for_a_machine_ends_when_the_user_said_and_names_what_to_do(world: JailWorld) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}
    started(world)["status"] = {"phase": "Pending", "conditions": [condition]}
    world.clock.later.clear()
    with pytest.raises(NotReadyError, match=r"Insufficient cpu.*This has lasted for 90 s\. Buy one\. Fix"):
        replace(following(world), stuck_seconds=90, advice="Buy one.").end()
    assert 90 <= world.clock.time < 92


def test_a_job_whose_pods_are_killed_continues(world: JailWorld) -> None:
    runs = [Run(137), Run(137), Run(0, "whole")]
    world.programs["populate"] = lambda _arguments: runs.pop(0)
    started(world)
    assert following(world).end().log == ("whole",)
    assert "jail: its pod ended with exit code 137; 1800 s left" in world.reported


def test_what_fails_and_is_tried_again_says_why(world: JailWorld) -> None:
    runs = [Run(1, "1 of 2 files\nthe server is busy", "the server is busy"), Run(0)]
    world.programs["populate"] = lambda _arguments: runs.pop(0)
    started(world)
    following(world).end()
    assert world.reported[:3] == [
        "jail: 1 of 2 files",
        "jail: the server is busy",
        "jail: its pod ended with exit code 1; 1800 s left",
    ]


def test_a_job_whose_pod_is_deleted_continues_with_the_next_one(world: JailWorld) -> None:
    job = world.objects[f"{JOBS}/{NAME}"] if started(world) else {}
    first = the_pod(world)
    del world.objects[f"{PODS}/{first['metadata']['name']}"]
    world.clock.after(3, lambda: world.start_pod(job))
    assert following(world).end().failure == ""


def test_a_job_that_failed_says_its_programs_last_words(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(REFUSED, "a\nb", "the tarball has another checksum")
    started(world)
    assert following(world).end().failure == "the tarball has another checksum"


def test_a_program_without_last_words_is_quoted_from_its_log(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(REFUSED, "\n".join(map(str, range(9))))
    started(world)
    assert following(world).end().failure == "4\n5\n6\n7\n8"


def test_a_job_that_failed_without_a_word_says_how_it_ended(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(REFUSED)
    started(world)
    assert following(world).end().failure == "its pod ended with exit code 78; PodFailurePolicy: Job has failed"


def test_an_evicted_pod_says_so(world: JailWorld) -> None:
    world.programs["populate"] = lambda _arguments: Run(REFUSED)
    started(world)["status"] |= {"reason": "Evicted", "message": "low on ephemeral-storage"}
    assert "has ended: Evicted: low on ephemeral-storage" in following(world).end().failure


def test_a_job_whose_pods_are_gone_says_why_kubernetes_gave_it_up(world: JailWorld) -> None:
    pod = started(world)
    del world.objects[f"{PODS}/{pod['metadata']['name']}"]
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "enough"}
    world.objects[f"{JOBS}/{NAME}"]["status"] = {"conditions": [failed]}
    assert following(world).end().failure == "BackoffLimitExceeded: enough"


def test_a_job_that_is_not_there_is_reported_with_what_to_do(world: JailWorld) -> None:
    with pytest.raises(NotReadyError, match=r"was deleted\. Refresh the stack"):
        following(world).end()


def test_a_job_is_made_again_from_its_own_manifest_without_what_kubernetes_has_put_in(world: JailWorld) -> None:
    started(world)
    before = following(world).look()
    following(world).recreate(before)
    (job,) = world.jobs_of("populate")
    assert job["metadata"]["uid"] != before.uid
    assert "resourceVersion" not in before.manifest()["metadata"]
    assert "metadata" not in before.manifest()["spec"]["template"], "an empty map would be ours"
    assert BatchJob.of(job).manifest() == before.manifest()


@pytest.mark.parametrize("operation", ["Update", "Apply"])
def test_a_job_made_again_stays_its_makers(world: JailWorld, operation: str) -> None:
    """Update is that of a creation. Kubernetes takes one name with two operations for two managers."""
    started(world)
    path = f"{JOBS}/{NAME}"
    world.objects[path]["metadata"]["managedFields"][-1]["operation"] = operation
    following(world).recreate(following(world).look())
    assert world.objects[path]["metadata"]["managedFields"][-1] == {"manager": MAKER, "operation": operation}


def test_a_job_that_does_not_go_is_not_waited_for_for_ever(world: JailWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    started(world)
    monkeypatch.setattr(world, "delete", lambda _path, **_options: None)
    with pytest.raises(NotReadyError, match="is still being deleted after 600 s"):
        following(world).recreate(following(world).look())
