"""Dumps of the accounting database: the CronJob that writes them, and their claim."""

import pulumi
from pulumi_kubernetes.batch.v1 import CronJob, CronJobSpecArgs, JobSpecArgs, JobTemplateSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, EnvVarArgs, PodTemplateSpecArgs
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import INIT, hardened, prepare, requirements
from soperator_pulumi.cluster.mounts import SecretFile
from soperator_pulumi.cluster.pod_template import pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.cluster.storage import Claim, create_claim
from soperator_pulumi.render import layout
from soperator_pulumi.spec.accounting import DumpSpec
from soperator_pulumi.spec.cluster import ClusterSpec

_ATTEMPTS = 2
"""Attempts after the first: a rotated password is accepted moments after the Secret has it."""

_DEADLINE_SECONDS = 3600
"""Time after the scheduled start within which a dump may still start."""

_PREPARE = f"""\
if [ "$(stat -c %u {layout.DUMPS_DIR})" != {layout.MYSQL_UID} ]; then
    chmod 0700 {layout.DUMPS_DIR}
    chown {layout.MYSQL_UID}:{layout.MYSQL_UID} {layout.DUMPS_DIR}
fi
"""


class AccountingDumps(pulumi.ComponentResource):
    """Dumps of the cluster's own MariaDB. `soperator dumps` lists, makes and restores them."""

    claim: Claim
    """The claim with the dumps (ReadWriteOnce)."""

    cron_job: CronJob
    """The CronJob `accounting-dump`."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        spec: ClusterSpec,
        dump: DumpSpec,
        password: SecretFile,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:AccountingDumps", name, {}, opts)
        own = scope.within(self)
        self.claim = create_claim(
            f"{name}-claim", own, dump.storage, layout.DUMPS_CLAIM, "ReadWriteOnce", keep=spec.storage.keep
        )
        labels = own.object_labels(layout.DUMP_COMPONENT)
        self.cron_job = CronJob(
            name,
            metadata=own.metadata(layout.DUMP_COMPONENT, layout.DUMP_COMPONENT),
            spec=CronJobSpecArgs(
                schedule=dump.schedule,
                time_zone="Etc/UTC",
                concurrency_policy="Forbid",
                starting_deadline_seconds=_DEADLINE_SECONDS,
                successful_jobs_history_limit=1,
                failed_jobs_history_limit=3,
                job_template=JobTemplateSpecArgs(
                    metadata=ObjectMetaArgs(labels=labels),
                    spec=JobSpecArgs(
                        backoff_limit=_ATTEMPTS, template=_template(own, spec, dump, password, self.claim)
                    ),
                ),
            ),
            opts=own.options(depends_on=self.claim.created),
        )
        self.register_outputs({})


def _template(
    scope: Scope, spec: ClusterSpec, dump: DumpSpec, password: SecretFile, claim: Claim
) -> PodTemplateSpecArgs:
    dumps = mounts.claim("dumps", claim.name, layout.DUMPS_DIR, "dumps")
    own = [
        dumps,
        mounts.memory("client", "/run/client", "1Mi"),
        mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi"),
        # 0444, as no other container mounts it.
        mounts.secret_file("database-password", password, "/etc/database-password", "password", 0o444),
    ]
    image = spec.images.database or ""
    values = {
        "CLUSTER": spec.name,
        "DATABASE_HOST": layout.DATABASE_HOST,
        "DATABASE_NAME": layout.DATABASE_NAME,
        "DATABASE_USER": layout.DATABASE_USER,
        "KEEP": str(dump.keep),
    }
    container = ContainerArgs(
        name=layout.DUMP_CONTAINER,
        image=image,
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, "dump-database"],
        env=[EnvVarArgs(name=name, value=value) for name, value in values.items()],
        security_context=hardened(uid=layout.MYSQL_UID),
        resources=requirements(dump.pod_resources),
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[place.in_container() for place in own],
    )
    return PodTemplateSpecArgs(
        metadata=pod_metadata(scope, layout.DUMP_COMPONENT),
        spec=pod_spec(
            spec,
            dump,
            containers=[container],
            init_containers=[prepare(spec, image, _PREPARE, [dumps], capabilities=["CHOWN", "FOWNER"])],
            mounts=own,
            restart_policy="Never",  # the log of each attempt stays
        ),
    )
