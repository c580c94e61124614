"""pulumi-random's passwords, strings, bytes, ids and UUIDs, from the operating system's generator.

Tests compare its answers with recorded ones of pulumi-random. Three things differ: error messages, passwords have no
`bcryptHash`, and an id of 0 bytes is refused.
"""

import base64
import json
import secrets
import string
import uuid
from dataclasses import dataclass

from pulumi.provider.experimental import provider as api

from tools.engine.local.providers.local_provider import LocalProvider, type_of
from tools.engine.values import UNKNOWN, Plain, PlainMap, Properties, mark_secrets, plain_map, properties_of

_SPECIAL = "!@#$%&*()-_=+[]{}<>:?"  # the set of the Terraform provider that pulumi-random wraps
_REQUIRED = {"length", "byteLength"}
_WORDS = {int: "a whole number", bool: "true or false", str: "a text", dict: "a map of texts"}


@dataclass(frozen=True)
class _Kind:
    """Type of a resource.

    Attributes:
        inputs: Types of its inputs.
        outputs: Generated outputs. The resource's id is the first one.
        secret: True if the outputs but the id are secret.
    """

    inputs: dict[str, type]
    outputs: tuple[str, ...]
    secret: bool = False

    @property
    def defaults(self) -> PlainMap:
        """Default values of inputs."""
        switches: PlainMap = {key: True for key, wanted in self.inputs.items() if wanted is bool}
        return switches | {key: 0 for key in self.inputs if key.startswith("min")}


_KEEPERS: dict[str, type] = {"keepers": dict}
_TEXT = _KEEPERS | {
    "length": int, "overrideSpecial": str,
    "special": bool, "upper": bool, "lower": bool, "numeric": bool, "number": bool,
    "minSpecial": int, "minUpper": int, "minLower": int, "minNumeric": int,
}  # fmt: skip
_KINDS = {
    "random:index/randomBytes:RandomBytes": _Kind(_KEEPERS | {"length": int}, ("base64", "hex"), secret=True),
    "random:index/randomId:RandomId": _Kind(
        _KEEPERS | {"byteLength": int, "prefix": str}, ("id", "b64Std", "b64Url", "dec", "hex")
    ),
    "random:index/randomPassword:RandomPassword": _Kind(_TEXT, ("id", "result"), secret=True),
    "random:index/randomString:RandomString": _Kind(_TEXT, ("id", "result")),
    "random:index/randomUuid:RandomUuid": _Kind(_KEEPERS, ("id", "result")),
}


