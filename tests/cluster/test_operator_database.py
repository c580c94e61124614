"""Resources for mariadb-operator, by the definitions that the operator installs for them."""

from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
import yaml

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import deploy
from tests.cluster import chart_folder
from tests.rendered.cluster.clusters import a_spec, provided

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

OPERATOR = chart_folder.Module(
    "github.com/mariadb-operator/mariadb-operator",
    "v0.38.1",
    "h1:UQF7cNxMTSCmxuHIhhnMGsnc5e7S9iT7w7h8zmSUu1o=",
    "config/crd/bases",
    (),
)
"""The newest release that the Go module proxy has."""

KINDS = ("MariaDB", "Database", "User", "Grant")


def closed(schema: Any) -> Any:
    """Return a schema that refuses unknown fields, which Kubernetes drops silently."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    inner = {
        key: {name: closed(item) for name, item in value.items()} if key == "properties" else closed(value)
        for key, value in schema.items()
    }
    is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    return inner if is_open or "properties" not in schema else {**inner, "additionalProperties": False}


@pytest.fixture(scope="module")
def schemas() -> Mapping[str, Any]:
    """The schema of each kind's spec."""
    folder = chart_folder.fetched(OPERATOR) / OPERATOR.charts
    definitions = [yaml.safe_load(file.read_text())["spec"] for file in folder.glob("*.yaml")]
    return {
        definition["names"]["kind"]: closed(
            definition["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        )
        for definition in definitions
    }


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_operator_takes_every_field(schemas: Mapping[str, Any], replicas: int) -> None:
    database = {"mariadb_operator": {"size_gib": 10, "replicas": replicas, "storage_class": "fast-rwo"}}
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(accounting={"database": database})), outputs=provided)
    made = {
        resource.inputs["kind"]: resource.inputs["spec"]
        for resource in deployment.recorded
        if resource.inputs.get("apiVersion") == "k8s.mariadb.com/v1alpha1"
    }

    assert {*made} == {*KINDS}
    for kind, spec in made.items():
        jsonschema.validate(spec, schemas[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_the_operator_does_not_have_is_found(schemas: Mapping[str, Any], kind: str) -> None:
    with pytest.raises(jsonschema.ValidationError, match="noSuchField"):
        jsonschema.validate({"noSuchField": 1}, schemas[kind])
