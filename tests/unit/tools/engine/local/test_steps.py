"""Decisions and orders of the engine."""

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.cli.stack_changes import StepOp
from tools.engine.local import steps
from tools.engine.local.state import Resource
from tools.engine.local.steps import Diff


def a_resource(name: str, *, needs: tuple[str, ...] = (), parent: str = "", **fields: object) -> Resource:
    return Resource(urn=name, type="t", custom=True, dependencies=needs, parent=parent, **fields)  # type: ignore[arg-type] # fields of the dataclass


@st.composite
def graphs(draw: st.DrawFn) -> list[Resource]:
    """Resources, dependencies first, each with needs among those before it."""
    found: list[Resource] = []
    for i in range(draw(st.integers(0, 12))):
        names = [resource.urn for resource in found]
        needs = draw(st.lists(st.sampled_from(names), unique=True, max_size=4)) if names else []
        found.append(a_resource(f"r{i}", needs=tuple(needs)))
    return found


SAME = Diff(changes=False)
CHANGED = Diff(changes=True, changed=("a.b",))
FORCED = Diff(changes=True, changed=("a.b",), replaces=("a.b",), delete_before_replace=True)
R = a_resource("r")


def decide(diff: Diff, old: Resource = R, new: Resource = R, *, first: bool | None = None) -> steps.Decision:
    return steps.decide(diff, old, new, delete_before_replace=first)


def test_without_a_difference_a_resource_stays_as_it_is() -> None:
    assert decide(SAME).operation is StepOp.SAME


def test_a_difference_is_an_update_unless_it_forces_a_replacement() -> None:
    assert decide(CHANGED) == steps.Decision(operation=StepOp.UPDATE, paths=("a.b",))
    assert decide(FORCED).operation is StepOp.REPLACE


def test_what_did_not_become_ready_is_updated_without_a_difference() -> None:
    assert decide(SAME, old=a_resource("r", init_errors=("not ready",))).operation is StepOp.UPDATE


def test_what_was_deleted_for_its_replacement_is_made_again_without_a_difference() -> None:
    assert decide(SAME, old=a_resource("r", pending_replacement=True)).operation is StepOp.REPLACE


def test_the_program_may_want_a_change_to_replace() -> None:
    for pattern in ("a", "a.b", "*"):
        new = a_resource("r", replace_on_changes=(pattern,))
        assert decide(CHANGED, new=new).operation is StepOp.REPLACE
    assert decide(CHANGED, new=a_resource("r", replace_on_changes=("c",))).operation is StepOp.UPDATE
    assert decide(SAME, new=a_resource("r", replace_on_changes=("*",))).operation is StepOp.SAME


def test_the_provider_says_which_goes_first_and_the_program_may_overrule_it() -> None:
    assert decide(FORCED).delete_before_replace
    assert not decide(FORCED, first=False).delete_before_replace


@given(graphs())
def test_nothing_is_deleted_before_what_needs_it(resources: list[Resource]) -> None:
    waves = steps.deletion_order(resources, resources)
    assert sorted(r.urn for wave in waves for r in wave) == sorted(r.urn for r in resources)
    when = {resource.urn: i for i, wave in enumerate(waves) for resource in wave}
    for resource in resources:
        for need in resource.needs():
            assert when[resource.urn] < when[need]


@given(graphs(), st.data())
def test_only_what_is_doomed_is_deleted(resources: list[Resource], data: st.DataObject) -> None:
    doomed = [resource for resource in resources if data.draw(st.booleans())]
    waves = steps.deletion_order(doomed, resources)
    assert {id(r) for wave in waves for r in wave} == {id(r) for r in doomed}


def test_a_child_a_property_and_a_provider_count_as_needs() -> None:
    resource = a_resource("r", parent="p", provider="v::id", property_dependencies={"k": ("d",)})
    assert resource.needs() == {"p", "v", "d"}


def test_a_resource_and_its_successor_do_not_wait_for_each_other_in_a_circle() -> None:
    """The old `a` needs the new `b`, which needs the new `a`: what is further up is meant."""
    new_a, new_b = a_resource("a"), a_resource("b", needs=("a",))
    old_a = a_resource("a", needs=("b",), delete=True)
    everything = [new_a, new_b, old_a]
    assert steps.deletion_order(everything, everything) == [[old_a], [new_b], [new_a]]


def test_dependents_are_found_through_others_and_not_among_what_is_done() -> None:
    root = a_resource("root")
    rest = [
        a_resource("a", needs=("root",)),
        a_resource("b", needs=("a",)),
        a_resource("c"),
        a_resource("d", parent="root"),
    ]
    assert [r.urn for r in steps.dependents(root, [root, *rest], set())] == ["a", "b", "d"]
    assert [r.urn for r in steps.dependents(root, [root, *rest], {"a"})] == ["d"]


@given(graphs(), st.data())
def test_what_is_kept_has_all_that_it_needs(resources: list[Resource], data: st.DataObject) -> None:
    wanted = {resource.urn for resource in resources if data.draw(st.booleans())}
    kept = steps.kept_with(resources, lambda resource: resource.urn in wanted)
    assert wanted <= kept
    for resource in resources:
        if resource.urn in kept:
            assert resource.needs() <= kept
    reasons = wanted.union(*(r.needs() for r in resources if r.urn in kept))
    assert kept == reasons
