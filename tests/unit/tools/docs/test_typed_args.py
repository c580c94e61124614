"""The typed arguments of a cluster, written from the models."""

from tools.docs import typed_args


def test_the_typed_arguments_are_what_the_specification_says() -> None:
    assert typed_args.FILE.read_text() == typed_args.text(), "run `make docs`"


def test_a_key_has_its_meaning_its_values_and_its_default() -> None:
    node_set = typed_args.text().partition("class NodeSetArgs")[2]
    assert '"""Number of nodes. 0 keeps the node set, but without nodes. Default: 1."""' in node_set
    service = typed_args.text().partition("class LoginArgs")[2]
    assert "One of `ClusterIP`, `NodePort`," in service


def test_models_that_differ_in_their_defaults_share_a_dictionary() -> None:
    assert typed_args.text().count("class SecretRefArgs(") == 1
    assert "class MungeKeyRefArgs" not in typed_args.text()


def test_a_dictionary_inherits_the_keys_that_its_model_inherits() -> None:
    text = typed_args.text()
    assert "class LoginArgs(LoginPodsArgs, total=False)" in text
    assert "class NodeSetArgs(UserPodsArgs, DevicesArgs)" in text
    assert text.count("    termination_grace: ") == 1


def test_a_model_that_changes_a_field_of_its_base_has_the_keys_itself() -> None:
    assert "class JailVolumeArgs(TypedDict" in typed_args.text()
