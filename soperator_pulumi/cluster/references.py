"""Kubernetes objects that a spec refers to, for the check before anything is applied."""

from collections.abc import Awaitable, Iterable, Iterator, Sequence

import pulumi

from soperator_pulumi.cluster.storage import JAIL_CLAIM, STATE_CLAIM
from soperator_pulumi.render import layout
from soperator_pulumi.spec import accounting
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.platform.provided import ProvidedSpec
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.storage import VolumeSpec

Reference = dict[str, pulumi.Input[str | bool]]


def references(spec: ClusterSpec) -> list[Reference]:
    """Return the objects that must exist, with the paths of their fields in the spec.

    Objects that the platform offers are left out. It creates or has checked them, and a preview of both does not find
    them yet. A name that is an output of another resource is marked for the same reason.
    """
    offered = _offered(spec.platform)
    every = [*_secrets(spec), *_volumes(spec), *_priority_classes(spec), *_service_accounts(spec), *_custom_kinds(spec)]
    return [entry for entry in every if (entry["kind"], entry["name"]) not in offered]


def _offered(platform: ProvidedSpec) -> list[tuple[str, object]]:
    offers = {
        "StorageClass": platform.storage_class,
        "PersistentVolume": platform.static_volume,
        "PersistentVolumeClaim": platform.existing_claim,
    }
    return [(kind, name) for kind, name in offers.items() if isinstance(name, str)]


def _secrets(spec: ClusterSpec) -> Iterator[Reference]:
    munge, ssh_host = spec.secrets.munge_key, spec.secrets.ssh_host_key
    if munge is not None:
        yield _reference("secrets.munge_key", "Secret", munge.secret, key=munge.key, holds="munge key")
    if ssh_host is not None:
        yield _reference("secrets.ssh_host_key", "Secret", ssh_host.secret, key=ssh_host.key, holds="ssh host key")
    if spec.rest is not None:
        if (jwt := spec.secrets.jwt_key) is not None:
            yield _reference("secrets.jwt_key", "Secret", jwt.secret, key=jwt.key, holds="jwt key")
        if spec.rest.tls is not None:
            yield _reference("rest.tls", "Secret", spec.rest.tls.secret, key="tls.key")
            yield _reference("rest.tls", "Secret", spec.rest.tls.secret, key="tls.crt")
    own = spec.accounting.own if spec.accounting is not None else None
    external = spec.accounting.database.external if spec.accounting is not None else None
    database = "accounting.database"
    if own is not None and own.password is not None:
        given = own.password
        yield _reference(f"{database}.own.password", "Secret", given.secret, key=given.key)
    if external is not None:
        given = external.password
        yield _reference(f"{database}.external.password", "Secret", given.secret, key=given.key)
        if external.authority is not None:
            authority = external.authority
            yield _reference(f"{database}.external.authority", "Secret", authority.secret, key=authority.key)
    yield from _registry_secrets(spec)


def _registry_secrets(spec: ClusterSpec) -> Iterator[Reference]:
    """Yield the Secrets with credentials of registries."""
    if spec.containers is not None and spec.containers.images_secret is not None:
        secret = spec.containers.images_secret
        yield _reference("containers.images_secret", "Secret", secret, key=layout.DOCKER_CONFIG_KEY)
    for index, secret in enumerate(spec.images.pull_secrets):
        yield _reference(f"images.pull_secrets[{index}]", "Secret", secret)


def _volumes(spec: ClusterSpec) -> Iterator[Reference]:
    volumes: list[tuple[str, VolumeSpec, str, str]] = [
        ("jail.storage", spec.jail.storage, "ReadWriteMany", JAIL_CLAIM),
        ("storage.state", spec.storage.state, "ReadWriteOnce", STATE_CLAIM),
    ]
    own, dump = (spec.accounting.own, spec.accounting.dump) if spec.accounting is not None else (None, None)
    if own is not None:
        volumes.append(("accounting.database.own.storage", own.storage, "ReadWriteOnce", layout.DATABASE_CLAIM))
    if dump is not None:
        volumes.append(("accounting.dump.storage", dump.storage, "ReadWriteOnce", layout.DUMPS_CLAIM))
    for path, volume, mode, claim in volumes:
        if volume.existing_claim is not None:
            yield _reference(f"{path}.existing_claim", "PersistentVolumeClaim", volume.existing_claim, holds=mode)
        elif volume.static_volume is not None:
            yield _reference(f"{path}.static_volume", "PersistentVolume", volume.static_volume, holds=claim)
        else:
            yield _reference(f"{path}.storage_class", "StorageClass", volume.storage_class or "")
    for index, submount in enumerate(spec.jail.submounts):
        if submount.existing_claim is not None:
            modes = "ReadOnlyMany|ReadWriteMany" if submount.read_only else "ReadWriteMany"
            path = f"jail.submounts[{index}].existing_claim"
            yield _reference(path, "PersistentVolumeClaim", submount.existing_claim, holds=modes)


