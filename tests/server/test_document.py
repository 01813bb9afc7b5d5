"""
The document of the API keeps its word: requests are made up from it, valid ones and broken ones, and answers held against it.

The memory behind has users, conversations, facts, summaries and jobs, and every other request names something that is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import get_args

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS

from holdfast import Memory
from holdfast.server.app import create_app, described
from holdfast.server.schemas import NewMessage
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.text import validate

# Left out: `positive_data_acceptance` (a cursor or an id that fits the document may still be none of ours),
# `use_after_free` (what is erased may be erased again), `negative_data_rejection` (unknown names in a query are passed
# over, and 414 does not count as a refusal).  That broken bodies are refused is seen in test_gate.py.
NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)
EXAMPLES = 4


def fill(memory: Memory) -> dict[str, str]:
    """What requests name: something of each kind, there again if the last test erased it."""
    chat = memory.conversation("c/1", user="ana é")
    if not chat.load(limit=1):
        roles = ("user", "assistant")
        chat.append([{"role": roles[n % 2], "content": f"I live in Town{n}."} for n in range(24)])
        chat.record("I'm vegetarian. I think I work at Globex.")
        memory.digest()
        chat.rebuild("summaries", start_seq=1, end_seq=5)
    user = memory.user("ana é")
    if user.status().state != "active":
        user.opt_in()
    facts = user.facts() or [user.remember("I speak Spanish.").fact]
    memory.conversation("late", user="bo").record("Hello there.")
    made = chat.rebuilds()
    return {
        "user": "ana é",
        "conversation": "c/1",
        "seq": "3",
        "fact_id": facts[0].id,
        "name": "chunk_summary",
        "rebuild_id": made[0].id if made else "none",
        "job_id": next(iter(memory.jobs())).id,
        "key_id": memory.admin.keys.create("app").about.id,
        "version": "1",
    }


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    clock = FakeClock(datetime(2026, 1, 1, 9, tzinfo=UTC))
    with Memory(embedder=HashEmbedder(), clock=clock) as opened:
        yield opened


@pytest.fixture(scope="module")
def session(memory, served) -> Iterator[tuple[requests.Session, str]]:
    with served(memory) as address, requests.Session() as opened:
        opened.headers["Authorization"] = f"Bearer {memory.admin.keys.create('operator').key}"
        yield opened, address


DOCUMENT = None


def document():
    """The document, read once."""
    global DOCUMENT
    if DOCUMENT is None:
        with Memory(embedder=None) as memory:
            DOCUMENT = described(create_app(memory))
    return DOCUMENT


SCHEMA = schemathesis.openapi.from_dict(document())
# A stream of events goes on until somebody hangs up: tests/server/test_events.py reads it.
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if not found.ok().path.endswith("/events")]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_answers_are_what_the_document_says(memory, session, operation, mode):
    sender, address = session
    there = fill(memory)
    checks = CHECKS.get_by_names(NAMES)

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def run(case: Case, real: bool) -> None:
        if real and mode is GenerationMode.POSITIVE:
            case.path_parameters.update({name: there[name] for name in case.path_parameters if name in there})
        if isinstance(case.body, dict):
            case.body.update({name: 0 for name in ("delay_ms",) if case.body.get(name)})  # nobody waits for an hour
        if case.query:
            case.query.update(
                {name: 0.1 for name in ("wait_s", "timeout_s") if isinstance(case.query.get(name), float)}
            )
        case.call_and_validate(base_url=address, session=sender, checks=checks, timeout=60)

    try:
        run()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing about it can be wrong


def test_the_memory_behind_is_sound_after_all_that(memory):
    assert memory.doctor().ok


def test_the_document_is_valid():
    """
    It is an OpenAPI document by the specification's own schema, and beyond that: every parameter of a path is declared,
    every reference leads somewhere, every schema and name can be used.
    """
    found, ids = document(), []
    assert found["openapi"].startswith("3.1")
    SCHEMA.validate()
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            ids.append(operation["operationId"])
            declared = [one["name"] for one in operation.get("parameters", []) if one["in"] == "path"]
            assert sorted(declared) == sorted(re.findall(r"{(\w+)}", path)), (method, path)
            assert operation["responses"]
    assert len(ids) == len(set(ids))
    for reference in set(re.findall(r'"\$ref": "#/([^"]*)"', json.dumps(found))):
        part = found
        for name in reference.split("/"):
            part = part[name]
    for schema in found["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    chats = {"/v1/chat/completions", "/v1/responses", "/v1/responses/{response}", "/v1/messages", "/v1/embeddings"}
    assert chats | {"/v1/messages/count_tokens", "/v1/models", "/v1/models/{model}"} <= found["paths"].keys()


def test_the_validator_finds_what_is_wrong():
    broken = {**document(), "paths": {"/v1/x": {"get": {"responses": {"200": {}}, "parameters": [{"name": "x"}]}}}}
    with pytest.raises(Exception, match=r"is not valid under any of the given schemas|required"):
        schemathesis.openapi.from_dict(broken).validate()


def test_a_message_may_have_the_roles_that_the_library_knows():
    """The names of roles are written for the document and for the library; the two agree."""
    assert set(get_args(NewMessage.model_fields["role"].annotation)) == {*validate.ROLES, *validate._ALIASES}
