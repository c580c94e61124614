"""Switches the jail from one of its trees to another.

Users' changes in the old tree are reported, and refused, left behind or carried over. Accounts are merged three ways.
`active` is switched last, with one rename. A run that is killed at any moment, or refused, leaves the new tree as it
was: the next run restores a half-changed tree.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from jail_tools import claim, files, resolve_beneath
from jail_tools.accounts import account_files, account_resolution
from jail_tools.accounts.inherit import FOLLOWING, Inherited, Sides, follow, inherit
from jail_tools.accounts.tables import AccountFile, Record, Table, parse
from jail_tools.errors import RefusedError, TryAgainError, bounded, reason
from jail_tools.layout import Tree
from jail_tools.progress import Progress, log
from jail_tools.resolve_beneath import Owned
from jail_tools.switching import carry_over, changes
from jail_tools.switching.undo import Undo, repair


class Policy(StrEnum):
    """Treatment of users' changes."""

    REFUSE = "refuse"
    CARRY_OVER = "carry_over"
    LEAVE_BEHIND = "leave_behind"


@dataclass(frozen=True)
class Done:
    """Result of a switch."""

    old: str | None
    new: str
    changed: int = 0
    """Paths that users changed in the old tree and that the new one lacked."""
    carried: int = 0
    """Paths of these that were written into the new tree."""


@dataclass(frozen=True)
class TreePair:
    """The old tree and the new one, with descriptors of their roots."""

    old: Tree
    new: Tree
    old_root: int
    new_root: int


def switch(new: Tree, policy: Policy) -> Done:
    """Switch to a tree, or finish the switch that a killed run began.

    Raises:
        RefusedError: the tree is not whole, there are changes that may not be left behind, or something conflicts. The
            message has all reasons, and nothing was changed.
        TryAgainError: something could not be read or written; nothing was changed.
    """
    with claim.locked(new.jail):
        repair(new.jail)
        if claim.complete(new) is None:
            raise RefusedError(
                f"tree {new.name} is not complete in this claim. Nothing was changed. Populate it first."
            )
        old = claim.active_tree(new.jail)
        if old == new:
            log(f"switch: tree {new.name} is the active one already")
            return Done(new.name, new.name)
        if old is None or not old.root.is_dir():
            claim.set_active(new)
            log(f"switch: tree {new.name} is the active one; there was none before")
            return Done(None, new.name)
        try:
            return _switch(old, new, policy)
        except OSError as error:
            where = error.filename if isinstance(error.filename, str) else "a file"
            raise TryAgainError(
                f"/{where} of tree {old.name} or {new.name}: {reason(error)}. Nothing was changed."
            ) from error
        except ValueError as error:
            raise RefusedError(f"{error}. Nothing was changed.") from error


def _switch(old: Tree, new: Tree, policy: Policy) -> Done:
    with ExitStack() as stack:
        pair = TreePair(
            old,
            new,
            stack.enter_context(resolve_beneath.directory(str(old.root))),
            stack.enter_context(resolve_beneath.directory(str(new.root))),
        )
        report = _look(pair)
        _log_report(report, old, policy)
        stack.enter_context(account_files.locked(pair.old_root))
        stack.enter_context(account_files.locked(pair.new_root))
        return _apply(pair, report, policy)


def _apply(pair: TreePair, report: changes.Report, policy: Policy) -> Done:
    """Write everything and switch, with both trees' accounts locked."""
    old, new = pair.old, pair.new
    plan = carry_over.CarryPlan((), {}, ())
    if policy is Policy.CARRY_OVER:
        plan = carry_over.plan(report, pair.old_root, pair.new_root)
    new_files = account_files.read(pair.new_root)
    old_managed, new_managed = account_files.read_managed(old), account_files.read_managed(new)
    mine = account_resolution.without(account_files.read(pair.old_root).accounts, old_managed)
    inherited = _inherit(pair, mine, account_resolution.without(new_files.accounts, new_managed), policy)
    _refuse(pair, report, (*plan.reasons, *inherited.reasons), policy)

    declared = account_resolution.for_tree(old_managed, new_managed, _with_inherited(new_files, inherited, new_managed))
    following = _following(inherited, pair)
    paths = (*plan.paths, *(f"etc/{kind.file_name}" for kind in AccountFile), *following)
    with _undone_on_failure(new, pair.new_root, paths):
        progress = Progress("switch: carried over", files=len(plan.files))
        carry_over.carry(plan, pair.old_root, pair.new_root, _counting(progress))
        account_files.write_managed(new, account_resolution.before(new_managed, declared.managed))
        account_files.write(pair.new_root, new_files, declared.tables)
        for path, file in following.items():
            resolve_beneath.replace(pair.new_root, path, file)
        _note_left(old, mine)
        files.flush_volume(new.root)
        claim.set_active(new)
    log(f"switch: new jobs and logins enter tree {new.name}; those of {old.name} stay there")
    return Done(old.name, new.name, len(report.changes), len(plan.files))


