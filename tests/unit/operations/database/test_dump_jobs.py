"""Jobs on dumps, made of the CronJob of a cluster."""

from typing import Any

import pytest

from soperator_pulumi.errors import DatabaseError
from soperator_pulumi.kube.verbs import FIELD_MANAGER, Json, cron_jobs_path
from soperator_pulumi.operations.database.dump_jobs import WORK_LABEL, Dump, Dumps
from tests.fakes.objects import JOBS, NAMESPACE, PODS, SELECTOR
from tests.fakes.pods import a_pod, status_of
from tests.fakes.small_world import SmallWorld

CRON_JOB: Json = {
    "metadata": {"name": "accounting-dump", "labels": {**SELECTOR, "team": "hpc"}},
    "spec": {
        "jobTemplate": {
            "metadata": {"labels": {"team": "hpc"}},
            "spec": {
                "backoffLimit": 2,
                "template": {
                    "metadata": {"labels": {"app.kubernetes.io/component": "accounting-dump"}},
                    "spec": {
                        "initContainers": [{"name": "prepare"}],
                        "containers": [{"name": "dump", "image": "database", "command": ["dump-database"]}],
                    },
                },
            },
        }
    },
}


class DumpWorld(SmallWorld):
    """A cluster with dumps, whose Jobs end at once."""

    def __init__(self) -> None:
        super().__init__()
        self.objects[f"{cron_jobs_path(NAMESPACE)}/accounting-dump"] = CRON_JOB
        self.output, self.fails = "", False

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Json:
        made = super().create(path, body, dry_run=dry_run, manager=manager)
        name = made["metadata"]["name"]
        kind = "Failed" if self.fails else "Complete"
        conditions = [{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]
        self.objects[f"{JOBS}/{name}"]["metadata"]["uid"] = f"uid-{name}"
        self.objects[f"{JOBS}/{name}"]["status"] = {"conditions": conditions}
        pod = a_pod(f"{name}-x", "accounting-dump", "dump", uid="pod")
        pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = f"uid-{name}"
        self.objects[f"{PODS}/{name}-x"] = pod
        self.logs[f"{name}-x"] = self.output
        return made


@pytest.fixture
def world() -> DumpWorld:
    return DumpWorld()


def dumps(world: SmallWorld) -> Dumps:
    return Dumps(world, NAMESPACE, world.reported.append, world.clock)


def jobs(world: SmallWorld) -> list[Json]:
    return list(world.collection(JOBS).values())


def test_dumps_are_listed_with_their_sizes_and_nothing_else(world: DumpWorld) -> None:
    world.output = "hpc-1.sql.gz 10\nhpc-2.sql.gz 20\na warning\n"
    assert dumps(world).listed() == [Dump("hpc-1.sql.gz", 10), Dump("hpc-2.sql.gz", 20)]
    assert world.reported == []


def test_a_dump_on_demand_is_a_job_of_the_cron_job_and_one_attempt(world: DumpWorld) -> None:
    world.output = "dumped to hpc-3.sql.gz, 30 bytes"
    dumps(world).make()
    (job,) = jobs(world)
    spec: dict[str, Any] = job["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["template"] == CRON_JOB["spec"]["jobTemplate"]["spec"]["template"]
    assert job["metadata"]["labels"] == {"team": "hpc", WORK_LABEL: "true"}
    assert world.reported == ["dumps: dumped to hpc-3.sql.gz, 30 bytes"]


def test_a_dump_is_loaded_by_the_image_of_the_cron_job(world: DumpWorld) -> None:
    dumps(world).load("hpc-1.sql.gz", "other")
    (job,) = jobs(world)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "database"
    assert container["command"][-3:] == ["load-dump", "hpc-1.sql.gz", "other"]


def test_the_words_of_a_job_that_fails_are_the_error(world: DumpWorld) -> None:
    world.output, world.fails = "hpc-1.sql.gz is incomplete: the dump ended before its last line.", True
    with pytest.raises(DatabaseError, match=r"load: hpc-1\.sql\.gz is incomplete"):
        dumps(world).load("hpc-1.sql.gz", "other")


def test_the_job_that_a_killed_run_has_left_is_removed_first(world: DumpWorld) -> None:
    dumps(world).make()
    dumps(world).make()
    assert len(jobs(world)) == 1


def running_job(world: DumpWorld) -> str:
    """Have another run's Job at work on the dumps, and return its path."""
    dumps(world).make()
    (name,) = world.collection(JOBS)
    world.objects[f"{JOBS}/{name}"]["status"] = {}
    world.objects[f"{PODS}/{name}-x"]["status"] = status_of("dump", "running", ready=True)
    world.reported.clear()
    return f"{JOBS}/{name}"


def test_a_dump_waits_for_the_work_of_another_run(world: DumpWorld) -> None:
    former = running_job(world)
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    world.clock.after(60, lambda: world.objects[former].update(status=complete))

    began = world.clock.now()
    dumps(world).make()

    assert world.clock.now() - began >= 60
    assert world.reported[0] == f"waits for the Job {former.rpartition('/')[2]} of another run"
    assert former not in world.objects


def test_the_work_of_another_run_that_makes_no_progress_stays_and_is_named(world: DumpWorld) -> None:
    former = running_job(world)
    name = former.rpartition("/")[2]

    with pytest.raises(DatabaseError, match=rf"(?s){name} makes no progress.*kubectl delete job {name} -n hpc"):
        dumps(world).make()

    assert former in world.objects


def test_a_list_leaves_the_work_of_another_run_alone(world: DumpWorld) -> None:
    former = running_job(world)
    world.output = "hpc-1.sql.gz 10"

    assert dumps(world).listed() == [Dump("hpc-1.sql.gz", 10)]

    assert former in world.objects
    assert len([job for job in jobs(world) if WORK_LABEL in job["metadata"]["labels"]]) == 1


def test_a_cluster_without_dumps_says_what_it_lacks() -> None:
    with pytest.raises(DatabaseError, match=r"no CronJob accounting-dump\. Give the cluster `accounting\.dump`"):
        dumps(SmallWorld()).listed()
