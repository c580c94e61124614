"""Credentials by their contents and names."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from soperator_pulumi.policy import ResourceView
from soperator_pulumi.policy.credentials import MARKED_SECRETS, SECRETS_IN_SECRETS, kind_of
from soperator_pulumi.policy.value_tree import written
from tests.unit.policy.views import a_pod, a_resource_of_ours, an_object, paths

PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SEALED = "Ag" + "By3i4OJSWK+PiTySYZZA9rO43cGDEq" * 20 + "=="
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PEM, "a private key"),
        ("-----BEGIN PRIVATE KEY-----", "a private key"),
        ("users: [{user: {client-key-data: LS0t}}]", "credentials of a kubeconfig"),
        ('{"kind": "Config", "users": [{"user": {"client-key-data": "LS0t"}}]}', "credentials of a kubeconfig"),
        ("kind: Config\nusers:\n- user:\n    token: abc", "credentials of a kubeconfig"),
        (f"Bearer {JWT}", "a signed token"),
        (f"ghp_{'a' * 36}", "a token of a forge"),
        (f"glpat-{'b' * 20}", "a token of a forge"),
        ("AKIAIOSFODNN7EXAMPLE", "an access key of a cloud"),
        ("alice:$6$salt$" + "h" * 86 + ":19000::::::", "a hash of a password"),
        ("postgres://me:hunter2@db/x", "a password in an address"),
        ("AuthType=auth/munge\nStoragePass=x", "a password of Slurm"),
        ('{"auths": {"registry.example": {"auth": "bWU6aHVudGVyMg=="}}}', "credentials of a registry"),
        (f"xoxb-{'1' * 24}", "a token of a service"),
        (f"sk-proj-{'a' * 24}", "a token of a service"),
        (f"https://hooks.slack.com/services/T0/B0/{'x' * 24}", "a token of a service"),
        ("curl -sf -u admin:hunter2 https://api.example", "a password in a command"),
        ("curl https://api.example --user 'admin:hunter2'", "a password in a command"),
        ("mysqldump -h db -uroot -phunter2 slurm", "a password in a command"),
        ("sshpass -p hunter2 ssh me@host", "a password in a command"),
        ("me:hunter2@tcp(db:3306)/slurm", "a password in an address"),
        ("machine db.example login me password hunter2", "a password of a login"),
        ("machine db.example\n  login me\n  password hunter2\n", "a password of a login"),
        ("# Postgres\ndb.example:5432:slurm:me:hunter2", "a password of a login"),
    ],
)
def test_a_credential_is_known_by_its_content(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN CERTIFICATE-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKFcZ4bq2dE6NcAZQ0yBLBwXVGQpCq3m2V1rW9o1l2xk alice",
        "alice:*:19000:0:99999:7:::",
        "#StoragePass=",
        "postgres://me:$(PASSWORD)@db/x",
        "me:$(PASSWORD)@tcp(db:3306)/slurm",
        "machine db.example login me password $PASSWORD",
        "the machine db needs a login with a password",
        "db.example:5432:slurm:me:$PASSWORD",
        "root:x:0:0:root:/root:/bin/bash",
        "https://example.org:8443/a@b",
        "AccountingStoragePass=/run/munge.socket",
        "kind: Config\ncontexts: []",
        "$(MUNGE_KEY) $6",
        "registry.example/app@sha256:" + "0" * 64,
    ],
)
def test_what_everyone_may_read_is_none(text: str) -> None:
    assert kind_of(text) is None


def config_map(**data: str) -> ResourceView:
    return an_object("core/v1:ConfigMap", {"data": data})


def test_files_of_a_config_map_are_judged_by_content_and_name() -> None:
    found = paths(SECRETS_IN_SECRETS, config_map(**{"id": PEM, "munge.key": "x", "passwd": "alice:x", "a": "b"}))
    assert found == ["data.id", 'data["munge.key"]']
    assert paths(SECRETS_IN_SECRETS, a_resource_of_ours("ConfigFiles", files={"slurmdbd.conf": "StoragePass=a"})) == [
        'files["slurmdbd.conf"]'
    ]


def test_files_of_a_secret_are_where_credentials_belong_and_are_marked() -> None:
    files = {"slurmdbd.conf": "StoragePass=a"}
    assert paths(SECRETS_IN_SECRETS, a_resource_of_ours("SecretFiles", files=files)) == []
    marked = a_resource_of_ours("SecretFiles", files=files)
    assert paths(MARKED_SECRETS, replace(marked, secrets=frozenset({("files",)}))) == []
    assert paths(MARKED_SECRETS, replace(marked, secrets=frozenset())) == ['files["slurmdbd.conf"]']


def test_the_environment_and_the_command_line_of_a_container_are_judged() -> None:
    env: list[dict[str, Any]] = [
        {"name": "DB_PASSWORD", "value": "x"},
        {"name": "DB_PASSWORD_FILE", "value": "x"},
        {"name": "TOKEN", "value": "/run/secrets/token"},
        {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
        {"name": "OTHER", "value": JWT},
    ]
    pod = a_pod({"name": "a", "env": env, "args": ["--token=abc", "--tokens=3", "--token=$(TOKEN)"], "command": [PEM]})
    at = "spec.containers[0]"
    assert paths(SECRETS_IN_SECRETS, pod) == [
        f"{at}.env[0].value", f"{at}.env[4].value", f"{at}.command[0]", f"{at}.args[0]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["curl", "-u", "admin:$(PASSWORD)", "https://api.example"],
        ["sh", "-c", 'curl -u "admin:${PASSWORD}" https://api.example'],
        ["sh", "-c", "curl -u user:password https://api.example"],
        ["sh", "-c", "curl -u me: https://api.example; date -u +%s:%N"],
        ["mysql", "-uroot", "-p", "slurm"],
        ["sh", "-c", 'mysql -h db -P 3306 -p"$PASSWORD" slurm'],
        ["sh", "-c", "mysql -h db; ps -pid"],
        ["sshpass", "-p", "$(PASSWORD)", "ssh", "me@host"],
    ],
)
def test_a_password_from_elsewhere_or_none_in_a_command_of_a_client_passes(words: list[str]) -> None:
    assert paths(SECRETS_IN_SECRETS, a_pod({"name": "a", "command": words[:1], "args": words[1:]})) == []


def test_a_password_in_a_command_is_found_over_all_of_its_words() -> None:
    pod = a_pod({"name": "a", "command": ["mysql", "-uroot"], "args": ["-phunter2", "slurm"]})
    assert paths(SECRETS_IN_SECRETS, pod) == ["spec.containers[0].args"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ALLOW_EMPTY_PASSWORD", "yes"), ("MYSQL_RANDOM_ROOT_PASSWORD", "1"), ("REQUIRE_TOKEN", "True")),
        *(("ENCRYPTION_KEY", "alias/aws/s3"), ("ENCRYPTION_KEY", "arn:aws:kms:eu-west-1:123456789012:key/ab-12")),
        *(("encryptionKey", "projects/p/locations/l/keyRings/r/cryptoKeys/k"), ("TOKEN_BUDGET", "4096")),
        *(("PASSWORD", "vault:secret/data/db#password"), ("PASSWORD", "op://prod/db/password")),
        *(("apiKey", "ref+vault://secret/db#/key"), ("PASSWORD", "ENC[AES256_GCM,data:a=,iv:b=,tag:c=,type:str]")),
        *(("pad_token_2", "PAD"), ("token_1", "<s>"), ("NUM_TOKENS", "300B"), ("BACKUP_PRIMARY", "db-1")),
    ],
)
def test_a_switch_a_place_in_a_store_and_a_number_of_tokens_are_no_credentials(name: str, value: str) -> None:
    in_pod = a_pod({"name": "a", "env": [{"name": name, "value": value}], "args": [f"--{name}={value}"]})
    assert paths(SECRETS_IN_SECRETS, in_pod, config_map(**{name: value, "a.yaml": f"{name}: {value}\n"})) == []


@pytest.mark.parametrize(
    "name",
    [
        *("DB_PASSWORD_1", "DB_PASSWORD_OLD", "tokenNext", "API_TOKENS", "PASSWORDS", "apiKey2"),
        *("ENCRYPTION_KEY", "JWT_SIGNING_KEY", "HMAC_KEY", "COOKIE_SECRET", "SESSION_SECRET"),
    ],
)
def test_one_of_several_credentials_and_a_key_for_encryption_are_credentials(name: str) -> None:
    pod = a_pod({"name": "a", "env": [{"name": name, "value": "3kd8-fj29"}]})
    assert paths(SECRETS_IN_SECRETS, pod) == ["spec.containers[0].env[0].value"]


@pytest.mark.parametrize(
    ("key", "value", "holds"),
    [
        ("corp.example/db-password", "hunter2hunter2", True),
        ("api-key", "0123456789abcdef", True),
        ("corp.example/settings", "host=db\npassword=hunter2", True),
        ("last-applied-configuration", '{"env":[{"name":"DB_PASSWORD","value":"hunter2"}]}', True),
        ("last-applied-configuration", '{"env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{}}}]}', False),
        ("vault.hashicorp.com/agent-inject-token", "true", False),
        ("vault.hashicorp.com/agent-inject-secret-db-password", "database/creds/app", False),
        ("nginx.ingress.kubernetes.io/auth-secret", "basic-auth", False),
        ("nginx.ingress.kubernetes.io/configuration-snippet", "proxy_set_header X-Token $http_token;", False),
        ("cert-manager.io/private-key-algorithm", "RSA", False),
        ("azure.workload.identity/service-account-token-expiration", "3600", False),
        ("example.com/password", "see the wiki", False),
    ],
)
def test_annotations_of_objects_and_pods_are_judged_by_name_and_as_settings(key: str, value: str, holds: bool) -> None:
    annotated = an_object("core/v1:Service", {"metadata": {"annotations": {key: value}}})
    template = {"metadata": {"annotations": {key: value}}, "spec": {"containers": [{"name": "a"}]}}
    deployment = an_object("apps/v1:Deployment", {"spec": {"template": template}})
    assert len(paths(SECRETS_IN_SECRETS, annotated, deployment)) == (2 if holds else 0)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ({"passwords": ["hunter2", "swordfish"]}, True),
        ({"db": {"users": [{"name": "me", "password": "hunter2"}]}}, True),
        ({"db": {"users": [{"password": "hunter2", "name": "me"}]}}, True),
        ({"script": "cd /a; app --password hunter2"}, True),
        ({"spec": {"args": ["app", "--password", "hunter2"]}}, True),
        ({"a": json.dumps({"b": json.dumps({"password": "hunter2"})})}, True),
        ({"kind": "ConfigMap", "data": {"a.env": "MODE=train\nPASSWORD=hunter2\n"}}, True),
        ({"kind": "ConfigMap", "data": {"slurmdbd.conf": "AuthType=auth/munge\nStoragePass=x"}}, True),
        ({"kind": "Secret", "data": {"a": in_base64("hunter2")}}, True),
        ({"kind": "Secret", "stringData": {"a": "hunter2"}}, True),
        ({"kind": "List", "items": [{"kind": "Secret", "data": {"a": in_base64("hunter2")}}]}, True),
        ({"kind": "Secret", "data": {"a": "no base64!"}}, True),
        ({"kind": "Secret", "metadata": {"name": "db-password"}, "type": "Opaque"}, False),
        ({"kind": "Secret", "data": {"a": ""}, "stringData": {"b": "{{ .b }}", "c": "${C}"}}, False),
        ({"kind": "Secret", "data": {"ca.crt": in_base64(CERTIFICATE)}}, False),
        ({"valuesFrom": [{"kind": "Secret", "name": "db-password"}]}, False),
        ({"kind": "SealedSecret", "spec": {"encryptedData": {"password": SEALED}}}, False),
        ({"kind": "SealedSecret", "spec": {"encryptedData": {"password": "hunter2"}}}, True),
        ({"spec": {"data": [{"secretKey": "user", "remoteRef": {"key": "prod/db"}}]}}, False),
        ({"spec": {"containers": [{"command": ["mysql", "-uroot"], "args": ["-phunter2"]}]}}, True),
        ({"httpHeaders": [{"name": "Authorization", "value": "Basic dXNlcjpwYXNz"}]}, True),
        ({"httpHeaders": [{"name": "Authorization", "value": "Basic $(TOKEN)"}]}, False),
        ({"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "token"}}}]}, False),
        ({"volumeMounts": [{"name": "token", "mountPath": "/run/secrets/token"}]}, False),
        ([{"name": "net", "interface": "net1"}], False),
        ({"pad_token": "<pad>", "max_tokens": 4096, "passwordKey": "password", "secretName": "db"}, False),
    ],
)
def test_the_objects_of_an_annotation_and_of_a_file_are_judged_by_their_meaning(value: object, holds: bool) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps({"was": json.dumps(value)})):
        annotated = an_object("core/v1:Service", {"metadata": {"annotations": {LAST_APPLIED: text}}})
        env = a_pod({"name": "a", "env": [{"name": "CONFIG", "value": text}]})
        found = paths(SECRETS_IN_SECRETS, annotated, config_map(a=text), env)
        assert len(found) == (3 if holds else 0), text


@pytest.mark.parametrize(
    ("manifest", "holds"),
    [
        ("apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData:\n  a: hunter2\n", True),
        (f"kind: ConfigMap\n---\nkind: Secret\ndata: {{a: {in_base64('hunter2')}}}\n", True),
        (f"- kind: Secret\n  data:\n    a: {in_base64('hunter2')}\n", True),
        ("kind: Secret\nstringData:\n  a: '{{ .Values.a }}'\n  b: ${B}\n  c: ''\n", False),
        ("kind: Secret\n{{- if .Values.a }}\nstringData:\n  a: {{ .Values.a | quote }}\n{{- end }}\n", False),
        (f"kind: SealedSecret\nspec:\n  encryptedData:\n    password: {SEALED}\n", False),
        ("kind: ExternalSecret\nspec:\n  data:\n  - secretKey: user\n    remoteRef: {key: prod/db}\n", False),
        ("kind: Secret\nmetadata: {creationTimestamp: 2026-01-01, 2026-01-01: x}\n", False),
        ("kind: Secret\na: &a [b]\nc: *a\n", False),
    ],
)
def test_the_manifest_of_a_secret_in_a_file_is_judged_by_its_values(manifest: str, holds: bool) -> None:
    release = an_object("helm.sh/v3:Release", {"values": {"manifests": manifest}})
    assert len(paths(SECRETS_IN_SECRETS, config_map(a=manifest), release)) == (2 if holds else 0)


@pytest.mark.parametrize("text", ["[" * 900 + "]" * 900, '{"a":' * 50_000, "kind: Secret\n" + "a: |\n  " * 500])
def test_objects_of_any_depth_end_no_judgement(text: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(a=text)) == []


@pytest.mark.parametrize(
    ("key", "value", "holds"),
    [
        ("password", "hunter2", True),
        ("corp.example/db-password", "correct.horse", True),
        ("corp.example/api-token", "s3cr3t-9f8e7d", True),
        ("apiKey2", "3kd8-fj29", True),
        ("owner", "AKIAIOSFODNN7EXAMPLE", True),
        ("ci", f"ghp_{'a' * 36}", True),
        ("corp.example/token", "enabled", False),
        ("corp.example/needs-password", "true", False),
        ("corp.example/max-token", "4096", False),
        ("app.kubernetes.io/component", "token", False),
        ("app.kubernetes.io/name", "password-reset", False),
        ("pod-template-hash", "6d4f8c9b77", False),
        ("sealedsecrets.bitnami.com/sealed-secrets-key", "active", False),
    ],
)
def test_labels_are_judged_as_annotations_are_on_objects_pods_claims_and_jobs(
    key: str, value: str, holds: bool
) -> None:
    for group in ("labels", "annotations"):
        metadata = {"metadata": {group: {key: value}}}
        found = paths(
            SECRETS_IN_SECRETS,
            an_object("core/v1:Namespace", metadata),
            an_object("core/v1:Secret", metadata),
            an_object("core/v1:ConfigMapPatch", metadata),
            an_object("apps/v1:Deployment", {"spec": {"template": {**metadata, "spec": {"containers": []}}}}),
            an_object("apps/v1:StatefulSet", {"spec": {"volumeClaimTemplates": [metadata]}}),
            an_object("batch/v1:CronJob", {"spec": {"jobTemplate": {**metadata, "spec": {"template": metadata}}}}),
            an_object("x.io/v1:Db", {**metadata, "spec": {"podTemplate": metadata}}),
        )
        assert len(found) == (9 if holds else 0), found


def test_annotations_are_judged_by_content() -> None:
    annotated = an_object("core/v1:Service", {"metadata": {"annotations": {"a": JWT, "password": "see the wiki"}}})
    assert paths(SECRETS_IN_SECRETS, annotated) == ["metadata.annotations.a"]


def other(**marks: Any) -> ResourceView:
    props = {"kubeconfig": "kind: Config\ntoken: a", "accessKey": "x", "secretName": "db", "__provider": PEM}
    return ResourceView(type="other:index:Thing", name="it", urn="urn:it", props=props, **marks)


def test_a_plain_credential_in_an_input_is_one_where_marks_are_known() -> None:
    assert paths(MARKED_SECRETS, other(secrets=frozenset())) == ["kubeconfig", "accessKey"]
    assert paths(MARKED_SECRETS, other(secrets=frozenset({("kubeconfig",)}))) == ["accessKey"]
    assert paths(MARKED_SECRETS, other(secrets=frozenset({()}))) == [], "all of it is marked"
    assert paths(MARKED_SECRETS, other()) == [], "nothing is known about marks"


def test_every_value_of_a_secret_is_marked() -> None:
    secret = {"metadata": {"name": "db"}, "stringData": {"a": "b", "c": "d"}}
    judged = an_object("core/v1:Secret", secret, secrets=frozenset({("stringData", "a")}))
    assert paths(MARKED_SECRETS, judged) == ["stringData.c"]


@pytest.mark.parametrize("name", ["PGPASSWORD", "dbPassword", "DB_PASS", "PASSPHRASE", "client_secret", "secretKey"])
def test_a_name_of_a_credential_is_known_in_any_form(name: str) -> None:
    pod = a_pod({"name": "a", "env": [{"name": name, "value": "/bHVudGVy"}]})
    assert paths(SECRETS_IN_SECRETS, pod) == ["spec.containers[0].env[0].value"]


@pytest.mark.parametrize(
    "args",
    [
        ["--password", "hunter2"],
        ["-c", "DB_PASSWORD=hunter2 app"],
        ["-c", "export DB_PASSWORD='hunter2'; app"],
        ["app --token=abc"],
        ["--password=$ecretpass"],
    ],
)
def test_a_credential_in_a_command_line_is_found(args: list[str]) -> None:
    assert len(paths(SECRETS_IN_SECRETS, a_pod({"name": "a", "args": args}))) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["--image-pull-secret=regcred"],
        ["--password", "--quiet"],
        ["--password", "$(PASSWORD)"],
        ["-c", "DB_PASSWORD=$OTHER app"],
        ["-c", 'DB_PASSWORD="$(cat /run/secrets/db)" app'],
        ["--password-file", "hunter2"],
    ],
)
def test_a_reference_in_a_command_line_is_no_credential(args: list[str]) -> None:
    env = [{"name": "TLS_SECRET", "value": "web-tls"}]
    assert paths(SECRETS_IN_SECRETS, a_pod({"name": "a", "args": args, "env": env})) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("unk_token", "UNK"),
            ("pad-token", "PAD"),
            ("eosToken", "</s>"),
            ("MAX_TOKEN", "four"),
            ("num_token", "4096"),
        ),
        *(("token", "<s>"), ("token", "[CLS]"), ("token", "128"), ("token", "300B"), ("train_token", "1.5T")),
    ],
)
def test_a_token_of_a_language_model_s_text_is_no_credential(name: str, value: str) -> None:
    in_words = a_pod(
        {"name": "a", "env": [{"name": name, "value": value}], "args": [f"--{name}={value}", f"--{name}", value]}
    )
    settings = config_map(**{name: value, "a.json": f'{{"{name}": "{value}"}}', "a.yaml": f"{name}: {value}\n"})
    assert paths(SECRETS_IN_SECRETS, in_words, settings) == []


@pytest.mark.parametrize("name", ["HF_TRAIN_TOKEN", "TRAIN_TOKEN", "TWILIO_VIDEO_TOKEN", "AUDIO_TOKEN", "TOTAL_TOKEN"])
@pytest.mark.parametrize("value", ["s3cr3t-9f8e7d6c", "123456789012"])
def test_a_token_of_a_service_for_training_sound_or_pictures_is_a_credential(name: str, value: str) -> None:
    pod = a_pod({"name": "a", "env": [{"name": name, "value": value}]})
    assert paths(SECRETS_IN_SECRETS, pod) == ["spec.containers[0].env[0].value"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("APPTAINER_PWD", "/workspace"), ("SINGULARITY_PWD", "/work2/A"), ("HOST_PWD", "/data"), ("JOB_PWD", "./x")),
        *(("PWD", "/Data"), ("TOKEN", "/token"), ("TOKEN", "@/run/token")),
    ],
)
def test_a_folder_or_file_is_no_credential_in_a_variable_and_an_option(name: str, value: str) -> None:
    option = f"--{name.lower().replace('_', '-')}"
    container = {"env": [{"name": name, "value": value}], "command": ["a", option, value, f"{option}={value}"]}
    assert paths(SECRETS_IN_SECRETS, a_pod({"name": "a", **container})) == []


@pytest.mark.parametrize("words", [["--pwd", "work"], ["--pwd=work"], ["sh", "-c", "apptainer exec --pwd work img"]])
def test_the_working_directory_of_apptainer_is_no_credential(words: list[str]) -> None:
    assert paths(SECRETS_IN_SECRETS, a_pod({"name": "a", "command": ["apptainer", "exec", *words]})) == []


@pytest.mark.parametrize(
    "words", [["--passwd", "hunter2"], ["--passwd=hunter2"], ["--db-pwd", "hunter2"], ["--db-pwd=hunter2"]]
)
def test_an_option_with_a_short_name_of_a_password_is_a_credential(words: list[str]) -> None:
    assert len(paths(SECRETS_IN_SECRETS, a_pod({"name": "a", "command": ["app", *words]}))) == 1


@pytest.mark.parametrize("name", ["unk_token", "max_token"])
def test_a_credential_by_its_content_is_one_under_any_name(name: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(**{name: JWT})) == [f"data.{name}"]


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY"])
def test_a_key_of_a_service_is_a_credential_in_every_variable(name: str) -> None:
    container = {
        "env": [{"name": name, "value": "0123abcd"}],
        "args": [f"environment={name}=0123abcd", f"A=b {name}=cd"],
    }
    at = "spec.containers[0]"
    assert paths(SECRETS_IN_SECRETS, a_pod(container)) == [
        f"{at}.env[0].value", f"{at}.args[0]", f"{at}.args[1]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '[{"value": "hunter2", "name": "DB_PASSWORD"}]',
        "env:\n  - value: hunter2\n    name: DB_PASSWORD\n",
        'echo "$(app --token hunter2)"',
        "echo `app --password hunter2`",
        "helm upgrade a b --set auth.password=hunter2",
        "helm upgrade a b --set-string='replicas=2,auth.password=hunter2,b=c'",
    ],
)
def test_a_credential_is_found_before_its_name_in_a_command_of_a_message_and_in_a_value_of_helm(text: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(a=text)) == ["data.a"]


@pytest.mark.parametrize(
    "text",
    [
        "token: see below\npassword: generated by the chart\n",
        '[{"name": "MODE", "value": "train"}, {"name": "DB_PASSWORD", "valueFrom": {}}]',
        "- name: MODE\n  value: train\n- name: DB_PASSWORD\n  valueFrom: {}\n",
        '{"value": "$(PASSWORD)", "name": "DB_PASSWORD"}',
        "(app --token /run/token)",
        "helm upgrade a b --set auth.password=$PASSWORD --set auth.passwordSecret=db",
        "import os\nself.password=given",
    ],
)
def test_an_explanation_and_a_neighbor_s_value_are_no_credentials(text: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(a=text)) == []


@pytest.mark.parametrize(
    "text",
    [
        'passphrase: "from the river to the sea"',
        'password: "same old horse battery"',
        'password: "use the force, luke"',
        "MARIADB_PASSWORD='see you later alligator' mariadb",
        "MARIADB_PASSWORD=see mariadb --batch",
        "password = set",
        "password: stored  # in the safe",
        "password: |\n  see you later",
        "self.password=given",
    ],
)
def test_a_credential_that_begins_with_a_common_word_is_found(text: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(a=text)) == ["data.a"]


def test_binary_data_is_judged_decoded() -> None:
    data = {"a.pem": base64.b64encode(PEM.encode()).decode(), "b": "no base64"}
    assert paths(SECRETS_IN_SECRETS, an_object("core/v1:ConfigMap", {"binaryData": data})) == ['binaryData["a.pem"]']


@pytest.mark.parametrize(
    ("type_", "spec", "found"),
    [
        ("bitnami.com/v1alpha1:SealedSecret", {"encryptedData": {"password": SEALED}}, []),
        ("bitnami.com/v1alpha1:SealedSecret", {"encryptedData": {"password": "x"}}, ["spec.encryptedData.password"]),
        ("external-secrets.io/v1:ExternalSecret", {"data": [{"secretKey": "user", "remoteRef": {"key": "a"}}]}, []),
        ("external-secrets.io/v1:ExternalSecret", {"target": {"template": {"data": {"password": "{{ .p }}"}}}}, []),
        (
            "external-secrets.io/v1:ExternalSecret",
            {"target": {"template": {"data": {"password": "{{ .p }}-hunter2"}}}},
            ["spec.target.template.data.password"],
        ),
        ("x.io/v1:Db", {"secretName": "db", "secretKey": "root"}, []),
        ("x.io/v1:Store", {"secretName": "db", "accessKey": "AKIA", "secretKey": "x"}, ["accessKey", "secretKey"]),
        ("x.io/v1:Store", {"secretKey": "x"}, ["spec.secretKey"]),
        ("x.io/v1:App", {"extra": [{"kind": "Secret", "stringData": {"a": "x1"}}]}, ["spec.extra[0].stringData.a"]),
    ],
)
def test_values_that_are_encrypted_or_name_a_secret_pass_in_custom_resources(
    type_: str, spec: object, found: list[str]
) -> None:
    given = paths(SECRETS_IN_SECRETS, an_object(type_, {"spec": spec}))
    assert [path.endswith(end) for path, end in zip(given, found, strict=True)] == [True] * len(found)


def test_custom_resources_charts_and_patches_are_judged() -> None:
    custom = an_object("x.io/v1:Db", {"spec": {"password": "hunter2", "key": PEM, "passwordSecret": {"name": "db"}}})
    assert paths(SECRETS_IN_SECRETS, custom) == ["spec.password", "spec.key"]
    values = {"auth": {"password": "hunter2"}}
    path = ("values", "auth", "password")
    assert paths(SECRETS_IN_SECRETS, an_object("helm.sh/v3:Release", {"values": values})) == [written(path)]
    marked = an_object("helm.sh/v3:Release", {"values": values}, secrets=frozenset({path}))
    assert paths(SECRETS_IN_SECRETS, marked) == []
    assert paths(SECRETS_IN_SECRETS, an_object("core/v1:ConfigMapPatch", {"data": {"a": PEM}})) == ["data.a"]
    patch = an_object("core/v1:SecretPatch", {"stringData": {"a": "b"}}, secrets=frozenset())
    assert paths(MARKED_SECRETS, patch) == ["stringData.a"]


@pytest.mark.parametrize(
    "line",
    ["kind: Config\n", "\n", "token: ", "a+b://", "curl -u a ", "mysql x ", "machine a login ", "a:a", "a:5432:b:c:"],
)
def test_a_long_text_is_searched_in_linear_time(line: str) -> None:
    assert kind_of(line * 100_000) is None


@pytest.mark.parametrize(
    "text",
    [
        "user = me\npassword = hunter2\n",
        "DB_PASSWORD='hunter2'",
        "export API_TOKEN=abc",
        "database:\n  password: hunter2\n",
        '{"user": "me", "password": "hunter2"}',
        "spring.datasource.password=hunter2",
    ],
)
def test_a_credential_in_a_file_of_settings_is_found(text: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(settings=text)) == ["data.settings"]


@pytest.mark.parametrize(
    "text",
    [
        "password: ${DB_PASSWORD}\n",
        "password: {{ .Values.password }}\n",
        "password_file = /run/secrets/db",
        "password = /run/secrets/db",
        "token: null",
        "passwd: files sss\nshadow: files",
        "PasswordAuthentication no",
        "# a password = here would be wrong",
        "password required pam_unix.so",
    ],
)
def test_a_file_of_settings_without_a_credential_passes(text: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(settings=text)) == []


def places_with(text: str) -> list[list[str]]:
    """Return what is found in a text as a file, as a variable's value, as a script, and as a value of a chart."""
    container = {"name": "a", "env": [{"name": "CONFIG", "value": text}]}
    resources = (
        config_map(settings=text),
        a_pod(container),
        a_pod({"name": "a", "command": ["run", "-c", text]}),
        an_object("helm.sh/v3:Release", {"values": {"script": f"{text}\n"}}),
    )
    return [paths(SECRETS_IN_SECRETS, resource) for resource in resources]


