"""Long checks: one CronJob per check, whose pod submits jobs to Slurm and drains failed nodes."""

from collections.abc import Mapping
from dataclasses import replace

import pulumi
from pulumi_kubernetes.batch.v1 import CronJob, CronJobSpecArgs, JobSpecArgs, JobTemplateSpecArgs
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ContainerArgs,
    PodDNSConfigArgs,
    PodTemplateSpecArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import INIT, USERS_CONFIG_MAP, hardened, munge_socket, munged, requirements
from soperator_pulumi.cluster.mounts import Mount, with_submounts
from soperator_pulumi.cluster.pod_template import NODES_SERVICE, ROOTS_PORTS, Parts, pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.render import layout
from soperator_pulumi.render.long_checks import enabled_checks, long_check_files, time_limit_seconds
from soperator_pulumi.spec.long_checks import LongCheck, LongCheckSpec
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

HEALTH_CHECKS = "health-checks"
"""Component label of the pods, and name of the ConfigMap."""

_RESOURCES = PodResources(requests=ResourceAmounts(cpu="20m", memory="32Mi"), limits=ResourceAmounts(memory="256Mi"))

_STARTING_SECONDS = 600
"""Time after the scheduled start within which a run may still start."""

_ROUNDS = 12
"""Most jobs that a run has in a row: a test of drained nodes, the groups, and a bisection."""

_MARGIN_SECONDS = 180.0
"""Time beyond the time limit within which slurmctld has ended a job and its output is visible."""


class HealthChecks(pulumi.ComponentResource):
    """CronJobs of the long checks. `kubectl create job --from=cronjob/health-<check> <name>` starts a run."""

    config_map: ConfigMap
    """Settings of the checks."""

    cron_jobs: Mapping[str, CronJob]
    """The CronJobs `health-<check>`, by the checks' names."""

    def __init__(self, name: str, *, scope: Scope, parts: Parts, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("soperator-pulumi:index:HealthChecks", name, {}, opts)
        own = scope.within(self)
        self.config_map = ConfigMap(
            f"{name}-config",
            metadata=own.metadata(HEALTH_CHECKS, HEALTH_CHECKS),
            data=long_check_files(parts.spec),
            opts=own.options(),
        )
        self.cron_jobs = {
            check.value: _cron_job(name, own.behind(self.config_map), parts, check, given)
            for check, given in enabled_checks(parts.spec).items()
        }
        self.register_outputs({})


def create_health_checks(name: str, scope: Scope, parts: Parts) -> HealthChecks | None:
    """Create the CronJobs of the long checks, if the spec has any."""
    if not parts.spec.health.long_checks:
        return None
    return HealthChecks(f"{name}-health-checks", scope=scope, parts=parts, opts=scope.options())


def cron_job_name(check: LongCheck) -> str:
    """Return the name of a check's CronJob."""
    return f"health-{check.value.replace('_', '-')}"


def _cron_job(name: str, scope: Scope, parts: Parts, check: LongCheck, given: LongCheckSpec) -> CronJob:
    longest = time_limit_seconds(check, given) + given.start_within.total_seconds() + _MARGIN_SECONDS
    return CronJob(
        f"{name}-{check.value}",
        metadata=scope.metadata(cron_job_name(check), HEALTH_CHECKS),
        spec=CronJobSpecArgs(
            schedule=given.schedule,
            time_zone="Etc/UTC",
            concurrency_policy="Forbid",
            starting_deadline_seconds=_STARTING_SECONDS,
            successful_jobs_history_limit=1,
            failed_jobs_history_limit=3,
            job_template=JobTemplateSpecArgs(
                metadata=ObjectMetaArgs(labels=scope.object_labels(HEALTH_CHECKS)),
                spec=JobSpecArgs(
                    backoff_limit=0,  # the next run is the next attempt
                    active_deadline_seconds=int(_ROUNDS * longest),
                    template=_template(scope, parts, check),
                ),
            ),
        ),
        opts=scope.options(),
    )


def _template(scope: Scope, parts: Parts, check: LongCheck) -> PodTemplateSpecArgs:
    spec = parts.spec
    sidecar, sidecar_mounts = munged(spec, parts.keys.munge, guaranteed=False)
    places = [
        munge_socket(),
        mounts.config_files(USERS_CONFIG_MAP, layout.USER_FILES),
        mounts.config_files(HEALTH_CHECKS, layout.LONG_CHECK_SETTINGS),
        *_homes(parts),  # with the reports
        mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi"),
    ]
    container = ContainerArgs(
        name="long-check",
        # slurmd's image has the clients of Slurm and the checks already.
        image=spec.images.worker,
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, layout.LONG_CHECK, check.value],
        # root, which drains nodes and submits jobs of another user, with a right on files only.
        security_context=hardened(capabilities=["CHOWN"]),
        resources=requirements(_RESOURCES),
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[place.in_container() for place in places],
    )
    return PodTemplateSpecArgs(
        metadata=pod_metadata(scope, HEALTH_CHECKS),
        spec=pod_spec(
            spec,
            spec.controller,
            containers=[container],
            init_containers=[sidecar],
            mounts=[*places, *sidecar_mounts],
            dns_config=PodDNSConfigArgs(searches=[f"{NODES_SERVICE}.{scope.namespace}.svc.{spec.cluster_domain}"]),
            restart_policy="Never",  # the log of a run stays
            sysctls=[ROOTS_PORTS],
        ),
    )


def long_check_reports(parts: Parts) -> list[Mount]:
    """Return the mount of the reports only; none without long checks."""
    if not enabled_checks(parts.spec):
        return []
    folder = f"{layout.HEALTH_USER}/reports"
    return [
        replace(
            homes,
            path=layout.LONG_CHECK_REPORTS,
            sub_path=f"{homes.sub_path or ''}/{folder}".lstrip("/"),
            read_only=True,
        )
        for homes in _homes(parts)
    ]


def _homes(parts: Parts) -> list[Mount]:
    """Return the mount of the homes, which may have their own volume."""
    homes = [mounts.claim("jail", parts.jail.name, layout.HOMES_DIR, layout.HOMES_IN_JAIL)]
    return [
        submount
        for submount in with_submounts(homes, parts.spec, SubmountRole.WORKER)
        if submount.path == layout.HOMES_DIR
    ]
