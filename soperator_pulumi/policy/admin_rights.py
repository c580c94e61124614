"""Policy on rights in Kubernetes: no pod of the program may have the rights of a cluster admin."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import objects_and_patches, selects
from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look, mapped
from soperator_pulumi.policy.view import ResourceView

_API = "rbac.authorization.k8s.io"
_WEBHOOKS, _CERTIFICATES = "admissionregistration.k8s.io", "certificates.k8s.io"
_ANY = "*"
_UNHEARD_OF = "a group or a kind that only a wildcard covers"
"""Group and kind that only a wildcard covers."""


class _Right(NamedTuple):
    """A right that is enough to become an admin, or to act as one."""

    verb: str
    group: str
    kind: str
    words: str
    in_namespace: bool = True
    """True if the right in one namespace makes an admin of that namespace."""


_WORKLOADS = (
    ("", "pods"),
    ("", "replicationcontrollers"),
    *(("apps", kind) for kind in ("daemonsets", "deployments", "replicasets", "statefulsets")),
    *(("batch", kind) for kind in ("cronjobs", "jobs")),
)
"""Groups and kinds of objects that run containers, with any ServiceAccount of their namespace."""

_CHANGE = ("create", "update", "patch")

_STRONG = (
    *(_Right(verb, _UNHEARD_OF, _UNHEARD_OF, f"{verb} anything") for verb in _CHANGE),
    *(
        _Right(verb, _API, kind, f"{verb} any role")
        for verb in ("escalate", "bind")
        for kind in ("roles", "clusterroles")
    ),
    *(
        _Right("impersonate", "", kind, f"impersonate any of the {kind}", in_namespace=False)
        for kind in ("users", "groups", "serviceaccounts")
    ),
    *(
        _Right(verb, "", "secrets", "read the Secrets of all namespaces", in_namespace=False)
        for verb in ("get", "list", "watch")
    ),
    *(_Right(verb, "", "pods/exec", "run commands in any pod", in_namespace=False) for verb in ("create", "get")),
    *(
        _Right(verb, group, kind, "run pods with any ServiceAccount", in_namespace=False)
        for verb in _CHANGE
        for group, kind in _WORKLOADS
    ),
    *(
        _Right(verb, "", "pods/ephemeralcontainers", "run containers in any pod", in_namespace=False)
        for verb in ("update", "patch")
    ),
    _Right("create", "", "serviceaccounts/token", "make a token of any ServiceAccount", in_namespace=False),
    *(
        _Right(verb, "", "nodes/proxy", "run commands in any pod by its kubelet", in_namespace=False)
        for verb in ("create", "get")
    ),
    *(
        _Right(verb, _WEBHOOKS, f"{kind}webhookconfigurations", f"{does} any object by a webhook", in_namespace=False)
        for verb in _CHANGE
        for kind, does in (("mutating", "change"), ("validating", "read"))
    ),
    *(
        _Right(verb, _CERTIFICATES, "certificatesigningrequests/approval", "approve any certificate", False)
        for verb in ("update", "patch")
    ),
)
"""Rights of which any one suffices, so it doesn't matter over which rules, roles and bindings others are spread:
https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks."""

_POWERFUL = {"cluster-admin", "system:masters"}
"""Names in `resourceNames` that make a right as strong as one over all names."""

_OF_SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
_BUILT_IN: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "cluster-admin": [{"apiGroups": [_ANY], "resources": [_ANY], "verbs": [_ANY]}],
    "edit": [_OF_SECRETS, {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}],
}
"""Strong rules of Kubernetes' own ClusterRoles:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles."""

_AGGREGATED = {"admin": "edit", "edit": "view", "view": None}
"""Kubernetes' own ClusterRoles that collect the rules of others by labels, and the one that they include."""

_EVERY_ACCOUNT = "system:serviceaccounts"
_GROUPS = {_EVERY_ACCOUNT, "system:authenticated", "system:unauthenticated", "system:masters"}
"""Groups that have all ServiceAccounts as members, or that an attacker is in."""