@pytest.mark.parametrize(
    "text",
    [
        "args:\n  - --password=hunter2",
        'args:\n  - "--password=hunter2"',
        'args: ["--password=hunter2"]',
        'args: ["--password", "hunter2"]',
        "args:\n- --password\n- hunter2\n",
        "users:\n- - password: hunter2",
        "password: |-\n  hunter2\n",
        "{name: PASSWORD, value: hunter2}",
        "- name: PASSWORD\n  value: hunter2",
        '{"args": ["--password=hunter2"]}',
        '{"args": ["--x", "--password=hunter2"]}',
        '{"args": ["--password", "hunter2"]}',
        '{"args": [\n  "--password",\n  "hunter2"\n]}',
        '{"args":["--password","hunter2"]}',
        '{"a":{"password":"hunter2"}}',
        '[{"password": "hunter2"}]',
        '{"users": [{"password": "hunter2"}]}',
        "<db>\n  <password>hunter2</password>\n</db>",
        "<property>\n  <name>db.password</name>\n  <value>hunter2</value>\n</property>",
        "{users: [{password: hunter2}]}",
        '["x", {"password": "hunter2"}]',
        '{"env":[{"name":"PASSWORD","value":"hunter2"}]}',
        '{"env": [{"name": "PASSWORD", "value": "hunter2"}]}',
        r'config: "{\"password\":\"hunter2\"}"',
        "#!/bin/sh\nmysql --password hunter2 db\n",
        "#!/bin/sh\nmysql --password=hunter2 db\n",
        "mysql \\\n  --password \\\n  hunter2",
        "mysql --user      me \\\n  --password  hunter2 \\\n  db",
        "mysql --password 'hunter2' db",
        "echo start; mysql --password hunter2 db",
        "DB_PASSWORD=hunter2 app",
        "x=${DB_PASSWORD:-hunter2}",
        "host=db password=hunter2",
        "import os\ntoken = 'abc(def'",
        "import os\nrun(token='hunter2')",
        "c = {'password': 'os.environ'}",
        "export DB_PASSWORD=hunter2\npython - <<E\nimport os\nE",
        "password = /bHVudGVyMg",
        "password: hunter2@example",
        "password = @bc123",
    ],
)
def test_a_text_with_a_credential_is_refused_in_every_place(text: str) -> None:
    assert all(places_with(text))


