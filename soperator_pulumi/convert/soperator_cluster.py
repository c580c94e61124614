"""The cluster of soperator: keys that its chart's values and a SlurmCluster's spec share."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.convert.container_parts import put_pyxis
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.pod_parts import (
    MountedVolume,
    Submounts,
    count_of,
    is_in_jail,
    place_pods,
    put_resources,
    whole_gib,
)
from soperator_pulumi.convert.required_values import (
    NEW_STATE,
    require_allowed_sources,
    require_images,
    require_jail_image,
)
from soperator_pulumi.convert.service_parts import (
    put_database,
    put_metrics,
    put_no_accounting,
    put_operator_database,
    put_purges,
    put_rest,
)
from soperator_pulumi.convert.slurm_text import (
    ALL,
    Partition,
    place_partitions,
    put_parameter,
    read_options,
    read_parameters,
    read_partition_line,
    with_defaults,
)
from soperator_pulumi.convert.soperator_node_sets import NO_CLAIMS, SourceNodeSet, convert_node_set
from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.spec.login import object_name
from soperator_pulumi.spec.submount import SubmountRole

_DEFAULT_PARTITIONS = {
    "main": {"Default": "YES", "PriorityTier": "10", "MaxTime": "INFINITE", "State": "UP", "OverSubscribe": "YES"},
    "hidden": {
        "PriorityTier": "10",
        "PreemptMode": "OFF",
        "Hidden": "YES",
        "MaxTime": "INFINITE",
        "State": "UP",
        "OverSubscribe": "YES",
    },
}
"""Partitions that soperator creates with the configType "default"."""

_SCRIPTS = {"prolog", "epilog", "taskProlog"}

_JAIL = (
    "a new claim is created: this volume holds one root filesystem, and the jail here holds several trees. To keep the "
    "homes, mount them as a submount: {path: /home, existing_claim: ..., sub_path: home}"
)


def convert_cluster(work: Conversion, cluster: Section, name: Section, node_sets: Sequence[SourceNodeSet]) -> None:
    """Write the cluster with its node sets.

    Args:
        work: The conversion.
        cluster: Place with `slurmNodes`, `slurmConfig` and so on.
        name: Name of the cluster.
        node_sets: Its node sets.
    """
    work.put(work.stack, "name", name.text(), name)
    filters = _named(cluster.at("k8sNodeFilters"))
    volumes = _named(cluster.at("volumeSources"))
    submounts = Submounts(work)
    _put_services(work, cluster, filters)
    _put_parameters(work, cluster)
    _put_controller(work, cluster.at("slurmNodes", "controller"), filters, volumes)
    _put_login(work, cluster.at("slurmNodes", "login"), filters, volumes, submounts)
    _place_role(work, work.mapping("jail", "populate"), cluster.at("populateJail"), filters)
    items = {node_set.name.text(): convert_node_set(work, node_set, submounts) for node_set in node_sets}
    submounts.choose_pods(items)
    _put_partitions(work, cluster, items)
    put_pyxis(work, cluster.at("plugStackConfig", "pyxis", "required"))
    _put_host_keys(work, cluster.at("secrets", "sshdKeysName"))
    for place in (cluster.at("slurmNodes", "login"), cluster.at("slurmNodes", "controller")):
        _put_jail_volume(work, place.at("volumes", "jail", "volumeSourceName"), volumes)
    require_images(work)
    require_jail_image(work)
    if not items:
        work.require(work.stack, "node_sets", "soperator describes node sets in another file: give that file as well")


def _put_services(work: Conversion, cluster: Section, filters: dict[str, Section]) -> None:
    """Write accounting and the REST API, which are off by default, and metrics, which are on."""
    if not cluster:
        return
    accounting, rest = cluster.at("slurmNodes", "accounting"), cluster.at("slurmNodes", "rest")
    if not accounting.at("enabled").is_on():
        put_no_accounting(work, accounting.at("enabled"))
    else:
        work.needless(accounting.at("enabled"), "accounting is on by default")
        _put_database(work, accounting)
        put_purges(work, accounting.at("slurmdbdConfig"))
        _put_service_pod(work, work.mapping("accounting", "slurmdbd"), accounting, accounting.at("slurmdbd"), filters)
    if rest.at("enabled").is_on():
        put_rest(work, rest.at("enabled"), rest.at("size"))
        _put_service_pod(work, work.mapping("rest"), rest, rest.at("rest"), filters)
    exporter, endpoint = cluster.at("slurmNodes", "exporter"), cluster.at("slurmNodes", "controller", "openMetrics")
    intervals = [exporter.at("podMonitorConfig", "interval"), exporter.at("collectionInterval")]
    put_metrics(
        work,
        [exporter.at("enabled"), endpoint.at("enabled")],
        intervals if exporter.at("enabled").is_on() else [endpoint.at("serviceMonitor", "interval")],
    )
    if exporter.at("enabled").is_on():
        _place_role(work, work.mapping("metrics"), exporter, filters)


def _put_service_pod(
    work: Conversion, role: dict[str, Any], place: Section, container: Section, filters: dict[str, Section]
) -> None:
    _place_role(work, role, place, filters)
    _put_pod(work, role, container.at("resources"))


def _put_database(work: Conversion, accounting: Section) -> None:
    external, operator = accounting.at("externalDB"), accounting.at("mariadbOperator")
    if external.at("enabled").is_on():
        work.needless(external.at("enabled"), "as accounting.database.external")
        keys = {"host": "host", "port": "port", "user": "user"}
        put_database(work, external, keys, external.at("passwordSecretKeyRef"))
        authority = external.at("tls", "serverCASecretRef")
        if authority.text():
            trusted = work.mapping("accounting", "database", "external", "authority")
            work.put(trusted, "secret", authority.text(), authority)
    elif operator.at("enabled").is_on():
        put_operator_database(work, operator)


def _named(places: Section) -> dict[str, Section]:
    return {place.at("name").text(): place for place in places.items() if place.at("name").text()}


def _put_parameters(work: Conversion, cluster: Section) -> None:
    of_accounting = cluster.at("slurmNodes", "accounting", "slurmConfig")
    if not cluster.at("slurmNodes", "accounting", "enabled").is_on():
        work.needless(of_accounting, "slurmNodes.accounting.enabled is off")
        of_accounting = Section(None)
    for key, value in [*cluster.at("slurmConfig").entries(), *of_accounting.entries()]:
        parameter = key[:1].upper() + key[1:]
        if not value or value.text() == "":
            work.needless(value, "empty")
        elif key in _SCRIPTS:
            work.cannot(value, f"{parameter} is a script of soperator that images here do not have")
        elif parameter == "TopologyParam":
            work.cannot(value, "Slurm's topology is not supported yet")
        elif parameter == "DefCpuPerGPU":
            work.cannot(value, "partitions here derive it from the CPUs of their nodes; or set it in their options")
        else:
            put_parameter(work, parameter, value.plain(), value)
    for partition in read_parameters(work, cluster.at("customSlurmConfig")):
        leaves = [*partition.origins, *(leaf for _, _, leaves in partition.options for leaf in leaves)]
        work.cannot(
            [*leaves, *(leaf for _, leaves in partition.nodes for leaf in leaves)],
            "a partition outside partitionConfiguration; write it there",
        )


def _place_role(work: Conversion, role: dict[str, Any], place: Section, filters: dict[str, Section]) -> None:
    """Write the placement and priority of a role's pods, which soperator keeps in named filters."""
    reference = place.at("k8sNodeFilterName")
    found = filters.get(reference.text())
    if found is None:
        work.cannot(reference, "k8sNodeFilters has no entry of this name")
    else:
        further = (*reference.leaves(), *found.at("name").leaves())
        place_pods(work, role, found, further, f'placement of k8sNodeFilters "{reference.text()}"')
        work.needless(further, "the filter selects every machine")
    if place.at("priorityClass").text():
        work.put(role, "priority_class", place.at("priorityClass").text(), place.at("priorityClass"))