class RandomProvider(LocalProvider):
    """Generates values once. A changed input, such as `keepers`, generates a new one."""

    previews = True

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Refuse unknown types, and inputs from which no value can be generated."""
        token = type_of(request.urn)
        if token not in _KINDS:
            reason = f"type {token} is not supported by the local engine, only {', '.join(sorted(_KINDS))}"
            problem: tuple[str, str] | None = ("", reason)
        else:
            problem = _problem(_KINDS[token], request.new_inputs)
        return api.CheckResponse(request.new_inputs, [api.CheckFailure(*problem)] if problem else [])

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Replace after any change, except an empty `overrideSpecial` that is removed."""
        kind = _KINDS[type_of(request.urn)]
        old, new = _inputs(kind, request.old_state), _inputs(kind, request.new_inputs)
        changed = sorted(key for key in kind.inputs if old.get(key) != new.get(key))
        replaces = [key for key in changed if key in new or old[key] != ""]
        return api.DiffResponse(changes=bool(changed), replaces=replaces, diffs=changed)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Generate the value; in a preview, outputs are unknown."""
        token = type_of(request.urn)
        kind, inputs = _KINDS[token], _inputs(_KINDS[token], request.properties)
        if request.preview:
            made: PlainMap = dict.fromkeys(kind.outputs, UNKNOWN)
            return api.CreateResponse(properties=_outputs(inputs, made, request.properties))
        made = _generate(token, inputs)
        outputs = _outputs(inputs, made, request.properties)
        if kind.secret:
            outputs |= {key: outputs[key].with_secret(True) for key in made if key != "id"}
        return api.CreateResponse(resource_id=str(made[kind.outputs[0]]), properties=outputs)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Keep the value."""
        kind = _KINDS[type_of(request.urn)]
        kept = {key: value for key, value in request.olds.items() if key in kind.outputs}
        return api.UpdateResponse(properties=_outputs(_inputs(kind, request.news), {}, request.news) | kept)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Do nothing: the value only exists in the state."""


def _inputs(kind: _Kind, given: Properties) -> PlainMap:
    """Return the inputs in their types, with defaults. Other properties are left out, as the real provider does."""
    plain = {key: _typed(value, kind.inputs[key]) for key, value in plain_map(given).items() if key in kind.inputs}
    same = {"number": plain.get("numeric", True), "numeric": plain.get("number", True)}  # two names of one input
    return kind.defaults | (same if "numeric" in kind.inputs else {}) | plain


def _typed(value: Plain, wanted: type) -> Plain:
    """Return text for a number or a boolean if text is expected, and a number for its text."""
    if wanted is dict and isinstance(value, dict):
        return {key: _typed(item, str) for key, item in value.items()}
    if wanted is str and isinstance(value, int | float):
        return json.dumps(value)
    return int(value) if wanted is int and isinstance(value, str) and value.isdecimal() else value


def _problem(kind: _Kind, properties: Properties) -> tuple[str, str] | None:
    """Return the input from which no value can be generated, and the reason."""
    given = _inputs(kind, properties)
    for key, wanted in kind.inputs.items():
        value = given.get(key, UNKNOWN)
        least = 1 if key in _REQUIRED else 0
        shown = "a secret" if key in properties and properties[key].contains_secret() else repr(value)
        if key in _REQUIRED and key not in given:
            return key, "is missing; give a whole number of at least 1"
        texts = value.values() if isinstance(value, dict) else ()
        if (value is not UNKNOWN and type(value) is not wanted) or any(isinstance(text, list | dict) for text in texts):
            return key, f"got {shown}, must be {_WORDS[wanted]}"
        if wanted is int and isinstance(value, int) and value < least:
            return key, f"got {shown}, must be a whole number of at least {least}"
    if "numeric" not in kind.inputs or UNKNOWN in given.values():
        return None
    minimums = sum(_number(given, key) for key in given if key.startswith("min"))
    if minimums > _number(given, "length"):
        return "length", f"got {given['length']}, but the minimums add up to {minimums}; raise it, or lower them"
    if given["number"] != given["numeric"]:
        return "number", "differs from numeric, which is its newer name; give numeric alone"
    if not any(given[key] for key in ("special", "upper", "lower", "numeric")):
        return "numeric", "special, upper, lower and numeric are all off; leave one of them on"
    return None


def _outputs(inputs: PlainMap, made: PlainMap, given: Properties) -> Properties:
    return mark_secrets(properties_of(inputs | made), given)


def _number(given: PlainMap, key: str) -> int:
    value = given[key]
    return value if isinstance(value, int) else 0


def _generate(token: str, given: PlainMap) -> PlainMap:
    match token.rpartition(":")[2]:
        case "RandomBytes":
            data = secrets.token_bytes(_number(given, "length"))
            return {"base64": base64.b64encode(data).decode(), "hex": data.hex()}
        case "RandomId":
            data = secrets.token_bytes(_number(given, "byteLength"))
            url = base64.urlsafe_b64encode(data).decode().rstrip("=")
            forms = {
                "b64Std": base64.b64encode(data).decode(),
                "b64Url": url,
                "hex": data.hex(),
                "dec": str(int.from_bytes(data, "big")),
            }
            return {"id": url, **{key: f"{given.get('prefix', '')}{value}" for key, value in forms.items()}}
        case "RandomUuid":
            value = str(uuid.uuid4())
            return {"id": value, "result": value}
        case kind:
            text = _text(given)
            return {"id": text if kind == "RandomString" else "none", "result": text}


def _text(given: PlainMap) -> str:
    sets = {
        "Lower": string.ascii_lowercase,
        "Upper": string.ascii_uppercase,
        "Numeric": string.digits,
        "Special": str(given.get("overrideSpecial") or _SPECIAL),
    }
    allowed = "".join(characters for name, characters in sets.items() if given[name.lower()])
    text = "".join(
        secrets.choice(characters) for name, characters in sets.items() for _ in range(_number(given, f"min{name}"))
    )
    text += "".join(secrets.choice(allowed) for _ in range(_number(given, "length") - len(text)))
    return "".join(secrets.SystemRandom().sample(text, len(text)))
