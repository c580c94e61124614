"""Accounting and the REST API, for which both projects have other keys."""

import re
from collections.abc import Mapping
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.spec.accounting import NONE

ACCOUNTING = "no counterpart in `accounting`, which has its own database, ages of records, and pods"
REST = "no counterpart in `rest`, whose pods, ports and limits are fixed"

_PURGED = {
    "events": "PurgeEventAfter",
    "jobs": "PurgeJobAfter",
    "reservations": "PurgeResvAfter",
    "steps": "PurgeStepAfter",
    "suspends": "PurgeSuspendAfter",
    "transactions": "PurgeTXNAfter",
    "usage": "PurgeUsageAfter",
}
"""Keys of `accounting.purge`, by the parameters of slurmdbd.conf."""

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
    """Write the ages at which slurmdbd deletes records. The case of the parameters does not matter."""
    places = {key.lower(): value for key, value in parameters.entries()}
    for ours, theirs in _PURGED.items():
        place = places.get(theirs.lower(), Section(None))
        if match := _AGE.fullmatch(place.text().lower()):
            age = f"{match['number']} {match['unit']}s"
            work.put(work.mapping("accounting", "purge"), ours, age, place)


def put_slinky_accounting(work: Conversion, place: Section) -> None:
    """Write the accounting of Slinky's chart or custom resource, whose database is external."""
    if place.at("external").is_on():
        return
    storage = place.at("storageConfig")
    keys = {"host": "host", "port": "port", "database": "database", "username": "user"}
    put_database(work, storage, keys, storage.at("passwordKeyRef"))
    put_purges(work, place.at("extraConfMap"))


def put_rest(work: Conversion, switch: Section, replicas: Section) -> None:
    """Write a REST API with its number of pods."""
    rest = work.mapping("rest")
    count = replicas.plain()
    work.put(rest, "replicas", count if isinstance(count, int) else 1, [*switch.leaves(), *replicas.leaves()])