def _put_controller(work: Conversion, place: Section, filters: dict[str, Section], volumes: dict[str, Section]) -> None:
    role = work.mapping("controller")
    _place_role(work, role, place, filters)
    _put_pod(work, role, place.at("slurmctld", "resources"))
    if place.at("size").plain() == 1:
        work.needless(place.at("size"), "there is one slurmctld")
    work.cannot(place.at("size"), "there is one slurmctld, which Kubernetes restarts on another machine")
    state = work.mapping("storage", "state")
    spool = place.at("volumes", "spool")
    template = spool.at("volumeClaimTemplateSpec")
    if template:
        _put_size(work, state, template.at("resources", "requests", "storage"), template.at("storageClassName"))
        return
    reference = spool.at("volumeSourceName")
    source = volumes.get(reference.text())
    if source is None:
        work.cannot(reference, "volumeSources has no entry of this name")
    else:
        _put_claim(work, state, source, reference, NEW_STATE)


def _put_jail_volume(work: Conversion, reference: Section, volumes: dict[str, Section]) -> None:
    source = volumes.get(reference.text() or "jail")  # the name in the values of the chart itself
    if source is None:
        work.cannot(reference, "volumeSources has no entry of this name")
        return
    _put_claim(work, work.mapping("jail", "storage"), source, reference, _JAIL)


def _put_claim(work: Conversion, volume: dict[str, Any], source: Section, reference: Section, why: str) -> None:
    """Write size and class of a claim, and report its name as not possible: a claim here is always new."""
    if source.at("createPVC").is_on():
        _put_size(work, volume, source.at("size"), source.at("storageClassName"))
    work.cannot([*source.leaves(), *reference.leaves()], why)


def _put_size(work: Conversion, volume: dict[str, Any], size: Section, storage_class: Section) -> None:
    amount = whole_gib(size.plain())
    if amount is not None:
        work.put(volume, "size_gib", amount, size, f"a new claim; {size.text()} in whole GiB")
    if storage_class.text():
        work.put(volume, "storage_class", storage_class.text(), storage_class)


