"""Outputs of other stacks in the same state folder, for `pulumi.StackReference`."""

from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine import encryption
from tools.engine.local.state import State, state_file
from tools.engine.protocol import STACK_TYPE, Target
from tools.engine.values import Properties

REFERENCE_TYPE = "pulumi:pulumi:StackReference"


def read(target: Target, project_name: str, name: str) -> Properties:
    """Return the properties of a StackReference.

    Args:
        target: Stack that refers to another one.
        project_name: Its project.
        name: The other stack: `<stack>` of the same project, or `<organization>/<project>/<stack>`.

    Raises:
        UserError: There is no such stack here.
    """
    *_, project, stack = [project_name, *name.split("/")]
    file = state_file(target, project, stack)
    if not file.exists():
        files = (target.state / "local").glob("*/*.json")
        known = ", ".join(sorted(f"organization/{path.parent.name}/{path.stem}" for path in files)) or "none"
        raise UserError(f"the local engine has deployed no stack {name!r}. It has: {known}. Deploy that stack first.")
    state = State.load(file, encryption.passphrase(target.state))
    outputs = next((resource.outputs for resource in state.resources if resource.type == STACK_TYPE), {})
    secret = [PropertyValue(key) for key, value in outputs.items() if value.contains_secret()]
    return {
        "name": PropertyValue(name),
        "outputs": PropertyValue(outputs),
        "secretOutputNames": PropertyValue(secret),
    }