def _priority_classes(spec: ClusterSpec) -> Iterator[Reference]:
    roles: list[tuple[str, Scheduled]] = [
        ("controller", spec.controller),
        *spec.login.by_path.items(),
        ("jail.populate", spec.jail.populate),
    ]
    if spec.rest is not None:
        roles.append(("rest", spec.rest))
    roles += accounting.roles(spec.accounting)
    roles += [(f"node_sets[{index}]", node_set) for index, node_set in enumerate(spec.node_sets)]
    for path, role in roles:
        if role.priority_class is not None:
            yield _reference(f"{path}.priority_class", "PriorityClass", role.priority_class)


def _service_accounts(spec: ClusterSpec) -> Iterator[Reference]:
    """Yield the ServiceAccounts that the cluster does not create."""
    logins = zip(spec.login.by_path, spec.login.by_name.items(), strict=True)
    named = [(path, name, pods.service_account) for path, (name, pods) in logins]
    named += [
        (f"node_sets[{index}]", node_set.name, node_set.service_account)
        for index, node_set in enumerate(spec.node_sets)
    ]
    for path, default, account in named:
        if account is not None and not account.create:
            yield _reference(f"{path}.service_account", "ServiceAccount", account.name or default)


def _custom_kinds(spec: ClusterSpec) -> Iterator[Reference]:
    """Yield the kinds of other projects' operators, unless the platform installs them."""
    metrics, accounting_spec, platform = spec.metrics, spec.accounting, spec.platform
    if metrics is not None and not platform.kube_prometheus_stack:
        if metrics.pod_monitor:
            yield _definition("metrics.pod_monitor", "podmonitors.monitoring.coreos.com", "v1")
        if metrics.alerts is not None:
            yield _definition("metrics.alerts", "prometheusrules.monitoring.coreos.com", "v1")
    by_operator = accounting_spec is not None and accounting_spec.database.mariadb_operator is not None
    if by_operator and not platform.mariadb_operator:
        yield _definition("accounting.database.mariadb_operator", "mariadbs.k8s.mariadb.com", "v1alpha1")


def _definition(path: str, name: str, version: str) -> Reference:
    return _reference(path, "CustomResourceDefinition", name, holds=version)


def _reference(path: str, kind: str, name: pulumi.Input[str], *, key: str = "", holds: str = "") -> Reference:
    reference: Reference = {"path": path, "kind": kind, "name": name, "key": key, "holds": holds}
    if isinstance(name, pulumi.Output):
        reference["created_by_program"] = _is_created(name)
    return reference


def _is_created(name: pulumi.Output[str]) -> pulumi.Output[bool]:
    """Return true if the name comes from a resource that the program creates, and not from another stack."""

    async def created() -> bool:
        return any(kind != "pulumi:pulumi:StackReference" for kind in await _types(await name.resources()))

    return _later(created())


def creates_namespace(opts: pulumi.ResourceOptions | None) -> pulumi.Output[bool] | None:
    """Return true if a component depends on a Namespace, which its program then creates; None if it has no dependency.

    In a plugin, the dependencies of a component have no other type than that of their URNs.
    """
    if opts is None or opts.depends_on is None or opts.depends_on == []:
        return None

    async def created() -> bool:
        given: object = await pulumi.Output.from_input(opts.depends_on).future()
        every = given if isinstance(given, Sequence) else [given]
        return "kubernetes:core/v1:Namespace" in await _types(e for e in every if isinstance(e, pulumi.Resource))

    return _later(created())


async def _types(resources: Iterable[pulumi.Resource]) -> list[str]:
    """Return the types of resources, by their URNs: urn:pulumi:STACK::PROJECT::PARENTS$TYPE::NAME."""
    urns = [await resource.urn.future() or "" for resource in resources]
    return [urn.split("::")[2].rpartition("$")[2] for urn in urns if urn]


def _later(value: Awaitable[bool]) -> pulumi.Output[bool]:
    output: pulumi.Output[bool] = pulumi.Output.from_input(value)
    return output
