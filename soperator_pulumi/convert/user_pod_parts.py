"""Parts of pods in which users work: labels, annotations, spread, host names and ServiceAccounts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.rules import CHART_LABELS, Rule, cannot, needless
from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.spec.user_pods import OWN_PREFIXES

_SPREAD = {"topologyKey": "topology_key", "maxSkew": "max_skew", "whenUnsatisfiable": "when_unsatisfiable"}
_LEFT_OUT = (
    *OWN_PREFIXES,
    "container.apparmor.security.beta.kubernetes.io/",
    "kubectl.kubernetes.io/",
    "helm.sh/",
)
"""Beginnings of labels and annotations that belong to other programs or to containers of the origin."""

_CREATED = "the cluster creates this ServiceAccount in its own namespace, which a cloud's policy may name as well"
_JOBS = "identity of the pods; job_token gives jobs its token"


def put_user_pods(
    work: Conversion,
    role: dict[str, Any],
    pod: Section,
    metadata: Section,
    accounts: "ServiceAccounts",
    *,
    but: str = "",
) -> None:
    """Write labels, annotations, spread over machines, host names and grace of pods in the form of Kubernetes.

    Args:
        work: The conversion.
        role: Role in the stack: `login`, one of its pools, or an item of `node_sets`.
        pod: Spec of the pod.
        metadata: Labels and annotations of the pod.
        accounts: ServiceAccounts of the input, which take note of the pod's.
        but: Annotation that another part converts.
    """
    put_pairs(work, role, "labels", metadata.at("labels"))
    put_pairs(work, role, "annotations", metadata.at("annotations"), but)
    for constraint in pod.at("topologySpreadConstraints").items():
        known = {_SPREAD[key]: value for key, value in constraint.entries() if key in _SPREAD and value}
        selector = constraint.at("labelSelector").leaves()
        if known:
            leaves = [leaf for value in known.values() for leaf in value.leaves()]
            how = "counts the pods of the role, without labelSelector" if selector else ""
            plain = {key: value.plain() for key, value in known.items()}
            work.add(work.listed("topology_spread", of=role), plain, [*leaves, *selector], how)
    for alias in pod.at("hostAliases").items():
        if alias.at("hostnames").items():
            plain = {"ip": alias.at("ip").text(), "hostnames": alias.at("hostnames").plain()}
            leaves = [*alias.at("ip").leaves(), *alias.at("hostnames").leaves()]
            work.add(work.listed("host_aliases", of=role), plain, leaves)
    grace = pod.at("terminationGracePeriodSeconds")
    if grace.text():
        is_login = _is_login(work, role)
        place, key = (role, "termination_grace") if is_login else (work.mapping("drain", of=role), "grace")
        work.put(place, key, f"{grace.text()}s", grace)
    accounts.use(role, pod.at("serviceAccountName"))
    token = pod.at("automountServiceAccountToken")
    if token.plain() is False:
        work.needless(token, "pods never have a token of Kubernetes' API")


def _is_login(work: Conversion, role: dict[str, Any]) -> bool:
    login = work.stack.get("login", {})
    return any(role is pods for pods in (login, *login.get("pools", {}).values()))


def put_pairs(work: Conversion, role: dict[str, Any], key: str, pairs: Section, but: str = "") -> None:
    """Write the labels or the annotations of pods, without those that `metadata_rules` accounts for."""
    for name, value in pairs.entries():
        if value and name != but and not name.startswith(_LEFT_OUT):
            work.put(work.mapping(key, of=role), name, value.text(), value)


def metadata_rules(place: str) -> tuple[Rule, ...]:
    """Return the rules for labels or annotations of pods, at a path, that are never taken over."""
    return (
        *needless(CHART_LABELS, f"{place}.helm*", f"{place}.app*kubernetes*io/*"),
        *cannot("jail.app_armor sets the profile of slurmd and sshd", f"{place}.container*apparmor*"),
        *needless("a setting of kubectl", f"{place}.kubectl*"),
        *cannot("such names are Pulumi's or this package's", f"{place}.soperator*", f"{place}.pulumi*"),
    )


@dataclass
class ServiceAccounts:
    """ServiceAccounts that pods of the input have."""

    work: Conversion
    objects: Mapping[str, Section]
    """ServiceAccounts in the input, by name."""
    _uses: list[tuple[dict[str, Any], Section]] = field(default_factory=list)
    """Roles of the stack, and the places of the names."""

    def use(self, role: dict[str, Any], name: Section) -> None:
        """Note that the pods of a role have a ServiceAccount."""
        if name.text() == "default":
            self.work.needless(name, "it is the default")
        elif name.text():
            self._uses.append((role, name))

    def put(self) -> None:
        """Write the ServiceAccounts. The stack creates those of a single role that the input has; others must exist."""
        work = self.work
        names = [name.text() for _, name in self._uses]
        for role, place in self._uses:
            name = place.text()
            account = work.mapping("service_account", of=role)
            work.put(account, "name", name, place, "" if _is_login(work, role) else _JOBS)
            found = self.objects.get(name)
            if found is None or names.count(name) > 1:
                account["create"] = work.value(False)
                continue
            put_pairs(work, account, "annotations", found.at("metadata", "annotations"))
            work.cannot(found.at("imagePullSecrets"), "Secrets for pulls are images.pull_secrets, of all pods")
            work.needless(found, _CREATED)


def service_accounts(objects: Iterable[Section]) -> dict[str, Section]:
    """Return the ServiceAccounts among objects of Kubernetes, by name."""
    return {
        found.at("metadata", "name").text(): found for found in objects if found.at("kind").text() == "ServiceAccount"
    }
