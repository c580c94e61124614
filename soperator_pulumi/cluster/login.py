"""Login nodes: sshd behind one Service, or one for every pool, with the same host key on all nodes.

Sessions live in the jail. `jail-login` makes their view of the active tree, and gives up its rights to mount before it
starts sshd: neither sshd nor a session can ever mount.
"""

import posixpath

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import (
    AffinityArgs,
    ContainerArgs,
    ContainerPortArgs,
    ExecActionArgs,
    LifecycleArgs,
    LifecycleHandlerArgs,
    PodAffinityTermArgs,
    PodAntiAffinityArgs,
    Service,
    ServicePortArgs,
    ServiceSpecArgs,
    WeightedPodAffinityTermArgs,
)
from pulumi_kubernetes.core.v1.outputs import ServiceSpec, ServiceStatus
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import (
    INIT,
    LAST_WORDS,
    connects,
    give_modes,
    hardened,
    merged_users,
    mounting_profile,
    munge_socket,
    prepare,
    requirements,
    users_sidecar,
)
from soperator_pulumi.cluster.daemon import create_daemon, create_disruption_budget
from soperator_pulumi.cluster.identity import account_name, create_service_account
from soperator_pulumi.cluster.mounts import Mount, login_memory_mib, temporary_directories, with_submounts
from soperator_pulumi.cluster.pod_template import Parts, Role, pod_template
from soperator_pulumi.cluster.scope import SKIP_AWAIT, Scope
from soperator_pulumi.cluster.slurm_releases import version_mark
from soperator_pulumi.lifecycle import PodsReady
from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import login_arguments
from soperator_pulumi.spec.login import SHORTEST_STOP_SECONDS, LoginPods, ServiceType, object_name
from soperator_pulumi.spec.submount import SubmountRole

CAPABILITIES = ("SYS_CHROOT", "SETUID", "SETGID", "CHOWN", "AUDIT_WRITE")
"""Capabilities of sshd, found by bisection: for its unprivileged part and the jail (SYS_CHROOT), the user, terminals.
"""

JAIL_CAPABILITIES = ("SYS_ADMIN", "SETPCAP")
"""Capabilities of `jail-login` to make views of trees. It gives them up for good before it starts sshd."""

SSHD_FILES = "/etc/ssh-config"

_PUBLIC_PORT = 22


