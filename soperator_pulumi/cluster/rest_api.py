"""The REST API: slurmrestd behind a proxy that handles limits and TLS.

slurmrestd listens on a socket in memory that only the proxy of its pod sees. It runs as a separate user, has neither
the key that signs tokens nor munge, and passes every client's token on to slurmctld and slurmdbd, which check it.
"""

import hashlib

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ContainerArgs,
    ContainerPortArgs,
    EnvVarArgs,
    HTTPGetActionArgs,
    PodDNSConfigArgs,
    PodTemplateSpecArgs,
    ProbeArgs,
    Service,
    ServicePortArgs,
    ServiceSpecArgs,
)
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import INIT, hardened, merged_users, requirements, users_sidecar
from soperator_pulumi.cluster.daemon import create_daemon, create_disruption_budget
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.pod_template import NODES_SERVICE, ROOTS_PORTS, Parts, pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import SKIP_AWAIT, Scope
from soperator_pulumi.cluster.slurm_releases import version_mark, version_of_spec
from soperator_pulumi.lifecycle import PodsReady
from soperator_pulumi.render import layout
from soperator_pulumi.render.rest_conf import proxy_conf, proxy_memory_mib, rest_slurm_conf
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.login import ServiceType
from soperator_pulumi.spec.rest import RestSpec
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

REST = "rest"
"""Component, StatefulSet and Service of slurmrestd."""

_CONFIG_MAP = "rest-config"

_CONNECTED = HTTPGetActionArgs(path=layout.REST_HEALTH_PATH, port=layout.REST_HEALTH_PORT)
"""The proxy answers if it can connect to slurmrestd, which it tries every two seconds."""