@pytest.mark.parametrize(
    "text",
    [
        "import os\ntoken = os.environ['TOKEN']\nrun(token)",
        "import os; token = os.environ['T']; run(token)",
        "import os; token=os.environ['T']; run(token)",
        "import os; c = {'password': os.environ['P']}",
        "c = {'password': os.environ['P']}",
        "def f(\n    token: str,\n):\n    pass",
        "def f(x, token: str | None = None, password=None):\n    pass",
        "def f(\n    token: Optional[str] = None,\n    *, password: bytes\n): pass",
        "import a\nclient = a.Client(\n    token=token,\n    password=settings.password,\n)",
        "import a\nclient = a.Client(url, token=tok)",
        'import a\nheaders = {"token": tok, "password": secret}',
        "from a import b\ntoken = b.read()\npassword = getpass()",
        'import a\ntoken = f"{a.x}"\npassword = f"{token}-a"',
        "import a\ntoken = (a.x or a.y)\npassword = a.x if a else b",
        "p.add_argument('--token', help='the token')\np.add_argument('--password', default=None)",
        "import click\n@click.option('--token', 'token')\ndef f(token): pass",
        "import a\na.run(['x', '--token', token])",
        "const token = process.env.TOKEN;\nf({token: token, password: process.env.P})",
        "const x = 1;\nf({\n  password: await read(),\n  token: new Token(),\n})",
        "print('password=%s' % p, 'token: %(t)s')",
        "curl -s $U | jq '{token: .access_token}'",
        "jq -n --arg t \"$T\" '{token: $t, password: env.P}'",
        "awk -F= '{token=substr($2,1)} END{print token}' f",
        "awk '{\n  token = substr($0, 1)\n  print token\n}' f",
        'set -e\ntoken="$(cat /run/t)"\ncurl -H x',
        "password=$1\n",
        "token=${TOKEN:-}\nx",
        "token=${TOKEN:-$OTHER}\nx",
        ': "${HF_TOKEN:?set HF_TOKEN first}"',
        "use=${ENABLE_TOKEN:-false}",
        "x; token=\\$P",
        "printf 'password=%s\\n' \"$P\" > f",
        "case $1 in --token=*) token=${1#*=};; --token) token=$2;; esac",
        "x --token @/run/x",
        "x --token @token.txt",
        "x --token /token",
        "x --token /run/$POD/token",
        "x --token ../token",
        "x --password <file u",
        'x --token "$T"',
        "x --token `cat f`",
        "x --token '${T}'",
        "x --password --force",
        "psql --no-password --ask-password db",
        "[ $# = 1 ] || { echo 'usage: x --token TOKEN'; exit 2; }",
        "echo use --password TEXT to set it",
        "echo 'the option --token comes first'",
        "# The option --password sets the password\nx",
        "cat <<E\n  --token TOKEN   a token\n  --password      Text to log in with\n  --token string  a token\nE",
        "cat <<E\nWithout --token and --password it fails, as --token is needed\nE",
        "password: YOUR_PASSWORD\ntoken: <token>",
        "etcd --initial-cluster-token etcd-1 --initial-cluster-token=etcd-1",
        "permissions:\n  id-token: write",
        '<a accesskey="h" href="index.html">a</a>',
        "<password>${env.PASSWORD}</password><token/><token></token>",
        "<property><name>db.password.file</name><value>/run/secrets/db</value></property>",
    ],
)
def test_code_and_explanations_without_a_credential_pass_in_every_place(text: str) -> None:
    assert places_with(text) == [[], [], [], []]