def _put_pod(work: Conversion, role: dict[str, Any], resources: Section) -> None:
    put_resources(work, role, "requests", resources)
    limit = resources.at("memory")
    if limit:
        limits = work.mapping("pod_resources", "limits", of=role)
        work.put(limits, "memory", role["pod_resources"]["requests"]["memory"].value, limit)


def _put_login_service(work: Conversion, role: dict[str, Any], place: Section) -> None:
    service, port = place.at("sshdServiceType"), place.at("sshdServiceNodePort")
    if service.text():
        work.put(role, "service", service.text(), service)
    if service.text() == "NodePort" and isinstance(port.plain(), int):
        work.put(role, "node_port", port.plain(), port)
    for key, value in place.at("sshdServiceAnnotations").entries():
        work.put(work.mapping("service_annotations", of=role), key, value.text(), value)
    for block in place.at("sshdServiceLoadBalancerSourceRanges").items():
        work.add(work.listed("allowed_sources", of=role), block.text(), block)
    if service.text() in {"LoadBalancer", "NodePort"}:
        require_allowed_sources(work, role)


def _put_login(
    work: Conversion, place: Section, filters: dict[str, Section], volumes: dict[str, Section], submounts: Submounts
) -> None:
    role = work.mapping("login")
    _place_role(work, role, place, filters)
    _put_pod(work, role, place.at("sshd", "resources"))
    if place.at("sshd", "appArmorProfile").text() == "unconfined":
        profile = place.at("sshd", "appArmorProfile")
        work.put(work.mapping("jail"), "app_armor", "unconfined", profile, "for all slurmd and sshd containers")
    if place.at("size"):
        work.put(role, "replicas", count_of(place.at("size")), place.at("size"))
    _put_login_service(work, role, place)
    inside = [mount for mount in place.at("volumes", "customMounts").items() if is_in_jail(mount.at("mountPath"))]
    for mount in (*place.at("volumes", "jailSubMounts").items(), *inside):
        reference = mount.at("volumeSourceName")
        source = volumes.get(reference.text())
        if source is None:
            work.cannot(mount, "volumeSources has no entry of this name" if reference else NO_CLAIMS)
            continue
        submounts.add(
            MountedVolume(
                path=mount.at("mountPath"),
                source=source,
                pods=(SubmountRole.LOGIN, object_name(None)),
                sub_path=mount.at("subPath"),
                read_only=mount.at("readOnly"),
                further=(*mount.at("name").leaves(), *reference.leaves(), *source.at("name").leaves()),
            )
        )
        if source.at("createPVC").is_on():
            work.cannot(source, "a submount names an existing claim: create it outside the cluster")


def _put_partitions(work: Conversion, cluster: Section, items: dict[str, dict[str, Any]]) -> None:
    configuration = cluster.at("partitionConfiguration")
    kind = configuration.at("configType")
    partitions: list[Partition] = []
    match kind.text():
        case "custom":
            work.needless(kind, "partitions are always listed")
            lines = [read_partition_line(work, leaf) for leaf in configuration.at("rawConfig").leaves() if leaf.value]
            partitions = with_defaults(work, [line for line in lines if line is not None])
            work.needless(configuration.at("partitions"), 'partitionConfiguration.configType is "custom"')
        case "structured":
            work.needless(kind, "partitions are always listed")
            partitions = [_structured(work, partition) for partition in configuration.at("partitions").items()]
            work.needless(configuration.at("rawConfig"), 'partitionConfiguration.configType is "structured"')
        case _:
            leaves = tuple(kind.leaves())
            partitions = [
                Partition(name, leaves, [(ALL, leaves)], [(key, value, leaves) for key, value in options.items()])
                for name, options in _DEFAULT_PARTITIONS.items()
            ]
            why = 'partitionConfiguration.configType is "default"'
            work.needless(configuration.at("rawConfig"), why)
            work.needless(configuration.at("partitions"), why)
    names = {name: work.listed("partitions", of=item) for name, item in items.items()}
    place_partitions(work, partitions, names)


def _structured(work: Conversion, place: Section) -> Partition:
    partition = Partition(place.at("name").text(), tuple(place.at("name").leaves()))
    if place.at("isAll").is_on():
        partition.nodes.append((ALL, tuple(place.at("isAll").leaves())))
        work.needless(place.at("nodeSetRefs"), "isAll is true")
    else:
        work.needless(place.at("isAll"), "the node sets are named")
        partition.nodes += [(name.text(), tuple(name.leaves())) for name in place.at("nodeSetRefs").items()]
    partition.options = read_options(work, place.at("config"))
    return partition


def _put_host_keys(work: Conversion, name: Section) -> None:
    if name.text():
        key = work.mapping("secrets", "ssh_host_key")
        work.put(key, "secret", name.text(), name, "only its ed25519 key")