class RestApi(pulumi.ComponentResource):
    """slurmrestd in `rest-<ordinal>` pods, and its Service."""

    endpoint: pulumi.Output[str]
    """Address of the API inside Kubernetes: `https://rest.<namespace>.svc:6820`, or `http://` without a certificate."""

    config_map: ConfigMap
    """The configuration of slurmrestd and of the proxy."""

    stateful_set: StatefulSet
    """The StatefulSet `rest`."""

    ready: PodsReady
    """Waits until the API answers in all pods, and reports the reason if it does not."""

    service: Service
    """The Service `rest`."""

    disruption_budget: PodDisruptionBudget
    """Allows the eviction of one pod at a time."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        rest: RestSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:RestApi", name, {}, opts)
        own = scope.within(self)
        files = {"slurm.conf": rest_slurm_conf(parts.spec), "haproxy.cfg": proxy_conf(rest)}
        self.config_map = ConfigMap(
            f"{name}-config", metadata=own.metadata(_CONFIG_MAP, REST), data=files, opts=own.options()
        )
        self.stateful_set, self.ready = create_daemon(
            name,
            own,
            parts.spec,
            REST,
            _template(own, parts, rest, files),
            replicas=rest.replicas,
            parallel=True,
            annotations=version_mark(parts.spec),
            depends_on=[self.config_map],
        )
        self.service = _service(name, own, rest)
        self.disruption_budget = create_disruption_budget(name, own, REST, max_unavailable=1)
        scheme = "http" if rest.tls is None else "https"
        self.endpoint = pulumi.Output.from_input(f"{scheme}://{REST}.{own.namespace}.svc:{layout.REST_PORT}")
        self.register_outputs({"endpoint": self.endpoint})


def serves_certificate(spec: ClusterSpec) -> bool:
    """Return True if the cluster has a REST API with a certificate."""
    return spec.rest is not None and spec.rest.tls is not None


def create_rest(name: str, scope: Scope, parts: Parts) -> RestApi | None:
    """Create slurmrestd, if the spec has `rest`."""
    if parts.spec.rest is None:
        return None
    return RestApi(f"{name}-rest", scope=scope, parts=parts, rest=parts.spec.rest, opts=scope.options())


def _template(scope: Scope, parts: Parts, rest: RestSpec, files: dict[str, str]) -> PodTemplateSpecArgs:
    spec = parts.spec
    users, users_mounts = users_sidecar(spec, parts.jail.name)
    config = mounts.config_files(_CONFIG_MAP, layout.REST_CONF_DIR)
    socket = mounts.memory("run", layout.REST_SOCKET.rpartition("/")[0], "1Mi")
    temporary = mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi")
    certificate = _certificate(rest)
    digest = hashlib.sha256("\0".join(f"{name}\0{files[name]}" for name in sorted(files)).encode()).hexdigest()
    # Neither reads its file again, and no job depends on a pod: new files are new pods, one after the other.
    metadata = pod_metadata(scope, REST, annotations={"soperator-pulumi/config": digest})
    return PodTemplateSpecArgs(
        metadata=metadata,
        spec=pod_spec(
            spec,
            rest,
            containers=[
                _slurmrestd(spec, rest, [config, socket, temporary, merged_users()]),
                _proxy(spec, rest, [config, socket, *certificate]),
            ],
            init_containers=[users],
            mounts=[config, socket, temporary, *certificate, merged_users(), *users_mounts],
            dns_config=PodDNSConfigArgs(searches=[f"{NODES_SERVICE}.{scope.namespace}.svc.{spec.cluster_domain}"]),
            sysctls=[ROOTS_PORTS],
        ),
    )


def _slurmrestd(spec: ClusterSpec, rest: RestSpec, places: list[Mount]) -> ContainerArgs:
    # Without slurmdbd, slurmrestd ends when it is to load the plugins that ask it.
    plugins = "slurmctld" if spec.accounting is None else "slurmctld,slurmdbd"
    return ContainerArgs(
        name="slurmrestd",
        image=spec.images.rest or "",
        image_pull_policy=spec.images.pull_policy,
        command=[
            *(*INIT, "start-slurmrestd", "-f", f"{layout.REST_CONF_DIR}/slurm.conf", "-t", str(layout.REST_THREADS)),
            *("-a", "rest_auth/jwt", "-s", plugins, f"unix:{layout.REST_SOCKET}"),
        ],
        env=[
            version_of_spec(spec),
            # By it, slurmrestd takes the token of each request in place of munge.
            EnvVarArgs(name="SLURM_JWT", value="daemon"),
            # A container has namespaces of its own already, and no right to make others.
            EnvVarArgs(name="SLURMRESTD_SECURITY", value="disable_unshare_sysv,disable_unshare_files"),
        ],
        security_context=hardened(uid=layout.REST_UID),
        resources=requirements(rest.pod_resources),
        # A restart without need, as the proxy is down, ends no request: all come by the proxy.
        liveness_probe=ProbeArgs(http_get=_CONNECTED, period_seconds=30, timeout_seconds=10, failure_threshold=3),
        volume_mounts=[place.in_container() for place in places],
    )


def _proxy(spec: ClusterSpec, rest: RestSpec, places: list[Mount]) -> ContainerArgs:
    memory = f"{proxy_memory_mib(rest.limits)}Mi"
    resources = PodResources(requests=ResourceAmounts(cpu="50m", memory="32Mi"), limits=ResourceAmounts(memory=memory))
    return ContainerArgs(
        name="proxy",
        image=spec.images.rest or "",
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, "haproxy", "-W", "-db", "-f", f"{layout.REST_CONF_DIR}/haproxy.cfg"],
        ports=[ContainerPortArgs(name="rest", container_port=layout.REST_PORT)],
        security_context=hardened(uid=layout.REST_UID),
        resources=requirements(resources),
        startup_probe=ProbeArgs(http_get=_CONNECTED, period_seconds=1, timeout_seconds=5, failure_threshold=120),
        readiness_probe=ProbeArgs(http_get=_CONNECTED, period_seconds=5, timeout_seconds=5, failure_threshold=3),
        volume_mounts=[place.in_container() for place in places],
    )


def _certificate(rest: RestSpec) -> list[Mount]:
    """Return the mounts of the certificate, and of its key next to it as `tls.crt.key`, as haproxy expects."""
    if rest.tls is None:
        return []
    # 0444, as the proxy's container alone mounts it.
    return [
        mounts.secret_files_as(
            "tls", rest.tls.secret, {"tls.crt": "tls.crt", "tls.key": "tls.crt.key"}, layout.REST_TLS_DIR, 0o444
        )
    ]


def _service(name: str, scope: Scope, rest: RestSpec) -> Service:
    opened = rest.service is not ServiceType.CLUSTER_IP
    awaited = rest.service is ServiceType.LOAD_BALANCER
    annotations = {**rest.service_annotations, **({} if awaited else SKIP_AWAIT)}
    return Service(
        f"{name}-service",
        metadata=scope.metadata(REST, REST, annotations=annotations),
        spec=ServiceSpecArgs(
            type=rest.service,
            selector=scope.selector(REST),
            ports=[ServicePortArgs(name="rest", port=layout.REST_PORT, target_port=layout.REST_PORT)],
            # Otherwise the proxy's limits and the NetworkPolicy see a machine in place of the client.
            external_traffic_policy="Local" if opened else None,
            load_balancer_source_ranges=[*rest.allowed_sources] if awaited else None,
        ),
        opts=scope.options(),
    )