@pytest.mark.parametrize(
    "line",
    ["<password>", "<name>a", "--password ", "- ", "--a \\\n", "name: a ", "${a:-", "echo ", "x --token  ", '"--a",  '],
)
def test_a_long_script_is_searched_in_linear_time(line: str) -> None:
    assert places_with(line * 20_000) == [[], [], [], []]


def test_what_the_program_marks_as_secret_belongs_in_no_config_map_and_no_variable() -> None:
    marked = an_object("core/v1:ConfigMap", {"data": {"a": "x", "b": "y"}}, secrets=frozenset({("data", "a")}))
    assert paths(SECRETS_IN_SECRETS, marked) == ["data.a"]
    env = ("spec", "containers", 0, "env", 0, "value")
    pod = replace(a_pod({"name": "a", "env": [{"name": "A", "value": "x"}]}), secrets=frozenset({env}))
    assert paths(SECRETS_IN_SECRETS, pod) == [written(env)]


def test_a_plain_copy_of_a_marked_value_is_one() -> None:
    props = {"password": "correct horse", "note": "correct horse", "other": "horse"}
    command = ResourceView(
        type="other:index:Thing", name="it", urn="urn:it", props=props, secrets=frozenset({("password",)})
    )
    assert paths(MARKED_SECRETS, command) == ["note"]
    secret = {"metadata": {"annotations": {"note": "correct horse"}}, "stringData": {"a": "correct horse"}}
    judged = an_object("core/v1:Secret", secret, secrets=frozenset({("stringData", "a")}))
    assert paths(MARKED_SECRETS, judged) == ["metadata.annotations.note"]


