"""Accounting and the REST API, for which both projects have other keys."""

import re
from collections.abc import Mapping
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.pod_parts import put_pods
from soperator_pulumi.convert.required_values import require_allowed_sources
from soperator_pulumi.convert.slurm_text import read_options
from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.spec.accounting import NONE

ACCOUNTING = "no counterpart in `accounting`, which has its own database, ages of records, and pods"
REST = "no counterpart in `rest`, whose pods, ports and limits are fixed"

_PURGED = {
    "purgeeventafter": "events",
    "purgejobafter": "jobs",
    "purgeresvafter": "reservations",
    "purgestepafter": "steps",
    "purgesuspendafter": "suspends",
    "purgetxnafter": "transactions",
    "purgeusageafter": "usage",
}
"""Keys of `accounting.purge`, by the parameters of slurmdbd.conf in lower case."""

_AGE = re.compile(r"(?P<number>[1-9]\d*)(?P<unit>hour|day|month)s?")


def put_no_accounting(work: Conversion, switch: Section) -> None:
    """Turn accounting off, as in the input."""
    work.put(work.stack, "accounting", NONE, switch, "as in the input; without the key, accounting is on")


def put_database(work: Conversion, place: Section, keys: Mapping[str, str], secret: Section) -> None:
    """Write an external database.

    Args:
        work: The conversion.
        place: The database in the input.
        keys: The keys here, by those of the input.
        secret: Name and key of the Secret with the password.
    """
    external: dict[str, Any] = work.mapping("accounting", "database", "external")
    for theirs, ours in keys.items():
        if place.at(theirs).text():
            work.put(external, ours, place.at(theirs).plain(), place.at(theirs))
    work.require(external, "host", "name or address of the database")
    password = work.mapping("password", of=external)
    for theirs, ours in {"name": "secret", "key": "key"}.items():
        if secret.at(theirs).text():
            work.put(password, ours, secret.at(theirs).text(), secret.at(theirs))
    work.require(password, "secret", "Secret in the cluster's namespace with the password of slurmdbd's user")


def put_operator_database(work: Conversion, place: Section) -> None:
    """Write a database for mariadb-operator, like the one that soperator's chart creates."""
    operator = work.mapping("accounting", "database", "mariadb_operator")
    count = place.at("replicas").plain()
    origin = [*place.at("enabled").leaves(), *place.at("replicas").leaves()]
    work.put(operator, "replicas", count if isinstance(count, int) else 1, origin)
    storage_class = place.at("storage", "storageClassName")
    if storage_class.text():
        work.put(operator, "storage_class", storage_class.text(), storage_class)


def put_purges(work: Conversion, parameters: Section) -> None:
    """Write the ages at which slurmdbd deletes records, from parameters of slurmdbd.conf in any case."""
    for key, value, leaves in read_options(work, parameters):
        ours = _PURGED.get(key.lower())
        match = _AGE.fullmatch(str(value).lower())
        if ours and match:
            work.put(work.mapping("accounting", "purge"), ours, f"{match['number']} {match['unit']}s", leaves)
        else:
            work.cannot(leaves, ACCOUNTING)


def put_slinky_accounting(work: Conversion, place: Section, pod: Section) -> None:
    """Write the accounting of Slinky's chart or custom resource, whose database is external."""
    if place.at("external").is_on():
        work.cannot(place, "slurmdbd is always the cluster's own; its database may be outside")
        return
    put_pods(work, work.mapping("accounting", "slurmdbd"), place.at("slurmdbd", "resources"), pod)
    storage = place.at("storageConfig")
    keys = {"host": "host", "port": "port", "database": "database", "username": "user"}
    put_database(work, storage, keys, storage.at("passwordKeyRef"))
    if place.at("extraConf").text():
        work.needless(place.at("extraConfMap"), "extraConf is given, and that counts")
        put_purges(work, place.at("extraConf"))
    else:
        put_purges(work, place.at("extraConfMap"))


def put_slinky_rest(work: Conversion, place: Section, pod: Section) -> None:
    """Write the REST API of Slinky's chart or custom resource."""
    put_rest(work, Section(None), place.at("replicas"))
    rest = work.mapping("rest")
    put_pods(work, rest, place.at("slurmrestd", "resources"), pod)
    put_service(work, rest, place.at("service"))


def put_service(work: Conversion, role: dict[str, Any], service: Section) -> None:
    """Write the type, the annotations and the allowed sources of a Service in the form of Kubernetes.

    People's files have the type next to `spec`, too, as it was until 0.3, and the annotations next to `metadata`.
    """
    kind = service.at("spec", "type") or service.at("type")
    if kind.text():
        work.put(role, "service", kind.text(), kind)
    for annotations in (service.at("annotations"), service.at("metadata", "annotations")):
        for key, value in annotations.entries():
            work.put(work.mapping("service_annotations", of=role), key, value.text(), value)
    for source in service.at("spec", "loadBalancerSourceRanges").items():
        work.add(work.listed("allowed_sources", of=role), source.text(), source)
    if kind.text() in {"LoadBalancer", "NodePort"}:
        require_allowed_sources(work, role)


def put_login_service(work: Conversion, role: dict[str, Any], service: Section) -> None:
    """Write the Service of login nodes, with its port on the machines and the class of its load balancer."""
    put_service(work, role, service)
    kind, port, balancer = role.get("service"), service.at("nodePort"), service.at("spec", "loadBalancerClass")
    kind = kind.value if kind else ""
    if kind in {"LoadBalancer", "NodePort"} and isinstance(port.plain(), int):
        work.put(role, "node_port", port.plain(), port)
    if kind == "LoadBalancer" and balancer.text():
        work.put(role, "load_balancer_class", balancer.text(), balancer)


def put_rest(work: Conversion, switch: Section, replicas: Section) -> None:
    """Write a REST API with its number of pods."""
    rest = work.mapping("rest")
    count = replicas.plain()
    work.put(rest, "replicas", count if isinstance(count, int) else 1, [*switch.leaves(), *replicas.leaves()])
