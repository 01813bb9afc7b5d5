"""A prompt file is read into what is sent and what is tested."""

from __future__ import annotations

import pytest

from holdfast.llm.prompts import SAFETY, Example, load, parse

SOURCE = """\
# Facts

Read the facts.

Only stated ones.

## Answer

One a line:

```text
# not a heading
```

## Examples

### A move

```text
{"user": "I moved to Porto."}
```

```csv
home,lives_in,Porto,0.95
```

### Nothing

```text
{"user": "Hm."}
```

```csv
```
"""


def test_the_parts_of_a_file():
    prompt = parse("facts", SOURCE)

    assert prompt.task == "Read the facts.\n\nOnly stated ones."
    assert prompt.shape == "One a line:\n\n```text\n# not a heading\n```"
    assert prompt.examples == (
        Example("A move", '{"user": "I moved to Porto."}', "home,lives_in,Porto,0.95"),
        Example("Nothing", '{"user": "Hm."}', ""),
    )


def test_what_is_sent_ends_with_the_word_that_the_rest_is_data_and_holds_no_example():
    prompt = parse("facts", SOURCE)

    assert prompt.system == f"{prompt.task}\n\n{prompt.shape}\n\n{SAFETY}"
    assert len(prompt.digest) == 12


def test_own_words_replace_what_to_do_and_nothing_else():
    prompt = parse("facts", SOURCE)
    mine = prompt.reworded("  Lies die Fakten.\n")

    assert mine.system == f"Lies die Fakten.\n\n{prompt.shape}\n\n{SAFETY}"
    assert mine.digest != prompt.digest
    assert mine.reworded(prompt.task).digest == prompt.digest


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Read the facts.\n\n# Facts\n", "must begin"),
        ("# Facts\n", "must begin"),
        (SOURCE.replace("## Answer", "## Anwser"), "'Anwser' is unknown"),
        (SOURCE + "\n## Answer\n", "'Answer' is unknown or repeated"),
        (SOURCE.replace("```csv\nhome,lives_in,Porto,0.95\n```", ""), "'A move' must have two fenced blocks, it has 1"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(source, said):
    with pytest.raises(ValueError, match=said):
        parse("facts", source)


def test_an_unknown_prompt_is_refused():
    with pytest.raises(LookupError, match="no prompt 'lyrics'"):
        load("lyrics")