def generated(kind: str, name: str) -> ResourceView:
    token = f"random:index/{kind[0].lower()}{kind[1:]}:{kind}"
    return ResourceView(type=token, name=name, urn=f"urn:{name}", props={"length": 32}, secrets=frozenset())


@pytest.mark.parametrize(
    ("kind", "name"), [("RandomBytes", "suffix"), ("RandomString", "db-password"), ("RandomUuid", "api-key")]
)
def test_a_credential_that_is_the_id_of_its_resource_is_found(kind: str, name: str) -> None:
    assert paths(MARKED_SECRETS, generated(kind, name)) == ["id"]


@pytest.mark.parametrize(
    ("kind", "name"), [("RandomPassword", "db-password"), ("RandomString", "suffix"), ("RandomPet", "monkey")]
)
def test_other_generated_values_are_no_credentials_in_ids(kind: str, name: str) -> None:
    assert paths(MARKED_SECRETS, generated(kind, name)) == []


@pytest.mark.parametrize(
    ("props", "path"),
    [
        ({"spec": {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}}, "spec.env[0].value"),
        ({"spec": {"server": {"extraArgs": ["--token", "hunter2"]}}}, "spec.server.extraArgs[1]"),
        ({"stringData": {"password": "hunter2"}}, "stringData.password"),
        ({"repositoryOpts": {"password": "hunter2"}}, "repositoryOpts.password"),
    ],
)
def test_all_parts_of_a_custom_resource_and_of_a_chart_are_judged(props: dict[str, Any], path: str) -> None:
    for kind in ("x.io/v1:Db", "helm.sh/v3:Release"):
        assert paths(SECRETS_IN_SECRETS, an_object(kind, props)) == [path]


