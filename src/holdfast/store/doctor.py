"""
The invariants of the store, each as a query that finds the rows that break it.

Used by ``Store.check``, by tests after each scenario, and by operators.  The queries are in
``sql/shared/doctor.sql``; each is named ``check_`` and the rule.  A finding carries keys, never text.
"""

from __future__ import annotations

from ..reports import Finding
from .port import Driver
from .rows import compact_json

_SUMMARIES = "rebuild the summaries of this conversation"
_INDEX = "rebuild the vectors and the index of this user"
_FACTS = "rebuild the facts of this user, or restore a backup"
_LOST = "restore a backup: messages or counters were lost or changed from outside"

HINTS = {
    "coverage_points_home": _SUMMARIES,
    "coverage_whole": _SUMMARIES,
    "level1_contiguous": _SUMMARIES,
    "chunk_start": _SUMMARIES,
    "summary_range": _SUMMARIES,
    "parent": _SUMMARIES,
    "children": _SUMMARIES,
    "summary_edges": _SUMMARIES,
    "edge_of_summary": _SUMMARIES,
    "edge_of_fact": _FACTS,
    "edge_to_summary": _SUMMARIES,
    "edge_to_messages": _LOST,
    "live_address": _FACTS,
    "fact_evidence": _FACTS,
    "fact_end": _FACTS,
    "superseded_by": _FACTS,
    "merged": _FACTS,
    "evidence_fact": _FACTS,
    "quote": _FACTS,
    "message_doc": _INDEX,
    "fact_doc": _INDEX,
    "summary_doc": _INDEX,
    "doc_of_message": _INDEX,
    "doc_of_fact": _INDEX,
    "doc_of_summary": _INDEX,
    "doc_kind": _INDEX,
    "posting_doc": _INDEX,
    "doc_terms": _INDEX,
    "vector_doc": _INDEX,
    "doc_vector": _INDEX,
    "next_doc": _LOST,
    "next_seq": _LOST,
    "message_home": _LOST,
    "conversation_home": _LOST,
    "marks": _LOST,
    "episode_range": "rebuild the episodes of this conversation",
    "idempotency": _LOST,
    "rebuild": _LOST,
    "read_range": _LOST,
    "context_stats": _LOST,
    "older_version": _SUMMARIES,
    "erased_message": "forget the message again",
    "edge_of_end": _FACTS,
    "consent": "pause the user again",
    "usage": "erase this user's usage, or restore a backup",
    "prompt": "reset this user's prompts",
    "provider_key": "set this key of a provider again",
    "event_numbers": _LOST,
    "event_home": "clear the conversation again",
    "job_state": "cancel the job and order its work again",
}
"""Each rule, in the order in which they are looked at, and what to do when it is broken."""

RULES = tuple(rule.replace("_", "-") for rule in HINTS)


def broken_rules(driver: Driver) -> list[Finding]:
    """Every broken invariant in one snapshot of the whole store; ``where`` is a JSON list of keys."""
    return [
        Finding(rule.replace("_", "-"), compact_json(list(row)), hint)
        for rule, hint in HINTS.items()
        for row in driver.run(f"check_{rule}", {})
    ]
