"""The benchmark of replaced statements: its file, its keys, and what counts as right."""

from __future__ import annotations

import json

import pytest

from holdfast.bench.datasets import BadData
from holdfast.bench.published import Consolidation, fill, load_consolidation, rank_by_words, score
from holdfast.cli import main
from holdfast.memory import Memory
from holdfast.testing.fakes import HashEmbedder

STATEMENTS = [
    "The captain of the Otters is Maud Finch.",
    "Tarn Hill is located in the county of Wexley.",
    "The captain of the Herons is Oskar Lund.",
    "The anthem of the Otters was written by Ina Bray.",
    "The captain of the Otters is Pavel Roth.",
    "Tarn Hill is located in the county of Marle.",
    "The anthem of the Otters was written by Tomas Vey.",
]
ASKED = {
    "Who is the captain of the Otters?": "Pavel Roth",
    "Who wrote the anthem of the Otters?": "Tomas Vey",
    "Which county is Tarn Hill located in?": "Wexley",
    "Who is the captain of the Herons?": "Oskar Lund",
}


@pytest.fixture
def path(tmp_path):
    context = "Here is a list of facts:\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(STATEMENTS))
    ids = [f"factconsolidation_{{}}_6k_no{n}" for n in range(len(ASKED))]
    records = [
        {
            "context": context,
            "questions": list(ASKED),
            "answers": [[answer] for answer in ASKED.values()],
            "metadata": {"qa_pair_ids": [one.format(hops) for one in ids]},
        }
        for hops in ("mh", "sh")
    ]
    file = tmp_path / "Conflict_Resolution.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    return file


def test_the_single_hop_set_is_loaded(path):
    (data,) = load_consolidation([path])

    assert (data.size, data.statements) == ("6k", tuple(STATEMENTS))
    assert data.questions[0] == ("Who is the captain of the Otters?", ("Pavel Roth",))


def test_what_is_no_such_file_is_refused(path, tmp_path):
    with pytest.raises(BadData, match="one file"):
        load_consolidation([])
    with pytest.raises(BadData, match="262k"):
        load_consolidation([path], ["262k"])
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    with pytest.raises(BadData):
        load_consolidation([other])


def test_a_key_that_names_the_older_statement_is_counted_as_such(path):
    (data,) = load_consolidation([path])

    assert data.newest("Which county is Tarn Hill located in?", ["Wexley"]) == STATEMENTS[5]
    assert score(data, rank_by_words(data)).older_keys == 1
    assert data.newest("Who?", ["Nobody"]) == ""


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "vectors"])
def test_the_latest_statement_stands_first_in_any_tense(path, embedder):
    (data,) = load_consolidation([path])
    with Memory(embedder=embedder) as memory:
        found = score(data, fill(memory, data))

    assert (found.newest, found.questions) == (4, 4)
    assert found.keyed == 3


def test_the_command_prints_ours_beside_words_alone(path, capsys):
    assert main(["bench", "consolidation", str(path), "--no-embedder"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert [line.split()[:3] for line in lines[-2:]] == [["6k", "holdfast", "1.00"], ["6k", "bm25", "1.00"]]


def test_words_alone_rank_the_newest_of_equals_first():
    data = Consolidation("6k", tuple(STATEMENTS), ())

    assert rank_by_words(data)("the captain of the Otters")[0] == STATEMENTS[4]
