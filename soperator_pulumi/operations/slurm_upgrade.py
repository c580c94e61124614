"""Upgrade of a cluster's Slurm: the order, the dump of the database before it, and the refusal of a downgrade.

Daemons talk to daemons and clients of the three previous releases, never to later ones, and slurmctld and slurmdbd
convert their state at their first start (Slurm's upgrade guide; release notes of 26.05). So slurmdbd comes first, then
slurmctld, then slurmrestd and slurmd, and last the clients of the login nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from soperator_pulumi.errors import ConfigRefusedError, DatabaseError
from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Json, Kube, cron_jobs_path, pods_path, revisions_path, stateful_sets_path
from soperator_pulumi.operations.database.dump_jobs import Dumps
from soperator_pulumi.operations.progress import MachineClock, Report
from soperator_pulumi.render import layout
from soperator_pulumi.spec import login
from soperator_pulumi.spec.slurm_parameters import API_VERSIONS, VERSIONS

VERSION_ANNOTATION = "soperator-pulumi/slurm-version"
"""Annotation of StatefulSets with the Slurm version in their pods. Without it, the oldest version is assumed."""

DUMP_SECONDS = 3600
"""Time for a dump of the database."""

FIRST_POD_SECONDS = 120
"""Time in which the first pod after a StatefulSet's change is created: the former one has 60 s to end."""

OTHER_VERSION = 78
"""Exit code of a container whose image has a different version than the spec (`images/version/require-version`)."""

_ACCOUNTING, _CONTROLLER, _REST, _WORKER, _DATABASE = "accounting", "controller", "rest", "worker", "database"
_KEEPS_STATE = {_ACCOUNTING: "slurmdbd", _CONTROLLER: "slurmctld"}
"""StatefulSets of daemons that convert their stored state, with their containers."""

_DUMP = """\
umask 077
rm -f "$1.part"
trap 'rm -f "$1.part"' EXIT
mariadb-dump --no-defaults --user=root --single-transaction --skip-lock-tables slurm_acct_db > "$1.part"
mv "$1.part" "$1"
"""


