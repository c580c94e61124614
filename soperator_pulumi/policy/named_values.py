"""Credentials by their names: values of variables, and those that files of settings, commands, and scripts hold."""

import re
from collections.abc import Sequence
from itertools import chain

_NAME = re.compile(
    r"(?i)((password|passphrase)s?"
    r"|(^|(?<!initial.cluster)[._-])(pass|token|(api|access|auth|bearer|refresh)[._-]tokens"
    r"|(client|cookie|consumer|hmac|session|shared|signing)[._-]?secret"
    r"|secret[._-]?key|(account|api|access|private|munge|storage|encryption|hmac)[._-]?keys?|signing[._-]key)"
    r"|[._-]passwd|\w[._-]pwd)$"
)
"""Names of values that are credentials. A file `passwd` holds only names of users, a `secret` names a Secret,
`--pwd` is a working directory, and etcd's `--initial-cluster-token` a name."""

_ONE_OF_SEVERAL = re.compile(
    r"(?i)(?<=[a-z])[._-]?(\d{1,2}|(?<=[._-])(old|new|next|prev|previous|primary|secondary|backup))$"
)
"""End of the name of one of several credentials: `DB_PASSWORD_2`, `token_old`."""

_SWITCH = re.compile(r"(?i)true|false|yes|no|on|off|none|null|[01]")
"""Values of switches about credentials: `ALLOW_EMPTY_PASSWORD=yes`."""

_OF_TEXT = re.compile(
    r"(?i)(^|[._-])(bos|cls|end|eos|image|mask|max|min|n|num|pad|per|sep|special|start|stop|unk)[._-]token$"
)
"""Name of a language model's text token, or of a number of such tokens."""

_TEXT_TOKEN = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\d{1,7}(\.\d{1,3})?[kKMBT]?")
"""Text token of a language model, as tokenizers write it, `<s>` or `[PAD]`, or a number of tokens, `4096` or `300B`."""

_REFERENCE = re.compile(
    r"\$\(\w+\)|\$\{\w+\}|@?(/[\w.-]+){2,}/?|@?/[a-z][a-z._-]*\d?/?"
    r"|arn:[\w-]+:[\w-]+:[\w:/.-]+|alias(/[\w.-]+)+|projects(/[\w.-]+){3,}"
    r"|\{\{[^{}]*\}\}|vault:[\w./-]+#[\w.-]+|op://[\w./ -]+|ref\+[a-z]+://[\w./#?&=-]+|ENC\[AES256_GCM,[^\]]*\]"
)
"""A variable, a template, the path of a file, the name of a key that a cloud keeps, the place of a value in a store
(of Bank-Vaults, 1Password, and vals), or a value that SOPS encrypted. A single `/` with capitals may be the start of a
text in base64."""

_QUOTED_NAME = r"""(?:\\{0,3}["'])?(?P<name>[A-Za-z_][\w.-]{0,60})(?:\\{0,3}["'])?"""
_QUOTED_VALUE = r"""(?!\[)(?P<quote>(?:\\{0,3}["'])?)(?P<value>[^\s"',;{}][^\s"',;}]*)"""
_WORD = r"""(?P<quote>["']?)(?P<value>[^\s"';&|]+)"""

_SETTING = re.compile(
    rf"(?:^|[,;\[]|(?<!\$){{)[^\S\n]*(?:- +){{0,3}}(?:export +)?{_QUOTED_NAME}[^\S\n]*[:=][^\S\n]*"
    rf"(?:[|>][+-]?\n[^\S\n]*)?{_QUOTED_VALUE}",
    re.MULTILINE,
)
"""A line of a file of settings: `password = abc`, `"password": "abc"`, `- password: abc`, or `password: |` above it."""

_VARIABLE = re.compile(
    r"""\bname(?:\\{0,3}["'])?[^\S\n]*:[^\S\n]*"""
    rf"""{_QUOTED_NAME}(?:,\s{{0,60}}|\s{{1,60}})(?:\\{{0,3}}["'])?value(?:\\{{0,3}}["'])?[^\S\n]*:[^\S\n]*{_QUOTED_VALUE}"""
)
"""A variable of a container in a file: `name: PASSWORD`, and `value: abc` next to it or in the next line."""

_VALUE_FIRST = re.compile(
    rf"""\bvalue(?:\\{{0,3}}["'])?[^\S\n]*:[^\S\n]*{_QUOTED_VALUE}(?:\\{{0,3}}["'])?(?:,\s{{0,60}}|\s{{1,60}})"""
    rf"""(?:\\{{0,3}}["'])?name(?:\\{{0,3}}["'])?[^\S\n]*:[^\S\n]*{_QUOTED_NAME}"""
)
"""The same with the value before the name."""

_DEFAULT = re.compile(r"""\$\{(?P<name>[A-Za-z_]\w*):?[-=](?P<quote>["']?)(?P<value>[^\s"',;{}]+)""")
"""Default of a shell's variable: `${PASSWORD:-abc}`."""

