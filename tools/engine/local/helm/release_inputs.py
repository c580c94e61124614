"""Inputs of `kubernetes:helm.sh/v3:Release`: the supported ones, their defaults, and helm's flags for them."""

from collections.abc import Mapping
from typing import Any, Final

from tools.engine.protocol import unsupported
from tools.engine.values import UNKNOWN, PlainMap

RELEASE_TYPE: Final = "kubernetes:helm.sh/v3:Release"
VALUE_FILES: Final = "valueYamlFiles"
TIMEOUT_SECONDS: Final = 300
"""Default of pulumi-kubernetes."""

_DEFAULTS: Final[Mapping[str, Any]] = {
    "allowNullValues": False,
    "atomic": False,
    "chart": "",
    "cleanupOnFail": False,
    "createNamespace": False,
    "dependencyUpdate": False,
    "description": "",
    "devel": False,
    "disableCRDHooks": False,
    "disableOpenapiValidation": False,
    "disableWebhooks": False,
    "forceUpdate": False,
    "keyring": "",
    "lint": False,
    "name": "",
    "namespace": "",
    "postrender": "",
    "recreatePods": False,
    "renderSubchartNotes": False,
    "replace": False,
    "resetValues": False,
    "reuseValues": False,
    "skipAwait": False,
    "skipCrds": False,
    "timeout": 0,
    "values": {},
    "verify": False,
    "version": "",
    "waitForJobs": False,
}
"""Inputs that pulumi-kubernetes fills in, so that a state has all of them."""
_OPTIONAL: Final[Mapping[str, Any]] = {"compat": "", "maxHistory": 0, "repositoryOpts": {}}
"""Inputs that keep the given values. The SDKs add `compat` to every release, and nothing depends on it."""
_REPOSITORY: Final = {"repo", "username", "password", "caFile", "certFile", "keyFile"}
_UNSUPPORTED: Final = {"keyring", "lint", "postrender", "recreatePods", "verify"}
"""Inputs that are refused unless they have their default."""
_WITHOUT_EFFECT: Final = {"compat"}
"""Inputs that the SDK sends but pulumi-kubernetes ignores."""
_TYPES: Final = {bool: "true or false", int: "a whole number", str: "a text", dict: "a map"}


def problems(given: PlainMap) -> list[tuple[str, str]]:
    """Return inputs that are unsupported or of a wrong type, with the reason."""
    known = {**_DEFAULTS, **_OPTIONAL}
    found = []
    for key, value in given.items():
        if value is None or value is UNKNOWN or key in _WITHOUT_EFFECT:
            continue
        if key not in known or (key in _UNSUPPORTED and value != known[key]):
            found.append((key, unsupported("not supported")))
        elif type(value) is not type(known[key]):
            found.append((key, f"got a value of type {type(value).__name__}, must be {_TYPES[type(known[key])]}"))
        elif key == "repositoryOpts" and isinstance(value, dict):
            found += [(f"{key}.{name}", unsupported("not supported")) for name in sorted(value.keys() - _REPOSITORY)]
    if not given.get("chart"):
        found.append(("chart", "must be the name, path or address of a chart"))
    return found


def complete(given: PlainMap, namespace: str) -> PlainMap:
    """Return inputs completed with the defaults of pulumi-kubernetes."""
    inputs = {
        **_DEFAULTS,
        **{key: value for key, value in given.items() if key not in _WITHOUT_EFFECT and value is not None},
    }
    inputs["namespace"] = inputs["namespace"] or namespace
    if "timeout" not in given and inputs["skipAwait"] is False:
        inputs["timeout"] = TIMEOUT_SECONDS
    return inputs


def install_flags(inputs: PlainMap) -> list[str]:
    """Return the flags of `helm install`."""
    switches = {
        "createNamespace": "--create-namespace",
        "disableOpenapiValidation": "--disable-openapi-validation",
        "disableWebhooks": "--no-hooks",
        "replace": "--replace",
        "skipCrds": "--skip-crds",
    }
    return [*_common_flags(inputs), *_switched(inputs, switches)]


def upgrade_flags(inputs: PlainMap) -> list[str]:
    """Return the flags of `helm upgrade`."""
    switches = {
        "cleanupOnFail": "--cleanup-on-fail",
        "disableCRDHooks": "--no-hooks",
        "forceUpdate": "--force",
        "resetValues": "--reset-values",
        "reuseValues": "--reuse-values",
    }
    history = ["--history-max", str(inputs.get("maxHistory") or 0)]  # helm's own default is 10, the provider's none
    return [*_common_flags(inputs), *_switched(inputs, switches), *history]


def uninstall_flags(inputs: PlainMap) -> list[str]:
    """Return the flags of `helm uninstall`. A missing release is not a failure, as a run may be repeated."""
    waits = inputs.get("atomic") or not inputs.get("skipAwait")
    return ["--ignore-not-found", *(["--wait", *_timeout(inputs)] if waits else [])]


def _common_flags(inputs: PlainMap) -> list[str]:
    switches = {
        "atomic": "--atomic",
        "dependencyUpdate": "--dependency-update",
        "renderSubchartNotes": "--render-subchart-notes",
    }
    flags = [*_switched(inputs, switches), *_timeout(inputs)]
    if not inputs.get("skipAwait"):
        flags += ["--wait", *_switched(inputs, {"waitForJobs": "--wait-for-jobs"})]
    if inputs.get("description"):
        flags += ["--description", str(inputs["description"])]
    return flags


def _switched(inputs: PlainMap, flags: Mapping[str, str]) -> list[str]:
    return [flag for key, flag in flags.items() if inputs.get(key)]


def _timeout(inputs: PlainMap) -> list[str]:
    return ["--timeout", f"{inputs.get('timeout') or TIMEOUT_SECONDS}s"]
