"""Jobs that work on dumps of the accounting database, created from the CronJob that writes the dumps."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.errors import DatabaseError, NotReadyError
from soperator_pulumi.kube.verbs import Json, Kube, cron_jobs_path
from soperator_pulumi.operations.batch_jobs import BatchJob, JobFollower, job_path
from soperator_pulumi.operations.progress import Clock, Report
from soperator_pulumi.render import layout

WORK_LABEL = "soperator-pulumi/dump-work"
"""Label of Jobs that write or load dumps: only one works at a time."""

_KEPT_SECONDS = 3600

LIST = ["/bin/sh", "-c", f"cd {layout.DUMPS_DIR} && find . -name '*.sql.gz' -printf '%f %s\\n' | sort"]


@dataclass(frozen=True)
class Dump:
    """A dump on the volume."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class Dumps:
    """Dumps of one cluster."""

    kube: Kube
    namespace: str
    report: Report
    clock: Clock

    def cron_job(self) -> Json:
        """Return the CronJob of dumps.

        Raises:
            DatabaseError: the CronJob does not exist.
        """
        found = self.kube.get(f"{cron_jobs_path(self.namespace)}/{layout.DUMP_COMPONENT}")
        if found is None:
            raise DatabaseError(
                f"{self.namespace}: there is no CronJob {layout.DUMP_COMPONENT}. Give the cluster `accounting.dump`, "
                "deploy it, and run again."
            )
        return found

    def selector(self) -> dict[str, str]:
        """Return the labels of all pods of the dumped cluster."""
        labels = self.cron_job()["metadata"]["labels"]
        return {key: labels[key] for key in ("app.kubernetes.io/part-of", "app.kubernetes.io/instance")}

    def listed(self) -> list[Dump]:
        """Return the existing dumps, starting with the oldest.

        Raises:
            DatabaseError: the volume cannot be read.
        """
        lines = self.work("list", LIST)
        pairs = [line.split() for line in lines]
        return [Dump(pair[0], int(pair[1])) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()]

    def make(self) -> None:
        """Write a dump now, in addition to the schedule.

        Raises:
            DatabaseError: the dump failed; with its message.
        """
        self.work("make", None)

    def load(self, dump: str, database: str) -> None:
        """Load a dump into an existing, separate database.

        Raises:
            DatabaseError: the dump is missing, damaged, incomplete or from another cluster.
        """
        self.work("load", ["/usr/bin/tini", "-g", "--", "load-dump", dump, database])

    def work(self, what: str, command: Sequence[str] | None) -> tuple[str, ...]:
        """Run a Job with the given command, or that of the CronJob, and return its output.

        Raises:
            DatabaseError: the Job failed; with its own message.
            NotReadyError: the Job cannot start.
        """
        if command != LIST:
            self._await_former()
        job = self._manifest(f"{layout.DUMP_COMPONENT}-{what}-{secrets.token_hex(4)}", command)
        name = job["metadata"]["name"]
        self.kube.create(job_path(self.namespace), job)
        # A list is not progress, as its caller prints it.
        report = (lambda _text: None) if what == "list" else self.report
        following = JobFollower(self.kube, self.namespace, name, layout.DUMP_CONTAINER, "dumps", report, self.clock)
        outcome = following.end()
        if outcome.failure:
            raise DatabaseError(f"{what}: {outcome.failure}")
        return outcome.log

    def _await_former(self) -> None:
        """Wait for the Job of another run, which may have been killed: only one Job works on the dumps at a time.

        Raises:
            DatabaseError: that Job makes no progress, or was deleted meanwhile.
        """
        for body in self.kube.find(job_path(self.namespace), {WORK_LABEL: "true"}):
            job = BatchJob.of(body)
            former = JobFollower(
                self.kube, self.namespace, job.name, layout.DUMP_CONTAINER, "dumps", self.report, self.clock
            )
            if not job.ended:
                self.report(f"waits for the Job {job.name} of another run")
                try:
                    former.end()
                except NotReadyError as error:
                    giving_up = f"To give up its work: kubectl delete job {job.name} -n {self.namespace}"
                    raise DatabaseError(f"{error}\n{giving_up}") from None
            former.remove(job)

    def _manifest(self, name: str, command: Sequence[str] | None) -> Json:
        template: Json = self.cron_job()["spec"]["jobTemplate"]
        spec: Json = template["spec"]
        pod: Json = spec["template"]
        (container,) = pod["spec"]["containers"]
        chosen: dict[str, Any] = {**container, "command": [*command]} if command else container
        works = {} if command == LIST else {WORK_LABEL: "true"}
        labels = {**(template.get("metadata", {}).get("labels") or {}), **works}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {
                **spec,
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": _KEPT_SECONDS,
                "template": {**pod, "spec": {**pod["spec"], "containers": [chosen]}},
            },
        }