@dataclass(frozen=True)
class SlurmUpgrade:
    """Upgrade of one cluster to a Slurm version."""

    kube: Kube
    namespace: str
    cluster: str
    selector: Mapping[str, str]
    version: str
    report: Report

    @property
    def dump_file(self) -> str:
        """File of the dump on the database's volume."""
        return f"/var/lib/mysql/before-slurm-{self.version}.sql"

    def versions(self) -> dict[str, str]:
        """Return the Slurm versions of the cluster's StatefulSets, by name."""
        return {part["metadata"]["name"]: _version(part) for part in self._parts()}

    def behind(self) -> list[str]:
        """Return the names of the StatefulSets with an older version."""
        return [name for name, version in self.versions().items() if _rank(version) < _rank(self.version)]

    def _parts(self) -> list[Json]:
        """Return the StatefulSets of the cluster in whose pods Slurm runs."""
        found = self.kube.find(stateful_sets_path(self.namespace), self.selector)
        return [part for part in found if _component(part) in {*_KEEPS_STATE, _REST, _WORKER} or _is_login(part)]

    def refuse_way_back(self) -> None:
        """Refuse a version that cannot read data stored by a later version.

        Raises:
            ConfigRefusedError: A daemon of a later version has started; with what to restore.
        """
        for name, container in _KEEPS_STATE.items():
            found = self.kube.get(f"{stateful_sets_path(self.namespace)}/{name}")
            if found is None or _rank(_version(found)) <= _rank(self.version):
                continue
            pod = self.kube.get(f"{pods_path(self.namespace)}/{name}-0")
            if pod is None or _may_have_started(self.kube, self.namespace, Pod.of(pod), found, container):
                raise ConfigRefusedError(self._no_way_back(_version(found), container))

    def refuse_new_settings(self, settings: Sequence[str]) -> None:
        """Refuse settings that the running slurmctld does not know yet.

        Raises:
            ConfigRefusedError: There are such settings, and a part of the cluster is older.
        """
        if settings and self.behind():
            raise ConfigRefusedError(
                f"{self.cluster}: Slurm {VERSIONS[0]} does not know {', '.join(settings)}, and reads slurm.conf "
                f"until all of the cluster has {self.version}. Run `up` with only slurm.version changed, then add them."
            )

    def steps(self) -> Iterator[str]:
        """Yield the remaining steps of the upgrade, for a preview."""
        parts = self._parts()
        older = [part for part in parts if _rank(_version(part)) < _rank(self.version)]
        if not older:
            return
        behind = {_component(part) for part in older}
        oldest = min(map(_version, older), key=_rank)
        how = "continues" if len(older) < len(parts) else "begins"
        yield f"{self.cluster}: the upgrade of Slurm {oldest} to {self.version} {how}. Jobs continue. In this order:"
        workers = sorted(part["metadata"]["name"] for part in older if _component(part) == _WORKER)
        if _ACCOUNTING in behind:
            if self._has_database():
                yield f"  a dump of the database to {self._dump_place()}"
            else:
                yield "  no dump: the database is external. Dump it yourself before you run `up`"
            yield "  slurmdbd, which converts its tables; records of jobs arrive after it"
        if _CONTROLLER in behind:
            yield "  slurmctld; until it answers, commands of users wait"
        if _REST in behind:
            yield f"  slurmrestd; from then on its API has only the versions {', '.join(API_VERSIONS[self.version])}"
        if workers:
            yield f"  slurmd of {', '.join(workers)}, drained a few at a time, according to rolling_update"
        if any(map(_is_login, older)):
            yield "  clients in the jail: login nodes restart, which ends their sessions"
        yield f"  Once slurmdbd or slurmctld has started, a return to {oldest} is impossible."

    def dump(self) -> None:
        """Write a dump of the cluster's own database, unless slurmdbd has the new version already.

        Raises:
            DatabaseError: The dump failed; with MariaDB's message. Nothing has been upgraded.
        """
        if _ACCOUNTING not in self.behind() or not self._has_database():
            return
        self.report(f"{self.cluster}: dumps the database to {self._dump_place()}")
        try:
            self._write_dump()
        except DatabaseError as error:
            raise DatabaseError(
                f"{self.cluster}: the dump of the database before the upgrade failed, and nothing has been upgraded.\n"
                f"{error}\nFree room on the claim, or fix the cause above, and run again."
            ) from None

    def _write_dump(self) -> None:
        """Write a dump with the CronJob of `accounting.dump`, or without it on the database's own volume."""
        if self._has_dumps():
            Dumps(self.kube, self.namespace, self.report, MachineClock()).make()
            return
        place = self.kube.transport(self.namespace, f"{_DATABASE}-0", "mariadb")
        answer = place.run(["/bin/sh", "-ec", _DUMP, "dump", self.dump_file], timeout_seconds=DUMP_SECONDS)
        if answer.returncode != 0:
            raise DatabaseError(answer.message)

    def _has_database(self) -> bool:
        return self.kube.get(f"{stateful_sets_path(self.namespace)}/{_DATABASE}") is not None

    def _has_dumps(self) -> bool:
        return self.kube.get(f"{cron_jobs_path(self.namespace)}/{layout.DUMP_COMPONENT}") is not None

    def _dump_place(self) -> str:
        return f"the claim {layout.DUMPS_CLAIM}" if self._has_dumps() else f"{self.dump_file} in {_DATABASE}-0"

    def _no_way_back(self, later: str, container: str) -> str:
        database = " and the dump of the database" if self._has_database() else ""
        return (
            f"{self.cluster}: slurm.version is {self.version}, and {container} {later} has written the cluster's "
            f"state, which {self.version} cannot read. Set slurm.version to {later}.\n"
            f"To return to {self.version}, create a new cluster and restore in it a copy of the state's "
            f"volume{database} "
            "from before the upgrade. Jobs that were submitted since then are not in them."
        )


def _component(stateful_set: Json) -> str:
    return str((stateful_set["metadata"].get("labels") or {}).get("app.kubernetes.io/component", ""))


def _is_login(stateful_set: Json) -> bool:
    return login.place(_component(stateful_set)) is not None


def _version(stateful_set: Json) -> str:
    return str((stateful_set["metadata"].get("annotations") or {}).get(VERSION_ANNOTATION, VERSIONS[0]))


def _rank(version: str) -> int:
    return VERSIONS.index(version) if version in VERSIONS else len(VERSIONS)


def _may_have_started(kube: Kube, namespace: str, pod: Pod, stateful_set: Json, container: str) -> bool:
    """Return True if the daemon of the newest template has run, in this pod or in an earlier one.

    A StatefulSet has two revisions until its pod of the newest template is ready. If the image is missing, or has
    another version, nothing was converted. A pod that was created later than the first one of its revision succeeds one
    that may have run.
    """
    status = stateful_set.get("status", {})
    revision = status.get("updateRevision")
    if status.get("currentRevision") == revision:
        return True
    if pod.revision != revision:
        return False
    made = kube.get(f"{revisions_path(namespace)}/{revision}")
    if made is None or (_created(pod.body) - _created(made)).total_seconds() > FIRST_POD_SECONDS:
        return True
    return pod.has_run(container) and pod.exit_codes(container) != {OTHER_VERSION}


def _created(body: Json) -> datetime:
    return datetime.fromisoformat(body["metadata"]["creationTimestamp"])