@contextmanager
def _undone_on_failure(new: Tree, root: int, paths: tuple[str, ...]) -> Iterator[None]:
    undo = Undo(new)
    undo.begin(root, paths)
    try:
        yield
    except BaseException:
        if claim.active_tree(new.jail) != new:
            undo.roll_back(root)
        raise
    undo.forget()


def _look(pair: TreePair) -> changes.Report:
    """Return the changes that users made in the old tree and that the new one lacks."""
    if not pair.old.manifest.exists():
        raise RefusedError(
            f"tree {pair.old.name} has no manifest ({pair.old.manifest}), so users' changes there are unknown. "
            "Nothing was changed."
        )
    found = changes.find(pair.old, pair.old_root, _counting(Progress("switch: compared")))
    return carry_over.missing(found, pair.old_root, pair.new_root)


def _counting(progress: Progress) -> Callable[[int], None]:
    def count(files: int) -> None:
        progress.add_files(files)
        progress.report()

    return count


def _log_report(report: changes.Report, old: Tree, policy: Policy) -> None:
    """Print what users changed."""
    lines = changes.describe(report)
    if not lines:
        log(f"switch: users changed nothing in tree {old.name} that the new tree does not have")
        return
    verb = {Policy.CARRY_OVER: "to be carried over", Policy.LEAVE_BEHIND: "left behind", Policy.REFUSE: "found"}[policy]
    log(f"switch: users' changes in tree {old.name}, {verb}:")
    for line in lines:
        log(f"  {line}")
    removed = sum(change.how is changes.How.REMOVED for change in report.changes)
    if removed and policy is Policy.CARRY_OVER:
        log(f"  ({removed:,} removed: removals are not carried over)")


def _refuse(pair: TreePair, report: changes.Report, reasons: tuple[str, ...], policy: Policy) -> None:
    """Raise with all reasons, if there are any."""
    old, new = pair.old, pair.new
    if reasons:
        raise RefusedError(
            bounded(
                f"tree {new.name} can't take over from {old.name}. Nothing was changed. Fix this in an admin shell, "
                "or leave users' changes behind (jail.changes: leave_behind). Accounts are merged always.",
                list(reasons),
            )
        )
    found = changes.describe(report)
    if found and policy is Policy.REFUSE:
        raise RefusedError(
            bounded(
                f"users changed tree {old.name}, and the new tree {new.name} does not have their changes. Nothing "
                "was changed. Set jail.changes: carry_over or leave_behind.",
                found,
            )
        )


def _inherit(
    pair: TreePair,
    mine: dict[AccountFile, dict[str, Record]],
    theirs: dict[AccountFile, dict[str, Record]],
    policy: Policy,
) -> Inherited:
    left = claim.left_folder(pair.new)
    sides = Sides(
        old_populated=_accounts_in(pair.old.accounts),
        old=mine,
        new_populated=_accounts_in(pair.new.accounts),
        new_left=_accounts_in(left) if left.is_dir() else None,
        new=theirs,
    )
    return inherit(sides, system_accounts=policy is Policy.CARRY_OVER)


def _with_inherited(
    new: account_files.Files, inherited: Inherited, managed: account_resolution.Accounts
) -> dict[AccountFile, Table]:
    """Return the new tree's files with the inherited accounts. Managed accounts stay for now."""
    return {
        kind: table.with_records(
            inherited.accounts[kind] | {name: record for name, record in table.records.items() if name in managed[kind]}
        )
        for kind, table in new.tables.items()
    }


def _accounts_in(folder: Path) -> dict[AccountFile, dict[str, Record]]:
    found = {}
    for kind in AccountFile:
        file = folder / kind.file_name
        found[kind] = parse(kind, file.read_bytes() if file.exists() else b"").records
    return found


def _following(inherited: Inherited, pair: TreePair) -> dict[str, Owned]:
    """Return the files other than passwd and group that get lines of inherited accounts."""
    found = {}
    for name in FOLLOWING:
        path = f"etc/{name}"
        old, new = resolve_beneath.read(pair.old_root, path), resolve_beneath.read(pair.new_root, path)
        if old is None or new is None:
            continue
        content = follow(inherited.added, old.content, new.content)
        if content != new.content:
            found[path] = replace(new, content=content)
    return found


def _note_left(old: Tree, accounts: dict[AccountFile, dict[str, Record]]) -> None:
    """Record how users leave a tree, for a later return to it."""
    folder = claim.left_folder(old)
    folder.mkdir(mode=0o700, exist_ok=True)
    for kind, records in accounts.items():
        lines = "".join(f"{':'.join(record)}\n" for record in records.values())
        files.write_atomically(folder / kind.file_name, [lines.encode("utf-8", "surrogateescape")])
