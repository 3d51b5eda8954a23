"""Find secrets in what is stored already, and put placeholders in their place so that no file holds them any more.

It tells where a secret is, of which kind, and how often; never the secret, nor what stands around it. A run that was
killed is known by its note in the store, and the next one does what it left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from commonplace.engine.secrets_cleaning import NOTHING, Known, needles_of
from commonplace.engine.secrets_files import PAGE, Files
from commonplace.engine.secrets_stored import Found, Holder, Stored
from commonplace.engine.upkeep import Finding
from commonplace.errors import CommonplaceError
from commonplace.forgetting.finishing import LOCK, settle
from commonplace.forgetting.pending import FORGETTING, Pending, pending_of
from commonplace.forgetting.receipt import BACKUP, STORE_SPACE, ForgetReceipt
from commonplace.forgetting.remaining import still_stored
from commonplace.forgetting.scanning import files_below, scan
from commonplace.forgetting.steps import DATABASE, DRAFTS, GENERATIONS, INDEX, Waiting, take
from commonplace.locks import FileLock
from commonplace.mirror.mirror import LOCK as PAGES_LOCK

if TYPE_CHECKING:
    from commonplace.forgetting.needles import Needles
    from commonplace.forgetting.place import Place
    from commonplace.ingest.passages import Destination
    from commonplace.store.contract import Store

PART = "secrets"
"""What the findings of a report are filed under."""

_LOCK_WAIT_S = 60.0
_CHANGE = "change the secret where it is used; backups made before now still hold it"
_FILE = f"take it out of the file, which was left as it is, and {_CHANGE}"
_MEND = "run `commonplace doctor --secrets` where the store can be written, and change the secret where it is used"
_NAMED = "a name is never replaced: forget it, or give it another one; and change the secret where it is used"


def was_cut_short(store: Store) -> bool:
    """Return whether a run was ended before it had replaced what it found."""
    return _begun(store) is not None


class Secrets:
    """Looks through all namespaces, pages and logs of one store.

    Args:
        destination: what makes passages; asked for when something is written anew.
        sync: brings the Markdown of a namespace and its memories together, where it has any.
    """

    def __init__(
        self, place: Place, destination: Callable[[], Destination], sync: Callable[[str], None] = lambda _: None
    ) -> None:
        self._place = place
        self._store = place.store
        self._stored = Stored(place.store, destination, place.clock)
        self._files = Files(place.directory)
        self._sync = sync

    def examine(self, *, mend: bool) -> list[Finding]:
        """Tell what holds secrets; with `mend`, write it anew without them, and let every copy go.

        What cannot be read or mended is a finding too, not an error.
        """
        found = Found()
        try:
            if not mend or self._store.is_read_only:
                found, _ = self._look()
                return list(_findings(found, mended=False))
            with FileLock(self._place.directory / LOCK).hold(_LOCK_WAIT_S):
                found, known = self._look()
                begun = _begun(self._store)
                if begun is None and all(holder.is_name for holder in found.holders):
                    return list(_findings(found, mended=False))
                damage = self._store.check()
                if damage:
                    told = Finding(PART, f"nothing was replaced in a damaged store: {damage[0]}", "restore a backup")
                    return [*_findings(found, mended=False), told]
                return self._mend(found, known, begun)
        except CommonplaceError as error:
            return [*_findings(found, mended=False), _told(error)]

    def _look(self) -> tuple[Found, Known]:
        """Return what holds secrets, also those that are only known from elsewhere."""
        found, known = self._look_for(NOTHING), NOTHING
        if found.secrets:
            known = Known(found.secrets)
            found = self._look_for(known)
        return found, known

    def _look_for(self, known: Known) -> Found:
        found = Found()
        self._stored.look(found, known)
        self._files.look(found, known)
        return found

    def _mend(self, found: Found, known: Known, begun: Pending | None) -> list[Finding]:
        place, needles = self._place, needles_of({*found.secrets, *found.parts})
        # Before anything is replaced: a run that is killed later cannot know any more what to look for.
        self._files.clear_logs(needles)
        pending = begun or Pending(str(uuid4()), place.clock(), STORE_SPACE, (INDEX, GENERATIONS, DATABASE, DRAFTS))
        receipt = ForgetReceipt(STORE_SPACE, pending.at, pending.id, counts={"secrets": len(found.secrets)})
        with self._store.change_memories(STORE_SPACE) as change:
            change.put_note(receipt.note())
            change.put_note(pending.note())
        problems = self._replace(found, known)
        waiting = take(place, pending, {}, thorough=True)
        place.forget_caches()
        self._files.clear_logs(needles)
        still = Found(named=found.named)
        self._files.look(still, known)
        left = list(self._left(found, needles, waiting))
        settle(place, receipt, replace(pending, is_proved=True, is_clean=not left), waiting)
        if begun is not None:
            problems.append(Finding(PART, "an earlier run was ended before it had replaced all", _CHANGE, mended=True))
        return [*_findings(found, mended=True, but={holder.where for holder in still.holders}), *problems, *left]

    def _replace(self, found: Found, known: Known) -> list[Finding]:
        """Write anew what is stored, let the pages follow, and clean what nobody but people wrote there."""
        spaces = {holder.namespace for holder in found.holders if holder.namespace}
        # Edits that were not taken in yet come first: afterwards both sides would have changed.
        problems = self._brought_together(sorted(spaces))
        for holder in found.holders:
            if holder.mend is not None:
                holder.mend()
        due = {namespace for namespace in self._store.namespaces() if self._store.due(namespace)}
        problems += self._brought_together(sorted(spaces | due))
        with FileLock(self._place.directory / PAGES_LOCK).hold(_LOCK_WAIT_S):
            return [*problems, *map(_told, self._files.clean_pages(known, frozenset(found.named)))]

    def _brought_together(self, namespaces: Iterable[str]) -> list[Finding]:
        problems = []
        for namespace in namespaces:
            try:
                self._sync(namespace)
            except CommonplaceError as error:
                problems.append(_told(error))
        return problems

    def _left(self, found: Found, needles: Needles, waiting: Sequence[Waiting]) -> Iterator[Finding]:
        """Yield what holds one of the secrets still; what waits is told of as what was forgotten and waits."""
        directory = self._place.directory
        scanned = scan(directory, files_below(directory), needles)
        hits = scanned.all_hits()
        stored = still_stored(self._store, needles.only(hits)) if hits else set()
        passed = {directory / note.id for note in self._store.notes(None, BACKUP)}
        waits = tuple(each.files for each in waiting)
        for name, held in sorted(scanned.hits.items()):
            is_passed = directory / name in passed or name.endswith(PAGE) or (waits and name.startswith(waits))
            if held - stored and not is_passed:
                yield Finding(PART, f"the file {name} still holds a secret", _remedy_of_file(name))
        for name, why in scanned.unread:
            yield Finding(PART, f"the file {name} may hold a secret: {why}", "make it readable, or remove it")
        told = sum(secret.encode("utf-8", "surrogatepass") in stored for secret in found.secrets.keys() - found.named)
        if told:
            also = "one of these secrets also stands" if told == 1 else f"{told} of these secrets also stand"
            yield Finding(
                PART,
                f"{also} in texts that do not call it one, and was left there",
                "find these texts with `commonplace search`, and update or forget them",
            )


def _begun(store: Store) -> Pending | None:
    runs = [run for run in pending_of(store.notes(STORE_SPACE, FORGETTING)) if run.namespace == STORE_SPACE]
    return next((run for run in runs if not run.is_proved), None)


def _findings(found: Found, *, mended: bool, but: Collection[str] = ()) -> Iterator[Finding]:
    for holder in found.holders:
        is_mended = mended and not holder.is_name and holder.where not in but
        for kind, count in holder.kinds.items():
            times = "a secret" if count == 1 else f"{count} secrets"
            problem = f"{holder.where} holds {times} of the kind {kind}"
            yield Finding(PART, problem, _remedy(holder, is_mended=is_mended), is_mended)


def _told(error: CommonplaceError) -> Finding:
    return Finding(PART, error.args[0], error.remedy)


def _remedy(holder: Holder, *, is_mended: bool) -> str:
    if holder.is_name:
        return _NAMED
    if not is_mended:
        return _MEND
    return _FILE if holder.is_file else _CHANGE


def _remedy_of_file(name: str) -> str:
    if Path(name).name.startswith("store.db") or name.startswith(f"{INDEX}/"):
        return "end every program that has the store open, then run `commonplace doctor --secrets` again"
    return "it is no file of the store: remove it, or edit it"
