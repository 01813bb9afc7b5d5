"""The public files in the shapes in which they are distributed; the words are ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from holdfast.bench.datasets import BadData, load_benchmark
from holdfast.errors import BadInput

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a dog!"},
                {
                    "speaker": "Ben",
                    "dia_id": "D1:2",
                    "text": "Look at mine.",
                    "img_url": ["…"],
                    "blip_caption": "a photo of a cat",
                    "query": "cat",
                },
            ],
            "session_2_date_time": "12:09 am on 13 September, 2023",
            "session_2": [{"speaker": "Ana", "dia_id": "D2:1", "text": "The dog is called Moss."}],
        },
        "qa": [
            {"question": "What is the dog called?", "answer": "Moss", "evidence": ["D1:1; D2:1"], "category": 1},
            {"question": "When was it adopted?", "answer": 2023, "evidence": ["D1:1", "D9:9"], "category": 2},
            {"question": "What is Ben's dog called?", "adversarial_answer": "Moss", "evidence": [], "category": 5},
        ],
    }
]

REALTALK = {
    "name": {"speaker_1": "Ana", "speaker_2": "Ben"},
    "session_1": [
        {"clean_text": "Yo", "speaker": "Ben", "date_time": "29.12.2023, 22:42:04", "dia_id": "D1:1"},
        {"clean_text": "I'm in Rome", "speaker": "Ana", "date_time": "30.12.2023, 00:32:20", "dia_id": "D1:2"},
    ],
    "events_session_1": {},
    "session_1_date_time": "29.12.2023, 22:42:04",
    "qa": [{"question": "Where is Ana?", "answer": "Rome", "evidence": ["D1:2"], "category": 3}],
}

BEAM_CHAT = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "The limit is 200 ms. ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "Noted."},
            ],
            [{"role": "user", "id": 2, "content": "It is 250 ms now. ->-> 2,N/A"}],
        ],
    }
]
BEAM_ASKED = {
    "abstention": [{"question": "Who pays?", "ideal_response": "Not said.", "rubric": ["says so"]}],
    "knowledge_update": [
        {
            "question": "What is the limit?",
            "answer": "250 ms",
            "source_chat_ids": {"original_info": [0], "updated_info": [2]},
            "rubric": ["LLM response should state: 250 ms"],
        }
    ],
    "event_ordering": [{"question": "In which order?", "answer": "…", "source_chat_ids": [[0], [2, 77]], "rubric": []}],
}


def long_memory(**more):
    return {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Where do I live?",
        "answer": "Ghent",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s2", "s1"],
        "haystack_dates": ["2023/05/21 (Sun) 10:00", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
            [
                {"role": "user", "content": "I live in Ghent", "has_answer": True},
                {"role": "assistant", "content": "Ok"},
            ],
        ],
        "answer_session_ids": ["s1"],
        **more,
    }


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_locomo_as_distributed(tmp_path):
    found = load_benchmark("locomo", [write(tmp_path / "locomo10.json", LOCOMO)])
    (sample,) = found.samples

    assert [line.id for line in sample.lines] == ["conv-1/D1:1", "conv-1/D1:2", "conv-1/D2:1"]
    assert [line.role for line in sample.lines] == ["user", "assistant", "user"]
    assert sample.lines[1].text == "Look at mine. [shares photo: a photo of a cat]"
    assert sample.lines[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert sample.lines[2].at == datetime(2023, 9, 13, 0, 9, tzinfo=UTC)
    assert [q.evidence for q in sample.questions] == [("conv-1/D1:1", "conv-1/D2:1"), ("conv-1/D1:1",), ()]
    assert sample.questions[0].sessions == ("conv-1/session_1", "conv-1/session_2")
    assert [q.category for q in sample.questions] == ["1-multi-hop", "2-temporal", "5-adversarial"]
    assert [q.answer for q in sample.questions] == ["Moss", "2023", "Moss"]
    assert [q.abstain for q in sample.questions] == [False, False, True]
    assert found.apart == ("5-adversarial",)


def test_realtalk_as_distributed(tmp_path):
    write(tmp_path / "Chat_10_Ana_Ben.json", REALTALK)
    write(tmp_path / "Chat_2_Ana_Ben.json", REALTALK)
    found = load_benchmark("realtalk", [tmp_path])

    assert [sample.id for sample in found.samples] == ["rt-2", "rt-10"]
    lines = found.samples[0].lines
    assert [(line.speaker, line.role, line.text) for line in lines] == [
        ("Ben", "user", "Yo"),
        ("Ana", "assistant", "I'm in Rome"),
    ]
    assert lines[1].at == datetime(2023, 12, 30, 0, 32, 20, tzinfo=UTC)
    assert found.samples[0].questions[0].category == "3-commonsense"


def test_beam_as_distributed(tmp_path):
    write(tmp_path / "100K" / "3" / "chat.json", BEAM_CHAT)
    write(tmp_path / "100K" / "3" / "probing_questions" / "probing_questions.json", BEAM_ASKED)
    (sample,) = load_benchmark("beam", [tmp_path]).samples

    assert sample.id == "beam100K-3"
    assert [line.text for line in sample.lines] == ["The limit is 200 ms.", "Noted.", "It is 250 ms now."]
    assert [line.session for line in sample.lines] == ["beam100K-3/b1t0", "beam100K-3/b1t0", "beam100K-3/b1t1"]
    assert {line.at for line in sample.lines} == {datetime(2024, 3, 15, tzinfo=UTC)}
    abstains, updates, orders = sample.questions
    assert (abstains.evidence, abstains.abstain, abstains.rubric) == ((), True, ("says so",))
    assert (updates.latest, updates.stale) == (("beam100K-3/2",), ("beam100K-3/0",))
    assert orders.evidence == ("beam100K-3/0", "beam100K-3/2")


def test_longmemeval_as_documented(tmp_path):
    path = write(tmp_path / "longmemeval_s.json", [long_memory(), long_memory(question_id="q2_abs")])
    first, second = load_benchmark("longmemeval", [path]).samples

    assert [line.id for line in first.lines] == ["q1/s1:0", "q1/s1:1", "q1/s2:0", "q1/s2:1"]
    assert first.questions[0].evidence == ("q1/s1:0",)
    assert first.questions[0].sessions == ("q1/s1",)
    assert first.questions[0].at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert first.apart
    assert (second.questions[0].category, second.questions[0].evidence) == ("abstention", ())
    assert second.questions[0].abstain


def test_longmemeval_without_marked_turns_takes_the_answers_session(tmp_path):
    record = long_memory()
    del record["haystack_sessions"][1][0]["has_answer"]
    (sample,) = load_benchmark("longmemeval", [write(tmp_path / "o.json", [record])]).samples

    assert sample.questions[0].evidence == ("q1/s1:0", "q1/s1:1")


def test_tiny_comes_with_the_package():
    found = load_benchmark("tiny", [])
    questions = [question for sample in found.samples for question in sample.questions]
    known = {line.id for sample in found.samples for line in sample.lines}

    assert len(questions) == 32
    assert all(set(q.evidence) <= known and set(q.latest) | set(q.stale) <= set(q.evidence) for q in questions)
    assert all(bool(q.evidence) != q.abstain for q in questions)
    assert all("#" not in line.text for sample in found.samples for line in sample.lines)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("locomo", {}, "not a JSON list"),
        ("locomo", [{"sample_id": "x", "conversation": {}}], "no session_1"),
        ("locomo", [{"conversation": {"session_1": [{"text": "a"}], "session_1_date_time": "noon"}}], "not a time"),
        ("locomo", [], "no question"),
        ("realtalk", [], "not a JSON object"),
        ("longmemeval", [{"question_id": "a"}], "haystack_sessions"),
        ("longmemeval", [long_memory(haystack_dates=[])], "differ in number"),
        ("longmemeval", [long_memory(question_date="soon")], "not a date"),
    ],
)
def test_other_shapes_are_refused_with_the_place(tmp_path, name, value, said):
    with pytest.raises(BadData, match=said):
        load_benchmark(name, [write(tmp_path / "x.json", value)])


def test_file_that_is_not_there_or_not_json_is_named(tmp_path):
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    for path in (tmp_path / "x.json", tmp_path / "y.json"):
        with pytest.raises(BadData, match=path.name):
            load_benchmark("locomo", [path])


def test_nothing_is_run_without_its_data():
    with pytest.raises(BadInput, match="needs its data"):
        load_benchmark("locomo", [])
    with pytest.raises(BadInput, match="no benchmark"):
        load_benchmark("musique", [])


def test_digest_changes_with_a_word(tmp_path):
    before = load_benchmark("locomo", [write(tmp_path / "a.json", LOCOMO)]).digest
    changed = json.loads(json.dumps(LOCOMO).replace("Moss", "Mars"))

    assert load_benchmark("locomo", [write(tmp_path / "b.json", LOCOMO)]).digest == before
    assert load_benchmark("locomo", [write(tmp_path / "c.json", changed)]).digest != before