_ASSIGNMENT = re.compile(rf"""(?:^|(?<=[\s;&|"'(=]))(?P<name>-{{0,2}}[A-Za-z_][\w-]*)=(?={_WORD})""")
"""An option with its value, or a variable of a shell; both in `--environment=TOKEN=abc`."""

_SET_BY_HELM = re.compile(rf"""--set(?:-string|-literal)?[\s=]["']?(?P<name>[A-Za-z_][\w.-]*)=(?={_WORD})""")
"""The first value of a chart in a command: `--set auth.password=abc`. Further ones follow commas, as settings do."""

_ELEMENT = re.compile(r"<(?P<name>[A-Za-z_][\w.-]{0,60})>\s{0,60}(?P<quote>)(?P<value>[^\s<]{1,4096})\s{0,60}</")
"""An element of XML: `<password>abc</password>`."""

_PROPERTY = re.compile(
    r"<name>\s{0,60}(?P<name>[\w.-]{1,120})\s{0,60}</name>\s{0,60}<value>\s{0,60}(?P<quote>)(?P<value>[^\s<]{1,4096})"
)
"""A property in XML, as Hadoop's: `<name>db.password</name><value>abc</value>`."""

_SETTINGS = (_SETTING, _VARIABLE, _VALUE_FIRST, _DEFAULT, _ASSIGNMENT, _SET_BY_HELM, _ELEMENT, _PROPERTY)

_OPTION_IN_SCRIPT = re.compile(
    r"""(?:^|(?<=[\s"'\[]))(?P<name>--(?!(?:no|ask|prompt)-)[A-Za-z][\w-]*)"""
    r"""(?:[^\S\n]|[^\S\n]{2,60}(?=\S+[^\S\n]*\\?$)|[^\S\n]*\\\n\s{0,60}|["'],\s{0,60}(?=["'])|["']?\n[^\S\n]*- +)"""
    r"""(?=(?P<quote>["']?)(?P<value>[^\s"';&|\\-][^\s"';&|]*))""",
    re.MULTILINE,
)
"""An option with its value as the next word or item of a list. A table of options has wider gaps, and a text after."""

_OPTION = re.compile(r"--?[\w-]+")

_SPOKEN = re.compile(r"^[^\S\n]*(?:#|//).*|\b(?:echo|printf)\b(?:(?!\$\()[^\n;|&`])*", re.MULTILINE)
"""Comments and messages of a script, which explain options, up to a command in the message."""

_NO_VALUE = re.compile(
    r"(?i)true|false|yes|no|on|off|null|nil|none|undefined|required|optional|sufficient|bearer|basic|read|write|str|bool|string|x+|\W+|."
    r"|(en|dis)abled|(in)?active|allowed|denied|managed"
    r"|[<{$*|>~`].*|\\+\$.*|%[dqrsv](\W.*)?|%\(.*|@-|@[\w.~-]*/.*|@[\w-]+\.\w{1,5}|\.{1,2}/.*|/[\w./-]*\$.*"
)
"""Words, templates, and files that stand in place of a password."""

_SENTENCE = re.compile(r"(?i)(ask|from|generated|given|same|see|set|stored|taken|use)[^\S\n]+\w")
"""Start of an explanation in place of a password: `token: see below`."""

_ATTRIBUTE = re.compile(r"(self|this)\.")
"""Start of a name that no shell sets: `self.password=given`."""

_PLACEHOLDER = re.compile(
    r"[A-Z][A-Z_-]{0,20}|a|an|and|are|argument|as|at|by|can|cannot|flag|for|from|has|if|in|instead|is|it|must|needs|not|of"
    r"|option|or|should|string|text|the|to|value|was|will|with|without"
)
"""Words after an option in an explanation: `--token TOKEN`, `--token is missing`."""

