"""
Conversation memory for chatbots: every turn kept, every fact current, every prompt within budget.

    from holdfast import Memory

    memory = Memory("chat.db")
    chat = memory.conversation("web-42", user="alice")

Names are loaded when first used, so that a program which only asks for ``--help`` stays fast.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .admin import Admin, ApiKeys, Erasures, Events, Operations, ProviderKeys
    from .aio import (
        AsyncAdmin,
        AsyncApiKeys,
        AsyncConversation,
        AsyncErasures,
        AsyncEvents,
        AsyncMemory,
        AsyncOperations,
        AsyncPrompts,
        AsyncProviderKeys,
        AsyncUser,
    )
    from .config import Config, ConfigChanges
    from .context.result import Context
    from .conversation import Conversation
    from .errors import HoldfastError
    from .importers.backups import restore_backup, verify_backup
    from .ingest.redact import PresidioDetector
    from .integrations.calls.callable import UserMessages, with_memory
    from .memory import Memory
    from .reports import (
        Activity,
        AskedAgain,
        BackfillReport,
        Backlog,
        BackupReport,
        ConsolidationReport,
        ConversationState,
        DigestReport,
        ErasurePreview,
        ErasureReceipt,
        Event,
        Explained,
        Finding,
        Measure,
        Merged,
        MessageCount,
        Metrics,
        News,
        Operation,
        PromptPreview,
        PromptSample,
        PruneReport,
        Ranked,
        RebuildReport,
        Rebuilt,
        Receipt,
        ReplayReport,
        Report,
        SentContext,
        SentItem,
        SentSection,
        StoreStats,
        SubjectMerge,
        Usage,
    )
    from .store.messages import InMemoryMessages, JsonFileMessages, MessageStore
    from .text.terms import CalibratedCounter, TiktokenCounter
    from .types import (
        ApiKey,
        Budget,
        Candidate,
        Consent,
        Detector,
        Evidence,
        Fact,
        FactChange,
        Hit,
        Job,
        Message,
        NewKey,
        PatternDetector,
        Price,
        PromptVersion,
        ProviderKey,
        Rejected,
        ReplyUsage,
        RollingSummary,
        Secret,
        Section,
        Story,
        StoryLine,
        StorySource,
        Subject,
        Summary,
        Upstream,
    )
    from .user import Prompts, User

__version__ = "0.1.0"

# A library says nothing by itself; programs that want to hear it give this logger a handler.
logging.getLogger("holdfast").addHandler(logging.NullHandler())

_MODULES = {
    "admin": "Admin ApiKeys Erasures Events Operations ProviderKeys",
    "aio": (
        "AsyncAdmin AsyncApiKeys AsyncConversation AsyncErasures AsyncEvents AsyncMemory AsyncOperations "
        "AsyncPrompts AsyncProviderKeys AsyncUser"
    ),
    "config": "Config ConfigChanges",
    "context.result": "Context",
    "conversation": "Conversation",
    "errors": "HoldfastError",
    "importers.backups": "restore_backup verify_backup",
    "ingest.redact": "PresidioDetector",
    "integrations.calls.callable": "UserMessages with_memory",
    "memory": "Memory",
    "reports": (
        "Activity AskedAgain BackfillReport Backlog BackupReport ConsolidationReport ConversationState DigestReport "
        "ErasurePreview ErasureReceipt Event Explained Finding Measure Merged MessageCount Metrics News Operation PromptPreview "
        "PromptSample PruneReport Ranked RebuildReport Rebuilt Receipt ReplayReport Report SentContext "
        "SentItem SentSection StoreStats SubjectMerge Usage"
    ),
    "store.messages": "InMemoryMessages JsonFileMessages MessageStore",
    "text.terms": "CalibratedCounter TiktokenCounter",
    "types": (
        "ApiKey Budget Candidate Consent Detector Evidence Fact FactChange Hit Job Message NewKey PatternDetector Price "
        "PromptVersion ProviderKey Rejected ReplyUsage RollingSummary Secret Section Story StoryLine StorySource Subject Summary Upstream"
    ),
    "user": "Prompts User",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Activity",
    "Admin",
    "ApiKey",
    "ApiKeys",
    "AskedAgain",
    "AsyncAdmin",
    "AsyncApiKeys",
    "AsyncConversation",
    "AsyncErasures",
    "AsyncEvents",
    "AsyncMemory",
    "AsyncOperations",
    "AsyncPrompts",
    "AsyncProviderKeys",
    "AsyncUser",
    "BackfillReport",
    "Backlog",
    "BackupReport",
    "Budget",
    "CalibratedCounter",
    "Candidate",
    "Config",
    "ConfigChanges",
    "Consent",
    "ConsolidationReport",
    "Context",
    "Conversation",
    "ConversationState",
    "Detector",
    "DigestReport",
    "ErasurePreview",
    "ErasureReceipt",
    "Erasures",
    "Event",
    "Events",
    "Evidence",
    "Explained",
    "Fact",
    "FactChange",
    "Finding",
    "Hit",
    "HoldfastError",
    "InMemoryMessages",
    "Job",
    "JsonFileMessages",
    "Measure",
    "Memory",
    "Merged",
    "Message",
    "MessageCount",
    "MessageStore",
    "Metrics",
    "NewKey",
    "News",
    "Operation",
    "Operations",
    "PatternDetector",
    "PresidioDetector",
    "Price",
    "PromptPreview",
    "PromptSample",
    "PromptVersion",
    "Prompts",
    "ProviderKey",
    "ProviderKeys",
    "PruneReport",
    "Ranked",
    "RebuildReport",
    "Rebuilt",
    "Receipt",
    "Rejected",
    "ReplayReport",
    "ReplyUsage",
    "Report",
    "RollingSummary",
    "Secret",
    "Section",
    "SentContext",
    "SentItem",
    "SentSection",
    "StoreStats",
    "Story",
    "StoryLine",
    "StorySource",
    "Subject",
    "SubjectMerge",
    "Summary",
    "TiktokenCounter",
    "Upstream",
    "Usage",
    "User",
    "UserMessages",
    "restore_backup",
    "verify_backup",
    "with_memory",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":
        return import_module(f"{__name__}.integrations.calls.strategies")
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