@pytest.mark.parametrize("line", ["password =\n", "a: ", "{", "password" * 20, "export "])
def test_a_long_file_of_settings_is_searched_in_linear_time(line: str) -> None:
    assert paths(SECRETS_IN_SECRETS, config_map(a=line * 20_000)) == []


HEADER = {"httpHeaders": [{"name": "Authorization", "value": "Basic dXNlcjpwYXNz"}]}


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"livenessProbe": {"exec": {"command": ["ping", "--password=abc"]}}}, "livenessProbe.exec.command[1]"),
        (
            {"lifecycle": {"preStop": {"exec": {"command": ["x", "--token", "abc"]}}}},
            "lifecycle.preStop.exec.command[2]",
        ),
        ({"readinessProbe": {"httpGet": HEADER}}, "readinessProbe.httpGet.httpHeaders[0].value"),
        ({"command": ["curl", "-H", "Authorization: Bearer 0123456789"]}, "command[2]"),
    ],
)
def test_probes_hooks_and_headers_of_a_container_are_judged(container: dict[str, Any], path: str) -> None:
    assert paths(SECRETS_IN_SECRETS, a_pod({"name": "a", **container})) == [f"spec.containers[0].{path}"]


def test_a_header_whose_token_is_a_variable_is_no_credential() -> None:
    words = ["curl -H 'Authorization: Bearer $TOKEN_OF_THE_POD'", "curl -H 'Authorization: Bearer ${TOKEN_OF_IT}'"]
    assert paths(SECRETS_IN_SECRETS, a_pod({"args": words})) == []