_CODE = re.compile(
    r"[\w.]*[\[()].*|\.[A-Za-z_].*|(args?|cfg|config|ctx|env|opts|options|os|process|self|settings|this)\.\w.*"
    r"|&?(str|bytes|string|String|SecretStr|Any|any|Optional|Option)\b\W.*|&?(str|bytes|string|String|SecretStr|Any|any)"
    r"|await|new|not|lambda|function"
)
"""Start of an expression or type in a program, without quotes: `os.environ[...]`, `.access_token`, `str`."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.\w+)*")

_PROGRAM = re.compile(
    r"(?:^|;)[^\S\n]*(?:import [\w.]+|from [\w.]+ import |def \w+\(|class \w+[(:]|(?:const|var) \w+ ?=|func \w*\()"
    r"|\b(?:os\.environ|sys\.argv|process\.env|require\(|print\(|console\.log)",
    re.MULTILINE,
)
"""Mark of a program in a language whose texts have quotes, so that a word without quotes is a variable."""


def names_credential(name: str) -> bool:
    """Return True if a value of this name is a credential: `DB_PASSWORD`, `accessKey`."""
    return bool(_NAME.search(_separated(name)))


def _separated(name: str) -> str:
    """Return a name with `_` between the words of camelCase, as that of a single one: `eos_Token` for `eosToken2`."""
    return _ONE_OF_SEVERAL.sub("", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))


def kind_by_name(name: str, value: str) -> str | None:
    """Return the kind of credential that a name suggests; None for paths and references to variables."""
    is_literal = bool(value.strip()) and not _REFERENCE.fullmatch(value) and not _SWITCH.fullmatch(value.strip())
    is_credential = (
        is_literal and names_credential(name) and not _is_of_text(name, value) and not _is_folder(name, value)
    )
    return "a value whose name is that of a credential" if is_credential else None


def _is_of_text(name: str, value: str) -> bool:
    """Return True for a text token of a language model: `pad_token: PAD`, `token: <s>`, `num_token: 4096`."""
    is_named = _OF_TEXT.search(_separated(name))
    return _separated(name).lower().endswith("token") and bool(is_named or _TEXT_TOKEN.fullmatch(value.strip()))


def _is_folder(name: str, value: str) -> bool:
    """Return True for a working directory: `APPTAINER_PWD=/workspace`."""
    return name.lower().endswith("pwd") and value.startswith(("/", "./", "~/"))


def kind_in_text(text: str) -> str | None:
    """Return the kind of credential that a file, script, or program sets; None if it only refers to credentials."""
    is_program = bool(_PROGRAM.search(text))
    settings = (match for pattern in _SETTINGS for match in pattern.finditer(text))
    options = (match for match in _OPTION_IN_SCRIPT.finditer(_SPOKEN.sub("", text)) if not _is_explained(match))
    for match in chain(settings, options):
        if (kind := kind_by_name(match["name"], match["value"])) and not _stands_in(match, is_program=is_program):
            return kind
    return None


def kind_of_pair(name: str, text: str) -> str | None:
    """Return the kind of credential that a name gives a text of any form, such as that of an annotation."""
    return kind_in_text(f'{name}: "{text}"') if names_credential(name) else None


def _is_explained(option: re.Match[str]) -> bool:
    """Return True if an option stands in a text about it: `--token TOKEN`, `--token is missing`."""
    word = option["value"].rstrip(".:,)]")
    return bool(_PLACEHOLDER.fullmatch(word)) or names_credential(word)


def stands_in(value: str) -> bool:
    """Return True for a text in place of a credential: none, a word, a template, or a reference."""
    return not value or bool(_REFERENCE.fullmatch(value) or _NO_VALUE.fullmatch(value))


def _stands_in(match: re.Match[str], *, is_program: bool) -> bool:
    """Return True if the value is a word, template, placeholder, or expression in place of a credential."""
    value = match["value"].rstrip("),]:")
    if stands_in(value):
        return True
    if _is_name(value) and value.isupper():
        return True
    return not match["quote"] and (_is_expression(match, value, is_program=is_program) or _is_sentence(match))


def _is_expression(match: re.Match[str], value: str, *, is_program: bool) -> bool:
    """Return True if a value without quotes is code: `os.environ[...]`, `config.password`, or a program's variable."""
    is_set_by_program = is_program and (not _is_of_shell(match) or bool(_ATTRIBUTE.match(match["name"])))
    is_variable = is_set_by_program and bool(_IDENTIFIER.fullmatch(value))
    return bool(_CODE.fullmatch(value)) or is_variable or (_is_name(value) and "." in value)


def _is_sentence(match: re.Match[str]) -> bool:
    """Return True if an explanation follows the name on its line: `token: see below`."""
    start = match.start("value")
    is_on_line = "\n" not in match.string[match.start() : start]
    return is_on_line and not _is_of_shell(match) and bool(_SENTENCE.match(match.string, start))


def _is_of_shell(match: re.Match[str]) -> bool:
    """Return True if a shell sets the value, `token=abc`; an argument of a call, `f(token=abc)`, is none."""
    is_argument = match["value"][-1] in "),]:" or match.string[(end := match.end("value")) : end + 1] in {",", "}"}
    return match.string.endswith("=", 0, match.start("value")) and not is_argument


def _is_name(value: str) -> bool:
    """Return True if the value is itself a name of a credential: `DB_PASSWORD`, `settings.token`."""
    return bool(_IDENTIFIER.fullmatch(value)) and names_credential(value)


def kinds_in_words(words: Sequence[object]) -> list[str | None]:
    """Return the kinds of credential in the words of a command: `--token=abc`, `--token abc`, and scripts in words."""
    texts = [word if isinstance(word, str) else "" for word in words]
    return [_kind_in_word(before, text) for before, text in zip(["", *texts], texts, strict=False)]


def _kind_in_word(before: str, text: str) -> str | None:
    """Return the kind of credential in a word; a word without spaces reaches no shell, so `$` may begin a password."""
    is_script = bool(re.search(r"\s", text))
    pairs: list[tuple[str, str]] = []
    if not is_script and _ASSIGNMENT.match(text):
        pairs = [(match["name"], match["value"]) for match in _ASSIGNMENT.finditer(text)]
    if _OPTION.fullmatch(before) and not text.startswith("-") and not (is_script and text.startswith(("$", "`"))):
        pairs.append((before, text))
    return next(filter(None, (kind_by_name(name, value) for name, value in pairs)), None) or kind_in_text(text)