def _admins(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    objects = objects_and_patches(resources)
    namespaces = {"default", *(str(resource.namespace) for resource in objects)}
    namespaces |= {
        str(look(resource.props, "metadata", "name")) for resource in objects if resource.kind == "Namespace"
    }
    roles = [resource for resource in objects if resource.kind in {"Role", "ClusterRole"}]
    for binding in objects:
        if binding.kind in {"RoleBinding", "ClusterRoleBinding"}:
            yield from _bound(binding, roles, namespaces)


def _bound(binding: ResourceView, roles: Sequence[ResourceView], namespaces: set[str]) -> Iterator[Finding]:
    subjects = look(binding.props, "subjects")
    accounts = [
        index
        for index, subject in enumerate(listed(subjects))
        if _is_account(subject, str(binding.namespace), namespaces)
    ]
    reference = look(binding.props, "roleRef")
    name = look(reference, "name")
    rules = [*_rules(str(look(reference, "kind")), name, binding.namespace, roles, set())]
    everywhere = binding.kind == "ClusterRoleBinding"
    rights = [right for right in _STRONG if (everywhere or right.in_namespace) and _gives(rules, right)]
    if rights and subjects is UNKNOWN:
        yield not_known(binding, ("subjects",))
    elif accounts and not rights and (name is UNKNOWN or not all(map(_is_known, rules))):
        yield not_known(binding, ("roleRef",))
    words = ", ".join(dict.fromkeys(right.words for right in rights))
    where = "" if everywhere else " in this namespace"
    for index in accounts if rights else ():
        yield Finding(binding, ("subjects", index), f"has rights like an admin{where}: {words}")


def _is_account(subject: object, namespace: str, namespaces: set[str]) -> bool:
    """Return True for a ServiceAccount of these namespaces, by its own name or by one of a user or a group."""
    kind, name, given = (look(subject, key) for key in ("kind", "name", "namespace"))
    if UNKNOWN in (kind, name, given):
        return True
    if kind == "ServiceAccount":
        return str(given or namespace) in namespaces
    if kind == "User":
        return str(name).rpartition(":")[0] in {f"system:serviceaccount:{own}" for own in namespaces}
    return str(name) in _GROUPS | {f"{_EVERY_ACCOUNT}:{own}" for own in namespaces}


def _rules(
    kind: str, name: object, namespace: object, roles: Sequence[ResourceView], done: set[str]
) -> Iterator[object]:
    """Yield the rules of a role, including built-in rules and rules aggregated by labels."""
    if not isinstance(name, str) or name in done:
        return
    done.add(name)
    own = [role for role in roles if role.kind == kind and look(role.props, "metadata", "name") == name]
    if kind == "Role":
        own = [role for role in own if UNKNOWN in (role.namespace, namespace) or role.namespace == namespace]
    for role in own:
        rules = look(role.props, "rules")
        yield from [UNKNOWN] if rules is UNKNOWN else listed(rules)
    if kind == "Role":
        return
    yield from _BUILT_IN.get(name, ())
    selectors = [
        selector for role in own for selector in listed(look(role.props, "aggregationRule", "clusterRoleSelectors"))
    ]
    if name in _AGGREGATED:
        selectors.append({"matchLabels": {f"{_API}/aggregate-to-{name}": "true"}})
        yield from _rules(kind, _AGGREGATED[name], namespace, roles, done)
    for role in roles:
        if role.kind == kind and any(selects(selector, role.labels) for selector in selectors):
            yield from _rules(kind, look(role.props, "metadata", "name"), namespace, roles, done)


def _gives(rules: Sequence[object], right: _Right) -> bool:
    kinds = {_ANY, right.kind}
    if "/" in right.kind:
        kinds.add(f"{_ANY}/{right.kind.rpartition('/')[2]}")  # a subresource of every kind
    wanted = (("verbs", {_ANY, right.verb}), ("apiGroups", {_ANY, right.group}), ("resources", kinds))
    return any(
        all(values & set(_words(look(rule, key))) for key, values in wanted) and _names_all(rule, right)
        for rule in rules
    )


def _names_all(rule: object, right: _Right) -> bool:
    """Return True if a rule's names do not limit a right: a role that may be escalated may be the account's own."""
    names = _words(look(rule, "resourceNames"))
    return not names or right.verb == "escalate" or bool(_POWERFUL & {*names})


def _words(value: object) -> list[str]:
    return [item for item in listed(value) if isinstance(item, str)]


def _is_known(rule: object) -> bool:
    values = [rule, *mapped(rule).values()]
    return not any(value is UNKNOWN or UNKNOWN in listed(value) for value in values)


ADMIN_RIGHTS = StackPolicy(
    name="admin-rights",
    description="No ServiceAccount of the program has rights that make an admin of the Kubernetes cluster.",
    violated_by="a ClusterRoleBinding or RoleBinding of a ServiceAccount, or of a group with all of them, to "
    "`cluster-admin` or a role that may create, update or patch `*`, `escalate` or `bind` roles; a ClusterRoleBinding "
    "to a role that may `impersonate` or read Secrets, such as `edit`, run commands in pods, create or change pods, "
    "Deployments, Jobs and their like, make tokens, or change webhooks; in any number of rules, and by aggregation",
    cure="Give the ServiceAccount a Role with the verbs and resources that its program needs, and bind it in the "
    "namespaces where it needs them; if it runs pods, where no ServiceAccount has more rights. For Secrets, name them "
    "in resourceNames or bind in a namespace.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("rights", "security"),
    check=_admins,
)