def test_annotations_of_pods_are_judged() -> None:
    template = {"metadata": {"annotations": {"token": JWT}}, "spec": {"containers": [{"name": "a"}]}}
    deployment = an_object("apps/v1:Deployment", {"spec": {"template": template}})
    assert paths(SECRETS_IN_SECRETS, deployment) == ["spec.template.metadata.annotations.token"]


def test_settings_of_a_storage_driver_are_judged() -> None:
    volume = {"csi": {"volumeAttributes": {"password": "abc"}}, "mountOptions": ["vers=3.0", "password=abc"]}
    found = paths(SECRETS_IN_SECRETS, an_object("core/v1:PersistentVolume", {"spec": volume}))
    assert sorted(found) == ["spec.csi.volumeAttributes.password", "spec.mountOptions[1]"]
    storage = an_object("storage.k8s.io/v1:StorageClass", {"parameters": {"secretKey": "abc"}})
    assert paths(SECRETS_IN_SECRETS, storage) == ["parameters.secretKey"]


@pytest.mark.parametrize(
    "script",
    [
        'import os\ntoken = os.environ["HF_TOKEN"]\nlogin(token=token_of(args))',
        "api_key = getenv('WANDB_API_KEY')",
        "class A:\n    password: str\n    token: bytes",
        "token = args.token",
        "login(token=os.environ['HF_TOKEN'], x=1)",
    ],
)
def test_a_program_that_reads_a_credential_from_elsewhere_holds_none(script: str) -> None:
    assert not paths(SECRETS_IN_SECRETS, a_pod({"name": "a", "command": ["python", "-c", script]}))
    assert not paths(SECRETS_IN_SECRETS, an_object("core/v1:ConfigMap", {"data": {"train.py": script}}))
