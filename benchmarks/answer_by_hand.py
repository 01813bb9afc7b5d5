"""
Answer the prompts of Holdfast yourself, in place of a model, and record what you answered.

    python benchmarks/answer_by_hand.py CHATS.jsonl FOLDER [--case ID] [--economy] [--record FILE.model.jsonl]

CHATS holds cases as ``truth.py`` reads them, or the messages of one chat, a line each.  Start it in the background.  Whenever the
memory would call a model, FOLDER gets ``001.request.txt`` (then 002 …), with the chat, the layer, the instructions and the
text.  Write what a model would answer, exactly in the form that the instructions ask for, into ``001.answer.txt`` of
the same folder (best under another name first, then renamed); half a second later the memory goes on.  Every request and its answer are appended to the
recording (FOLDER/answers.model.jsonl), and a run that is started again takes from it what was asked word for word before.  At the end the facts, the
rows that were refused with the reasons, and what is missing are printed; ``truth.py CHATS.jsonl --answers FOLDER/answers.model.jsonl --show`` prints
them again, with whatever the code has become in the meantime.

Layers and what they want: ``facts`` CSV rows or NONE; ``episodes`` bullets with the message's number or "No facts to record"; ``chunk_summary``
and ``meta_summary`` labeled parts; ``combined`` (``--economy``) all in one; ``statements`` one line a group of sentences.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from recorded import RecordingModel
from truth import load_cases, print_case, run_case

from holdfast import Config


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chats", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--case", default="", help="only the chat of this id")
    parser.add_argument("--economy", action="store_true", help="one call a chunk instead of several")
    parser.add_argument("--record", type=Path, help="where answers are recorded")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    record = given.record or given.folder / "answers.model.jsonl"
    for case in load_cases(given.chats):
        if given.case in ("", case["id"]):
            model = RecordingModel(given.folder, record, case["id"])
            print_case(run_case(case, llm=model, config=Config(economy=given.economy)))


if __name__ == "__main__":
    main()
