"""The promotion agent: write often-used memories to the vault and move them to the long-term tier."""

from __future__ import annotations

from typing import ClassVar, Final

from commonplace.consolidation.base import AgentPlan, ChangeRecorder, PlannedAgent
from commonplace.consolidation.groups import names_in
from commonplace.consolidation.results import PromotionResult
from commonplace.dataclasses import replace
from commonplace.dates.time import moment_of
from commonplace.errors import UsageError
from commonplace.formats.vault import VaultNote, tags_of, title_of
from commonplace.redaction import redact
from commonplace.retention import DAY_S, MIN_TRUST_TO_PROMOTE
from commonplace.types import MemoryRecord, StoredMemory
from commonplace.types.ledger import Agent

SCORE: Final = 0.65
"""Retention, before clamping to 1, from which a memory of `MIN_AGE_S` and `MIN_USES` meets `score_threshold`."""
MIN_AGE_S: Final = DAY_S
MIN_USES: Final = 2
"""Fewest uses, besides the age `MIN_AGE_S`, for `score_threshold`: every fresh memory has the retention for it."""
USES: Final = 5
USES_WITHIN_S: Final = 14 * DAY_S
"""Time since its creation within which a memory must have `USES` uses to meet `use_count_threshold`."""
REVIEWS: Final = 3
REVIEWED: Final = "review_count_threshold"
STRENGTH: Final = 1.5
"""Strength that suffices to promote a memory that meets no criterion but has been proposed, as fading ones are."""

SURE: Final = 0.95
LESS_SURE: Final = 0.8
"""Confidence if two or more criteria are met (`SURE`), and if fewer are (`LESS_SURE`)."""


class LTMPromoter(PlannedAgent[PromotionResult]):
    """Promotes memories that were used or reviewed often, or whose retention is still high after a day.

    A promoted memory has the status `promoted` and the tier `long`, which does not fade; searches find it as before.
    Memories with trust below 0.5 are never promoted.
    """

    name: ClassVar[Agent] = "promote"

    def scan(self) -> list[str]:
        """Return the ids of the active memories that meet a criterion: most criteria first, then highest retention."""
        now = self._runtime.now()
        with self._runtime.store.snapshot():
            busy = self._runtime.issues.named(self.name, ("in_progress", "blocked"))
            candidates = [
                (-len(met), -self._runtime.retention.raw(memory.record, now), memory.owner.id)
                for memory in self._runtime.memories()
                if memory.owner.id not in busy and (met := self.criteria(memory.record, now))
            ]
        return [id_ for *_, id_ in sorted(candidates)]

    def plan(self, item: str) -> AgentPlan[PromotionResult]:
        """Return the plan for promoting a memory."""
        memory, now = self._active(item), self._runtime.now()
        record = memory.record
        if record.trust < MIN_TRUST_TO_PROMOTE:
            raise UsageError(
                f"memory {item!r:.80} has the trust {record.trust:g}, less than {MIN_TRUST_TO_PROMOTE:g}",
                remedy="what is not trusted is not promoted: remember it yourself if it is true",
            )
        met = self.criteria(record, now) or (("strength_threshold",) if record.strength >= STRENGTH else ())
        if not met:
            raise UsageError(
                f"memory {item!r:.80} meets no criterion of promotion",
                remedy=f"it takes {USES} uses in its first {USES_WITHIN_S / DAY_S:.0f} days, {REVIEWS} reviews, or a"
                f" retention of {SCORE} after a day and {MIN_USES} uses",
            )
        vault = self._runtime.vault
        path = vault.path_of(self._note(memory, met)) if vault else ""
        result = PromotionResult(memory_id=item, vault_path=path, criteria_met=list(met), success=True)

        def promote(recorder: ChangeRecorder) -> PromotionResult:
            # The note is written first: if the promotion fails, the next one finds it by the memory's id and uses it.
            path, sha256 = vault.write(self._note(memory, met)) if vault else ("", "")
            promoted = replace(record, status="promoted", tier="long", promoted_at=recorder.now, vault_path=path)
            recorder.revise(memory, promoted)
            if path:
                recorder.page(item, path, sha256)
            return result.model_copy(update={"vault_path": path})

        # Turns wait for a person: they gather many uses as soon as somebody asks about the conversation.
        waits = bool(memory.owner.session) and REVIEWED not in met
        score = self._runtime.retention.raw(record, now)
        return AgentPlan(
            result=result,
            basis=(memory,),
            agent=self.name,
            action="promote",
            confidence=SURE if len(met) > 1 else LESS_SURE,
            reason=f"it meets {', '.join(met)}",
            extra={
                "criteria": list(met),
                "score": round(score, 6),
                "use_count": record.use_count,
                "review_count": record.review_count,
                "strength": record.strength,
            },
            apply=promote,
            needs_review=waits,
        )

    def criteria(self, record: MemoryRecord, now: float) -> tuple[str, ...]:
        """Return the criteria that an active memory meets, none if its trust is too low."""
        if record.trust < MIN_TRUST_TO_PROMOTE:
            return ()
        # Count the uses known to be early enough: if the last one is, all are; else those whose time is stored.
        end = record.born_at + USES_WITHIN_S
        uses = record.use_count if record.last_used <= end else sum(use <= end for use in record.uses)
        is_settled = now - record.born_at >= MIN_AGE_S and record.use_count >= MIN_USES
        results = {
            "score_threshold": is_settled and self._runtime.retention.raw(record, now) >= SCORE,
            "use_count_threshold": uses >= USES,
            REVIEWED: record.review_count >= REVIEWS,
        }
        return tuple(name for name, is_met in results.items() if is_met)

    def _note(self, memory: StoredMemory, criteria: tuple[str, ...]) -> VaultNote:
        """Return the note of a memory, redacted, as an older release may have stored secrets in it."""
        record = memory.record
        content = redact(record.content).text
        entities = tuple(dict.fromkeys(redact(name).text for name in record.entities or names_in(content)))
        score = self._runtime.retention.retention(record, self._runtime.now())
        return VaultNote(
            memory_id=memory.owner.id,
            title=title_of(content, entities, memory.owner.id),
            content=content,
            created=moment_of(record.born_at),
            modified=moment_of(memory.created_at),
            tags=tags_of(redact(tag).text for tag in memory.owner.tags),
            entities=entities,
            reason=", ".join(criteria),
            score=round(score, 4),
            version=record.version,
        )