class LoginNodes(pulumi.ComponentResource):
    """sshd in `login-<ordinal>` pods, or `login-<pool>-<ordinal>`, from which users submit jobs."""

    endpoint: pulumi.Output[str]
    """`host:port` for ssh: the load balancer's address, `:port` of every machine (NodePort), or the Service's address
    inside Kubernetes."""

    host_public_key: pulumi.Output[str]
    """`ssh-ed25519 AAAA...`: the key of all login nodes, for known_hosts."""

    host_key_fingerprint: pulumi.Output[str]
    """`SHA256:...`, as ssh shows it at the first login."""

    stateful_set: StatefulSet
    """The StatefulSet `login`, or `login-<pool>`."""

    ready: PodsReady
    """Waits until sshd answers in all pods, and reports the reason if it does not."""

    service: Service
    """The Service of the same name."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        pool: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:LoginNodes", name, {}, opts)
        own, keys, component = scope.within(self), parts.keys, object_name(pool)
        login = parts.spec.login.by_name[component]
        accounts = create_service_account(name, own, component, login)
        self.stateful_set, self.ready = create_daemon(
            name,
            own,
            parts.spec,
            component,
            pod_template(own, parts, _role(own, parts, component)),
            replicas=login.replicas,
            parallel=True,
            annotations=version_mark(parts.spec),
            depends_on=accounts,
        )
        if login.replicas > 1:
            # Drains of several machines leave some login nodes to log in to.
            create_disruption_budget(name, own, component, max_unavailable=1)
        self.service = _service(name, own, component, login)
        endpoints = (self.service.status.apply(_balancer_endpoint), self.service.spec.apply(_own_endpoint))
        self.endpoint = pulumi.Output.all(*endpoints).apply(lambda found: next(filter(None, found)))
        self.host_public_key = keys.ssh_host_public_key
        self.host_key_fingerprint = keys.ssh_host_fingerprint
        self.register_outputs(
            {
                "endpoint": self.endpoint,
                "hostPublicKey": self.host_public_key,
                "hostKeyFingerprint": self.host_key_fingerprint,
            }
        )


def _role(scope: Scope, parts: Parts, component: str) -> Role:
    spec, login = parts.spec, parts.spec.login.by_name[component]
    views = mounts.memory("jail-views", layout.JAIL_VIEWS, "1Mi")
    places = [*with_submounts(_mounts(parts, login), spec, SubmountRole.LOGIN, component), views]
    open_directories = [place for place in places if place.needs_mode]
    users, users_mounts = users_sidecar(spec, parts.jail.name)
    daemon = ContainerArgs(
        name="sshd",
        image=spec.images.login,
        image_pull_policy=spec.images.pull_policy,
        command=[
            # sshd and all sessions inherit the limit, which counts no processes of root.
            *(*INIT, "/usr/bin/prlimit", f"--nproc={login.max_processes}", "--"),
            *(layout.JAIL_LOGIN, *login_arguments(spec, component)),
            *("--", "/usr/sbin/sshd", "-D", "-e", "-f", f"{SSHD_FILES}/sshd_config"),
            # An argument, as all pools share the file. sshd keeps its arguments when it reads the file again.
            *(["-o", f"AllowGroups={' '.join(login.groups)}"] if login.groups else []),
        ],
        lifecycle=LifecycleArgs(
            pre_stop=LifecycleHandlerArgs(
                exec_=ExecActionArgs(command=["/usr/bin/python3", "-I", layout.LOGIN_FAREWELL, str(login.stop_seconds)])
            )
        ),
        ports=[ContainerPortArgs(name="ssh", container_port=layout.SSH_PORT)],
        security_context=hardened(capabilities=[*CAPABILITIES, *JAIL_CAPABILITIES], app_armor=mounting_profile(spec)),
        resources=requirements(login.pod_resources),
        startup_probe=connects(layout.SSH_PORT, period=1, failures=120),
        readiness_probe=connects(layout.SSH_PORT, period=10, failures=3),
        # A restart of the container ends all sessions. A sshd that hangs is not waited for.
        liveness_probe=connects(layout.SSH_PORT, period=30, failures=6, grace_seconds=SHORTEST_STOP_SECONDS),
        termination_message_path=LAST_WORDS,
        volume_mounts=[place.in_container() for place in places],
    )
    return Role(
        component=component,
        daemon=daemon,
        mounts=[*places, *users_mounts],
        scheduling=login,
        prepare=prepare(
            # sshd refuses a root directory that others could change, or one in such a directory.
            spec,
            spec.images.login,
            give_modes(open_directories, [views]),
            [*open_directories, views],
        ),
        sidecars=[users],
        grace_seconds=login.stop_seconds,
        affinity=_apart(scope, component),
        service_account=account_name(login, component),
    )


def _mounts(parts: Parts, login: LoginPods) -> list[Mount]:
    return [
        munge_socket(),
        merged_users(),
        mounts.config_files("ssh-keys", layout.SSH_KEYS_DIR),
        mounts.config_files("sshd-config", SSHD_FILES),
        mounts.secret_file("ssh-host-key", parts.keys.ssh_host, *posixpath.split(layout.SSH_HOST_KEY), 0o400),
        mounts.claim("jail", parts.jail.name, layout.JAIL_DIR),
        mounts.claim("jail", parts.jail.name, layout.HOMES_DIR, layout.HOMES_IN_JAIL),
        *temporary_directories(login_memory_mib(login.pod_resources), shared_memory=False),
    ]


def _apart(scope: Scope, component: str) -> AffinityArgs:
    """Prefer a separate machine for every login pod, so that the loss of one machine leaves others to log in to."""
    term = PodAffinityTermArgs(
        label_selector=LabelSelectorArgs(match_labels=scope.selector(component)),
        topology_key="kubernetes.io/hostname",
    )
    weighted = WeightedPodAffinityTermArgs(weight=100, pod_affinity_term=term)
    return AffinityArgs(
        pod_anti_affinity=PodAntiAffinityArgs(preferred_during_scheduling_ignored_during_execution=[weighted])
    )


def _service(name: str, scope: Scope, component: str, login: LoginPods) -> Service:
    opened = login.service is not ServiceType.CLUSTER_IP
    # Awaited for the address of its load balancer alone, which never comes without pods.
    awaited = login.service is ServiceType.LOAD_BALANCER and login.replicas > 0
    return Service(
        f"{name}-service",
        metadata=scope.metadata(
            component, component, annotations={**login.service_annotations, **({} if awaited else SKIP_AWAIT)}
        ),
        spec=ServiceSpecArgs(
            type=login.service,
            selector=scope.selector(component),
            ports=[
                ServicePortArgs(name="ssh", port=_PUBLIC_PORT, target_port=layout.SSH_PORT, node_port=login.node_port)
            ],
            load_balancer_class=login.load_balancer_class,
            session_affinity="ClientIP",  # a user returns to the same tmux
            # Otherwise sshd and the NetworkPolicy see a machine of the cluster in place of the client.
            external_traffic_policy="Local" if opened else None,
            load_balancer_source_ranges=[*login.allowed_sources]
            if login.service is ServiceType.LOAD_BALANCER
            else None,
        ),
        opts=scope.options(),
    )


def _own_endpoint(spec: ServiceSpec) -> str:
    if spec.type == ServiceType.NODE_PORT and spec.ports:
        return f":{spec.ports[0].node_port}"
    return f"{spec.cluster_ip}:{_PUBLIC_PORT}"


def _balancer_endpoint(status: ServiceStatus | None) -> str:
    ingress = status.load_balancer.ingress if status and status.load_balancer else None
    return f"{ingress[0].hostname or ingress[0].ip}:{_PUBLIC_PORT}" if ingress else ""
