"""A policy on rights judges what ServiceAccounts may do, however a program spreads it over rules and roles."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.policy import ResourceView
from soperator_pulumi.policy.admin_rights import ADMIN_RIGHTS
from soperator_pulumi.policy.value_tree import UNKNOWN
from tests.unit.policy.views import an_object, paths

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = {"kind": "ServiceAccount", "name": "web", "namespace": "shop"}
SHOP = an_object("core/v1:ServiceAccount", {"metadata": {"name": "web", "namespace": "shop"}})
SUBJECT = ["subjects[0]"]

Rule = Mapping[str, Sequence[str]]


def rule(verbs: str, resources: str, groups: str = "", **others: Sequence[str]) -> Rule:
    return {"apiGroups": groups.split(" "), "resources": resources.split(), "verbs": verbs.split(), **others}


def a_role(name: str, *rules: Rule, kind: str = "ClusterRole", labels: Any = None, **others: Any) -> ResourceView:
    metadata = {"name": name, "labels": labels or {}, **({"namespace": "shop"} if kind == "Role" else {})}
    return an_object(f"{RBAC}/v1:{kind}", {"metadata": metadata, "rules": [*rules], **others}, name)


def bound(
    role: object, *subjects: object, kind: str = "ClusterRoleBinding", role_kind: str = "ClusterRole"
) -> ResourceView:
    metadata = {"name": "web", **({"namespace": "shop"} if kind == "RoleBinding" else {})}
    reference = {"apiGroup": RBAC, "kind": role_kind, "name": role}
    props = {"metadata": metadata, "roleRef": reference, "subjects": [*(subjects or [ACCOUNT])]}
    return an_object(f"{RBAC}/v1:{kind}", props, "web")


def found(*resources: ResourceView, unknown: bool = False) -> list[str]:
    return paths(ADMIN_RIGHTS, SHOP, *resources, unknown=unknown)


def everywhere(*rules: Rule) -> bool:
    return bool(found(a_role("web", *rules), bound("web")))


def in_namespace(*rules: Rule) -> bool:
    role = a_role("web", *rules, kind="Role")
    return bool(found(role, bound("web", kind="RoleBinding", role_kind="Role")))


@pytest.mark.parametrize("role", ["cluster-admin", "admin", "edit"])
def test_a_role_of_kubernetes_that_reads_all_secrets_is_refused(role: str) -> None:
    assert found(bound(role)) == SUBJECT


def test_an_admin_of_a_namespace_is_refused_and_an_editor_is_not() -> None:
    assert found(bound("cluster-admin", kind="RoleBinding")) == SUBJECT
    assert found(bound("edit", kind="RoleBinding")) == []
    assert found(bound("view")) == []


@pytest.mark.parametrize(
    "strong",
    [
        rule("*", "*", "*"),
        rule("create", "*", "*"),
        rule("escalate update", "clusterroles", RBAC),
        rule("bind", "*", RBAC),
        rule("*", "roles", RBAC),
        rule("bind", "clusterroles", RBAC, resourceNames=["view", "cluster-admin"]),
    ],
)
def test_a_right_that_leads_to_all_others_is_refused_in_a_namespace_as_well(strong: Rule) -> None:
    assert everywhere(strong)
    assert in_namespace(strong)


@pytest.mark.parametrize(
    "strong",
    [
        rule("get", "secrets"),
        rule("watch", "pods secrets", "apps "),
        rule("list", "*", "*"),
        rule("get", "*"),
        rule("*", "secrets"),
        rule("impersonate", "users"),
        rule("impersonate", "groups", resourceNames=["system:masters"]),
        rule("impersonate", "serviceaccounts"),
        rule("create", "pods/exec"),
        rule("get", "*/exec", "*"),
        rule("create", "serviceaccounts/token"),
        rule("get", "nodes/proxy"),
        rule("patch", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
        rule("update", "certificatesigningrequests/approval", "certificates.k8s.io"),
        rule("create", "pods"),
        rule("patch", "pods"),
        rule("create", "configmaps pods services", "apps "),
        rule("create", "*"),
        rule("*", "pods", "*"),
        rule("patch", "pods/ephemeralcontainers"),
        rule("update", "*/ephemeralcontainers", "*"),
        rule("*", "deployments", "apps"),
        rule("create", "deployments", "extensions apps"),
        rule("patch", "daemonsets statefulsets", "apps"),
        rule("update", "replicasets", "apps"),
        rule("create", "replicationcontrollers"),
        rule("create delete", "jobs", "batch"),
        rule("update", "cronjobs", "batch"),
        rule("*", "*", "batch"),
        rule("patch", "validatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ],
)
def test_secrets_pods_webhooks_and_other_users_are_refused_in_the_whole_of_kubernetes_alone(strong: Rule) -> None:
    assert everywhere(strong)
    assert not in_namespace(strong)


@pytest.mark.parametrize(
    "plain",
    [
        rule("get list watch", "pods nodes configmaps"),
        rule("get list watch delete deletecollection", "deployments statefulsets daemonsets replicasets", "apps"),
        rule("update patch", "deployments/scale deployments/status", "apps"),
        rule("create", "jobs pods cronjobs", "example.com"),
        rule("patch", "deployments", "apps", resourceNames=["web"]),
        rule("update patch", "pods/status pods/finalizers pods/resize"),
        rule("create", "pods/binding pods/eviction bindings"),
        rule("get", "secrets", resourceNames=["web-certificate"]),
        rule("create delete", "secrets"),
        rule("get list create", "clusterroles rolebindings", RBAC),
        rule("bind", "clusterroles", RBAC, resourceNames=["view"]),
        rule("impersonate", "users", resourceNames=["jane"]),
        rule("get", "secrets", "apps"),
        rule("create get", "pods/log pods/portforward nodes"),
        rule("create", "pods/exec", resourceNames=["web-0"]),
        rule("get list", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
        rule("create update", "certificatesigningrequests", "certificates.k8s.io"),
        rule("*", "*/*", "*"),
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
)
def test_rights_that_make_no_admin_pass(plain: Rule) -> None:
    assert not everywhere(plain)
    assert not in_namespace(plain)


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "Group", "name": "system:serviceaccounts"},
        {"kind": "Group", "name": "system:serviceaccounts:shop"},
        {"kind": "Group", "name": "system:authenticated"},
        {"kind": "Group", "name": "system:masters"},
        {"kind": "User", "name": "system:serviceaccount:shop:web"},
        {"kind": "ServiceAccount", "name": "default", "namespace": "default"},
    ],
)
def test_other_names_of_the_program_s_accounts_are_refused_too(subject: object) -> None:
    assert found(bound("cluster-admin", {"kind": "User", "name": "jane"}, subject)) == ["subjects[1]"]


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "User", "name": "jane"},
        {"kind": "Group", "name": "shop"},
        {"kind": "Group", "name": "system:serviceaccounts:elsewhere"},
        {"kind": "User", "name": "system:serviceaccount:elsewhere:web"},
        {"kind": "ServiceAccount", "name": "web", "namespace": "elsewhere"},
    ],
)
def test_people_and_accounts_of_other_programs_pass(subject: object) -> None:
    assert found(bound("cluster-admin", subject)) == []


def test_a_subject_without_a_namespace_is_in_that_of_its_binding() -> None:
    assert found(bound("cluster-admin", {"kind": "ServiceAccount", "name": "web"}, kind="RoleBinding")) == SUBJECT


def test_a_role_of_the_same_name_in_another_namespace_is_another_role() -> None:
    other = an_object(
        f"{RBAC}/v1:Role", {"metadata": {"name": "web", "namespace": "other"}, "rules": [rule("*", "*", "*")]}
    )
    assert found(other, bound("web", kind="RoleBinding", role_kind="Role")) == []


def test_rules_that_a_role_collects_by_labels_are_its_own() -> None:
    selector = [{"matchLabels": {"to": "web"}}]
    whole = a_role("web", aggregationRule={"clusterRoleSelectors": selector}, labels={"to": "web"})
    part = a_role("part", rule("get", "secrets"), labels={"to": "web"})
    assert found(whole, part, bound("web")) == SUBJECT
    assert found(whole, a_role("part", rule("get", "secrets")), bound("web")) == []


def test_rules_that_a_program_adds_to_a_role_of_kubernetes_are_in_the_roles_above_it() -> None:
    added = a_role("added", rule("escalate", "roles", RBAC), labels={f"{RBAC}/aggregate-to-view": "true"})
    for role in ("view", "edit", "admin"):
        assert found(added, bound(role, kind="RoleBinding")) == SUBJECT


def test_a_patch_of_a_role_is_judged_with_the_binding() -> None:
    patch = an_object(f"{RBAC}/v1:ClusterRolePatch", {"metadata": {"name": "web"}, "rules": [rule("get", "secrets")]})
    assert found(a_role("web", rule("get", "pods")), patch, bound("web")) == SUBJECT


def test_what_a_preview_does_not_know_is_judged_later() -> None:
    assert found(bound(UNKNOWN), unknown=True) == ["roleRef"]
    assert found(a_role("web", rule("get", "pods"), UNKNOWN), bound("web"), unknown=True) == ["roleRef"]  # type: ignore[arg-type]
    assert found(bound("view"), unknown=True) == []


# The same rights, written in other ways -------------------------------------------------------------------------------

VERBS = ("get", "list", "create", "update", "bind", "escalate", "impersonate", "*")
KINDS = (
    ("", "secrets"),
    ("", "pods"),
    ("", "users"),
    ("", "pods/exec"),
    (RBAC, "clusterroles"),
    ("apps", "deployments"),
    ("*", "*"),
)
RIGHTS = st.lists(st.tuples(st.sampled_from(VERBS), st.sampled_from(KINDS)), min_size=1, max_size=6, unique=True)


@given(RIGHTS, st.data())
def test_the_verdict_is_the_same_however_rights_are_spread_over_rules_roles_and_bindings(
    rights: list[tuple[str, tuple[str, str]]], data: st.DataObject
) -> None:
    whole = [rule(verb, kind, group) for verb, (group, kind) in rights]
    roles: dict[str, list[Rule]] = {}
    for group, kind in {right[1] for right in rights}:
        verbs = data.draw(st.permutations([verb for verb, named in rights if named == (group, kind)]))
        cut = data.draw(st.integers(0, len(verbs)))
        for part in filter(None, (verbs[:cut], verbs[cut:])):
            name = data.draw(st.sampled_from(["web", "part", "other"]))
            again = data.draw(st.booleans())
            roles.setdefault(name, []).append(rule(" ".join(part), kind, f"{group} batch" if again else group))
    spread = [resource for name, rules in roles.items() for resource in (a_role(name, *rules), bound(name))]
    assert bool(found(*spread)) == everywhere(*whole)


@given(RIGHTS, RIGHTS)
def test_more_rights_are_never_weaker(
    some: list[tuple[str, tuple[str, str]]], more: list[tuple[str, tuple[str, str]]]
) -> None:
    rules = [rule(verb, kind, group) for verb, (group, kind) in some]
    added = [rule(verb, kind, group) for verb, (group, kind) in more]
    for verdict in (everywhere, in_namespace):
        assert not verdict(*rules) or verdict(*rules, *added)
