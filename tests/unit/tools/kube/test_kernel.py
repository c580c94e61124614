"""Features of a kernel."""

from tools.kube.kernel import FEATURES, Kernel

ALL_BUILT_IN = "\n".join(f"{feature.option}=y" for feature in FEATURES)
ALL_MODULES = "".join(f"kernel/net/{feature.module}.ko.xz:\n" for feature in FEATURES)


def missing(config: str, modules: str) -> set[str]:
    return {feature.option for feature in Kernel(config, modules).missing()}


def test_what_is_built_in_is_there() -> None:
    assert not missing(ALL_BUILT_IN, "")


def test_a_module_is_there_when_its_file_is() -> None:
    config = ALL_BUILT_IN.replace("CONFIG_VETH=y", "CONFIG_VETH=m")
    assert missing(config, "kernel/net/other.ko:\n") == {"CONFIG_VETH"}
    assert not missing(config, "kernel/drivers/net/veth.ko:\n")


def test_what_is_neither_is_missing() -> None:
    config = ALL_BUILT_IN.replace("CONFIG_OVERLAY_FS=y", "# CONFIG_OVERLAY_FS is not set")
    assert missing(config, ALL_MODULES) == {"CONFIG_OVERLAY_FS"}


def test_without_a_configuration_the_modules_decide() -> None:
    assert not missing("", ALL_MODULES)
    assert missing("", ALL_MODULES.replace("/bridge.ko", "/gone.ko")) == {"CONFIG_BRIDGE"}


def test_a_kernel_that_says_nothing_is_believed_to_have_all() -> None:
    assert not missing("", "")
