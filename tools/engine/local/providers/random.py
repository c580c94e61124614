"""pulumi-random's passwords, strings, bytes, ids and UUIDs, from the operating system's generator."""

import base64
import secrets
import string
import uuid

from pulumi.provider.experimental import provider as api

from tools.engine.local.providers.local_provider import LocalProvider, type_of
from tools.engine.values import PlainMap, has_unknown, plain_map, properties_of

_SPECIAL = "!@#$%&*()-_=+[]{}<>:?"  # the set of the Terraform provider that pulumi-random wraps

_INPUTS = {
    "random:index/randomBytes:RandomBytes": {"length"},
    "random:index/randomId:RandomId": {"byteLength", "prefix"},
    "random:index/randomUuid:RandomUuid": set[str](),
}
_TEXT_INPUTS = {
    "length", "special", "upper", "lower", "numeric", "number", "minLower", "minNumeric", "minSpecial", "minUpper",
    "overrideSpecial",
}  # fmt: skip
_INPUTS["random:index/randomPassword:RandomPassword"] = _TEXT_INPUTS
_INPUTS["random:index/randomString:RandomString"] = _TEXT_INPUTS


class RandomProvider(LocalProvider):
    """Generates values once; a changed input, `keepers` among them, makes a new one."""

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Refuse unknown types and inputs."""
        token = type_of(request.urn)
        known = _INPUTS.get(token)
        if known is None:
            reason = f"type {token} is not supported by the local engine, only {', '.join(sorted(_INPUTS))}"
            return api.CheckResponse(inputs=request.new_inputs, failures=[api.CheckFailure("", reason)])
        unknown = sorted(request.new_inputs.keys() - known - {"keepers"})
        failures = [api.CheckFailure(key, "is not supported by the local engine") for key in unknown]
        given = plain_map(request.new_inputs)
        if not has_unknown(given) and not failures and (problem := _problem(given)):
            failures.append(api.CheckFailure(*problem))
        return api.CheckResponse(inputs=request.new_inputs, failures=failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Replace at any change."""
        old, new = plain_map(request.old_state), plain_map(request.new_inputs)
        known = _INPUTS[type_of(request.urn)] | {"keepers"}
        changed = sorted(key for key in known if old.get(key) != new.get(key))
        detailed = {key: api.PropertyDiff(api.PropertyDiffKind.UPDATE_REPLACE, input_diff=True) for key in changed}
        return api.DiffResponse(changes=bool(changed), replaces=changed, detailed_diff=detailed)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Generate the value."""
        if request.preview:
            return api.CreateResponse(properties=request.properties)
        resource_id, outputs = _generate(type_of(request.urn), plain_map(request.properties))
        return api.CreateResponse(resource_id=resource_id, properties={**request.properties, **properties_of(outputs)})

    async def delete(self, request: api.DeleteRequest) -> None:
        """Do nothing: the value exists in the state alone."""


def _problem(given: PlainMap) -> tuple[str, str] | None:
    for key in ("length", "byteLength"):
        if key in given and not (isinstance(value := given[key], int) and value >= 1):
            return key, f"got {given[key]!r}, must be a whole number of at least 1"
    least = sum(_number(given, key) for key in given if key.startswith("min"))
    if "length" in given and least > _number(given, "length"):
        return "length", f"got {given['length']}, but the minimums add up to {least}"
    return None


def _number(given: PlainMap, key: str) -> int:
    value = given.get(key, 0)
    return value if isinstance(value, int) else 0


def _generate(token: str, given: PlainMap) -> tuple[str, PlainMap]:
    match token.rpartition(":")[2]:
        case "RandomBytes":
            data = secrets.token_bytes(_number(given, "length"))
            return "none", {"base64": base64.b64encode(data).decode(), "hex": data.hex()}
        case "RandomId":
            data = secrets.token_bytes(_number(given, "byteLength"))
            prefix = str(given.get("prefix", ""))
            url = base64.urlsafe_b64encode(data).decode().rstrip("=")
            forms = {
                "b64Std": base64.b64encode(data).decode(),
                "b64Url": url,
                "hex": data.hex(),
                "dec": str(int.from_bytes(data, "big")),
            }
            return url, {key: prefix + value for key, value in forms.items()}
        case "RandomUuid":
            value = str(uuid.uuid4())
            return value, {"result": value}
        case kind:
            text = _text(given)
            return text if kind == "RandomString" else "none", {"result": text}


def _text(given: PlainMap) -> str:
    sets = {
        "Lower": ("lower", string.ascii_lowercase),
        "Upper": ("upper", string.ascii_uppercase),
        "Numeric": ("numeric", string.digits),
        "Special": ("special", str(given.get("overrideSpecial", _SPECIAL))),
    }
    every, text = "", ""
    for name, (switch, characters) in sets.items():
        default = given.get("number", True) if switch == "numeric" else True
        if given.get(switch, default):
            every += characters
        text += "".join(secrets.choice(characters) for _ in range(_number(given, f"min{name}")))
    text += "".join(secrets.choice(every) for _ in range(_number(given, "length") - len(text)))
    return "".join(secrets.SystemRandom().sample(text, len(text)))
