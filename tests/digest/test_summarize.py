"""What a summary without a model promises: faithful, in order, bounded, the same every time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.digest.authorship import split_authorship
from holdfast.digest.salience import LANGUAGES, load_salience_words
from holdfast.digest.summarize import SummaryDraft, summarize_chunk, summarize_rest, tell_story
from holdfast.text.terms import count_tokens
from holdfast.types import Message

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
STAMP = re.compile(r"\[\d{4}-\d{2}-\d{2}\] ")


def talk(*lines: str) -> list[Message]:
    """Messages from ``"Priya: text"``, ``"assistant: text"``; a minute passes between them."""
    messages = []
    for seq, line in enumerate(lines, 1):
        speaker, _, content = line.partition(": ")
        role = speaker if speaker in ("user", "assistant", "tool", "system") else "user"
        name = None if role == speaker else speaker
        messages.append(Message(role, content, name=name, at=MONDAY + timedelta(minutes=seq), seq=seq))
    return messages


LUNA = talk(
    "Mia: Hi! I adopted a rescue dog last week, her name is Luna.",
    "assistant: Congratulations! How is she settling in?",
    "Mia: She is anxious. When I leave she barks for 40 minutes and I'm worried about the neighbours.",
    "assistant: That sounds stressful. I recommend leaving her alone for 5 minutes at first, then longer every day.",
    "Mia: Ok, I'll try that from tomorrow. Oh and she can't have chicken, the shelter said she's allergic.",
    "assistant: Good to know! Look for a fish-based food, for example salmon and rice. Let me know how it goes!",
    "Mia: The vet also prescribed 10 mg fluoxetine once a day.",
    "assistant: Give the fluoxetine in the morning with food, and expect four weeks before it works.",
    "Mia: Thanks!",
    "assistant: You're welcome! Feel free to ask if you have any other questions.",
)

TEN_EXCHANGES = talk(  # as long as its summary allows: the text takes it all
    "user: Hi! Luna, my rescue greyhound, howls whenever I leave the house. I'm really worried about her.",
    "assistant: Separation anxiety is common in rescues. Start with absences of two minutes and build up slowly.",
    "user: She destroyed the sofa cushion yesterday while I was at work. I feel guilty.",
    "assistant: Don't feel guilty. Leave a frozen Kong when you go, and try a camera to see when it starts.",
    "user: The neighbours complained about the barking too, I'm quite stressed.",
    "assistant: I'd recommend talking to them, and calming music at the same time each day.",
    "user: Would a crate help?",
    "assistant: Not if she panics in it. Use a pen with an open door instead.",
    "user: OK. She is allergic to chicken, so which treats are fine?",
    "assistant: Duck or salmon treats. Read the label for chicken fat.",
    "user: We started her on fluoxetine 20 mg once a day on Monday, the vet prescribed it.",
    "assistant: Give it with food. It takes four to six weeks to work. Watch her appetite.",
    "user: She eats a little less since then.",
    "assistant: That is a common side effect; call the vet if she skips two meals.",
    "user: She also had diarrhoea on Wednesday night.",
    "assistant: Give boiled rice for 24 hours and plenty of water.",
    "user: It is better today, thank God!",
    "assistant: Great, go back to her normal food over two days.",
    "user: Thanks, I'm relieved. Talk soon!",
    "assistant: You're welcome. Keep a diary of the absences.",
)


def words(text: str) -> int:
    return len(text.split())


def sentences_of(draft: SummaryDraft) -> list[tuple[str, str]]:
    """``(speaker, words)`` of each run of the text, without dates."""
    return [tuple(STAMP.sub("", line).split(": ", 1)) for line in draft.text.split("\n")]  # type: ignore[misc]


def letters(text: str) -> str:
    """*text* without everything that trimming may touch: only letters and digits are left."""
    return "".join(ch for ch in text.lower() if ch.isalnum())


class TestAChunk:
    def test_keeps_what_matters(self) -> None:
        text = summarize_chunk(LUNA).text

        assert all(part in text for part in ("adopted a rescue dog", "40 minutes", "allergic", "10 mg fluoxetine"))

    def test_leaves_greetings_and_pleasantries_out(self) -> None:
        text = summarize_chunk(LUNA).text

        assert not any(part in text for part in ("Thanks", "welcome", "Congratulations", "Feel free", "Let me know"))

    def test_says_who_said_it_and_when(self) -> None:
        draft = summarize_chunk(LUNA)

        assert draft.text.startswith("[2026-03-02] Mia: ")
        assert {speaker for speaker, _ in sentences_of(draft)} == {"Mia", "assistant"}

    def test_dates_stand_where_they_change(self) -> None:
        messages = [
            Message("user", "I booked the flight to Lisbon for 300 euros.", at=MONDAY, seq=1),
            Message(
                "user", "I cancelled the flight to Lisbon and lost 300 euros.", at=MONDAY + timedelta(days=1), seq=2
            ),
        ]

        assert STAMP.findall(summarize_chunk(messages).text) == ["[2026-03-02] ", "[2026-03-03] "]

    def test_sentences_of_one_message_keep_their_order(self) -> None:
        weighty = "Luna has a new toy. I was worried, so on March 3 we decided to book Dr. Wu for 80 euros."
        text = summarize_chunk(talk(f"Mia: {weighty}", "assistant: Ok.")).text

        assert text.startswith(f"[2026-03-02] Mia: {weighty}")

    def test_concerns_are_the_users_own_words(self) -> None:
        draft = summarize_chunk(LUNA)

        assert "When I leave she barks for 40 minutes and I'm worried about the neighbours." in draft.concerns
        assert not any("stressful" in concern for concern in draft.concerns)

    def test_actions_say_by_whom(self) -> None:
        actions = summarize_chunk(LUNA).actions

        assert any(a.startswith("assistant: I recommend leaving her alone") for a in actions)
        assert "Mia: I'll try that from tomorrow." in actions

    def test_a_short_talk_keeps_a_concern_and_an_action_although_its_text_says_them(self) -> None:
        draft = summarize_chunk(TEN_EXCHANGES)

        assert draft.concerns == ("I'm really worried about her.",)
        assert [action.partition(":")[0] for action in draft.actions] == ["assistant"]

    def test_themes_are_phrases_that_were_said(self) -> None:
        said = " ".join(m.content for m in LUNA).lower()
        found = summarize_chunk(LUNA).themes

        assert 2 <= len(found) <= 5
        assert all(theme.lower() in said for theme in found)
        assert "fluoxetine" in " ".join(found)

    def test_counts_exchanges_and_names_its_source(self) -> None:
        draft = summarize_chunk(LUNA)

        assert (draft.exchanges, draft.source) == (5, "rules 1")

    def test_is_the_same_every_time(self) -> None:
        assert summarize_chunk(LUNA) == summarize_chunk(list(LUNA))

    @pytest.mark.parametrize(
        "news",
        [
            "They turned me down. Too little MPC.",
            "It's Alzheimer's, moderate.",
            "The title is now Bora.",
            "New HbA1c: 6.9!",
        ],
    )
    @pytest.mark.parametrize("after", [(), ("Mia: Thanks, talk to you soon!", "assistant: Bye!"), ("Mia: What now?",)])
    def test_a_user_s_last_news_is_told_however_rich_the_talk_was(self, news: str, after: tuple[str, ...]) -> None:
        worries = ("pain", "stairs", "money", "sleep", "infection", "driving", "work", "scars")
        plans = [
            f"Mia: I decided that Dr. Wu operates on 1{n} March, I'm worried about {w}." for n, w in enumerate(worries)
        ]
        rich = [line for plan in plans for line in (plan, "assistant: That is a good plan.")]

        draft = summarize_chunk(talk(*rich, f"Mia: {news}", "assistant: I see.", *after))

        assert all(sentence in draft.text for sentence in re.split(r"(?<=[.!]) ", news))

    def test_a_cheer_that_ends_a_talk_between_people_is_no_news(self) -> None:
        plans = [
            f"{who}: I opened shop {n} on 1{n} March, it cost {n}000 euros."
            for n in range(1, 6)
            for who in ("Jo", "Gina")
        ]

        assert "cheering" not in summarize_chunk(talk(*plans, "Jo: Always cheering for the two of us.")).text

    def test_a_short_feeling_at_the_end_comes_with_what_was_said_before_it(self) -> None:
        rich = [
            f"user: Dr. Wu gave her {number}0 mg of Apoquel for the rash on 1{number} March." for number in range(9)
        ]
        lines = [line for said in rich for line in (said, "assistant: Good.")]
        text = summarize_chunk(
            talk(*lines, "user: She scratches no more.", "assistant: Great.", "user: I'm so glad, I cried.")
        ).text

        assert "She scratches no more." in text

    @pytest.mark.parametrize("reply", ["I see.", "Noted.", "I'll keep that in mind.", "Fair enough."])
    def test_an_answer_that_says_nothing_is_no_summary(self, reply: str) -> None:
        """So it is where the words that it answered were forgotten."""
        assert summarize_chunk(talk(f"assistant: {reply}")).text == "(no words)"

    @pytest.mark.parametrize(
        "said", ["Noted: 5 mg at night.", "Interesting offer from Bosch.", "Excellent results from the MRI."]
    )
    def test_news_that_opens_like_a_courtesy_is_told(self, said: str) -> None:
        assert said in summarize_chunk(talk(f"user: {said}", "assistant: I see.")).text

    def test_of_small_talk_alone_still_says_something(self) -> None:
        assert (
            summarize_chunk(talk("Ana: Hi!", "assistant: Hello there!")).text
            == "[2026-03-02] Ana: Hi!\nassistant: Hello there!"
        )

    @pytest.mark.parametrize("contents", [[], [""], ["", "  \n", "…"], ["```\ncode\n```"]])
    def test_without_words_says_so(self, contents: list[str]) -> None:
        draft = summarize_chunk([Message("user", content, seq=seq) for seq, content in enumerate(contents, 1)])

        assert draft.text == "(no words)"
        assert draft.themes == draft.concerns == draft.actions == ()


class TestOthersWords:
    """What a user only quotes or imagines never stands as the user's own."""

    QUOTED = (
        "Mia: My sister wrote me this: \"I can't sleep without a proper bed. I hate hot springs, and I am terrified of "
        'trains, of planes, of boats and of anything else that moves faster than I can walk on a good day in May."',
    )

    def test_a_quotation_keeps_who_is_quoted(self) -> None:
        text = summarize_chunk(talk(*self.QUOTED)).text

        assert text.startswith("[2026-03-02] Mia: My sister wrote me this: \"I can't sleep")
        assert "hot springs" not in text

    def test_a_quoted_worry_is_not_the_speakers(self) -> None:
        draft = summarize_chunk(
            talk('Mia: Her mail said "I am worried and terrified of the surgery on Friday".', "assistant: Ok.")
        )

        assert draft.concerns == ()

    def test_what_is_imagined_is_no_concern_and_no_plan(self) -> None:
        draft = summarize_chunk(
            talk("Mia: If I lived in Tokyo I'd be stressed, and I would have booked a flight.", "assistant: Ok.")
        )

        assert draft.concerns == draft.actions == ()


class TestAnswers:
    def test_inches_open_no_quotation(self) -> None:
        assert "I love it" in summarize_chunk(talk('Ana: I bought a 27" monitor. I love it so much already.')).text

    def test_a_short_answer_stands_with_its_question(self) -> None:
        text = summarize_chunk(talk("Ana: How many kilos does Luna weigh?", "Bo: 14 kilos.")).text

        assert text == "[2026-03-02] Ana: How many kilos does Luna weigh?\nBo: 14 kilos."


class TestToolsAndCode:
    CALL = Message(
        "assistant",
        "",
        at=MONDAY,
        seq=2,
        meta={
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "lookup_order", "arguments": "{}"}}]
        },
    )
    RESULT = Message("tool", '{"order": "A-1", "secret": "' + "x" * 9000, at=MONDAY, seq=3, meta={"tool_call_id": "c1"})

    def test_tools_are_named_and_their_results_are_not_quoted(self) -> None:
        messages = [Message("user", "Where is order A-1?", at=MONDAY, seq=1), self.CALL, self.RESULT]
        text = summarize_chunk(messages).text

        assert "assistant used: lookup_order." in text
        assert "secret" not in text

    def test_code_and_quoted_lines_are_not_told(self) -> None:
        text = summarize_chunk(
            talk(
                "user: My query fails on PostgreSQL 16.\n```sql\nSELECT secret FROM vault\n```\n> I am a quoted line about Rome",
                "assistant: **Add an index** on `created_at`, that should fix the timeout.",
            )
        ).text

        assert "SELECT" not in text
        assert "Rome" not in text
        assert "Add an index on created_at, that should fix the timeout." in text

    @pytest.mark.parametrize(
        "meta", [{"tool_calls": "x"}, {"tool_calls": [1, {"function": 3}, {"function": {"name": 7}}, {}]}]
    )
    def test_broken_tool_calls_are_passed_over(self, meta: dict[str, object]) -> None:
        text = summarize_chunk([Message("assistant", "The order has shipped.", at=MONDAY, seq=1, meta=meta)]).text

        assert text == "[2026-03-02] assistant: The order has shipped."


class TestAnySize:
    @pytest.mark.parametrize(
        "content",
        [
            "I moved to Lisbon in 2019 and I love it. " * 25_000,
            "x" * 1_000_000,
            "漢" * 1_000_000,
            "a " * 500_000,
            ". " * 500_000,
            "I, " * 300_000,
            "(" * 1_000_000,
            "*" * 1_000_000,
            "[" * 500_000 + "](" * 200_000,
            "\n" * 1_000_000,
        ],
        ids=["prose", "word", "han", "words", "stops", "commas", "brackets", "stars", "links", "lines"],
    )
    def test_a_megabyte_makes_no_long_summary(self, content: str) -> None:
        draft = summarize_chunk([Message("user", content, at=MONDAY, seq=1)])

        assert words(draft.text) <= 130
        assert all(len(part) < 1_200 for part in (draft.text, *draft.themes, *draft.concerns, *draft.actions))

    def test_ordinary_chat_is_told_in_some_100_words(self) -> None:
        messages = talk(
            *(
                f"{who}: On day {n} we drove {n * 37} km to town number {n}, and I liked the old harbour of it very much. "
                f"The hotel there cost {n * 11} euros, which was more than we had planned to spend on a bed."
                for n, who in enumerate(["Ana", "Bo"] * 5, 1)
            )
        )

        assert 60 <= words(summarize_chunk(messages).text) <= 140


class TestLanguages:
    @pytest.mark.parametrize(
        ("lines", "told", "concern"),
        [
            (["user: 안녕하세요! 저는 서울에 살아요. 강아지 이름은 초코예요.", "user: 초코가 어제부터 계속 토해서 걱정돼요."], "서울에 살아요", "걱정돼요"),
            (["user: 你好！我住在北京。我对花生过敏。", "user: 我很担心下周的手术。"], "我对花生过敏", "担心"),
            (["user: こんにちは。私は東京に住んでいます。", "user: 犬が昨日から吐いているので心配です。"], "東京に住んでいます", "心配です"),
            (["user: Hola, vivo en Madrid desde 2019.", "user: Estoy preocupada por mi perro, no come."], "vivo en Madrid", "preocupada"),
            (["user: Hallo, ich wohne in Berlin.", "user: Ich mache mir Sorgen um meinen Hund, er frisst nicht."], "ich wohne in Berlin", "Sorgen"),
            (["user: Bonjour, j'habite à Lyon.", "user: Je suis inquiète pour mon chien, il ne mange plus."], "j'habite à Lyon", "inquiète"),
        ],
        ids=["ko", "zh", "ja", "es", "de", "fr"],
    )  # fmt: skip
    def test_what_was_said_is_told_and_worries_are_seen(self, lines: list[str], told: str, concern: str) -> None:
        draft = summarize_chunk(talk(*lines))

        assert told in draft.text
        assert any(concern in each for each in draft.concerns)

    def test_themes_stand_in_the_text_where_words_are_not_set_apart(self) -> None:
        content = "我的狗豆豆最近一直在吐。兽医说豆豆对鸡肉过敏，我们换成了三文鱼狗粮。豆豆喜欢三文鱼狗粮。"
        found = summarize_chunk(talk(f"user: {content}")).themes

        assert any("豆豆" in theme for theme in found)
        assert all(theme in content for theme in found)

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_every_lexicon_loads_and_lower_case_is_what_it_holds(self, language: str) -> None:
        entries = load_salience_words(language).entries

        assert len(entries.words) + len(entries.anywhere) > 20
        assert all(word == word.lower() for word in entries.words)

    def test_a_language_without_a_lexicon_is_told_all_the_same(self) -> None:
        draft = summarize_chunk(talk("user: Привет! Я живу в Москве с 2019 года и работаю врачом.", "user: Спасибо."))

        assert "Я живу в Москве с 2019 года" in draft.text


PIECES = [
    "I moved to Lisbon in 2019.", "My budget is $3,000, not more!", "Well, I think so.", "haha", "Is it normal that she limps?",
    "We switched to MySQL; the old server crashed", "I'm worried about the surgery on Friday…", "안녕하세요. 저는 채식주의자예요.",
    "我住在北京，喜欢吃辣。", "See https://example.org/a_b?c=1 for more.", "**Bold** and _thin_ `code` here", "- first\n- second point here",
    "# Heading\ntext", "```\nx = 1\n```", "> quoted words", "No.", "😀", "Dr. Smith prescribed 5.5 mg, twice a day, since the old dose made her ill and tired and sleepy all day long, which nobody wanted to see again.",
]  # fmt: skip
TALKS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "Ana", "Bo"]), st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=4)),
    max_size=14,
).map(lambda said: [Message(*_role(who), at=MONDAY + timedelta(hours=7 * n), seq=n, content=" ".join(parts)) for n, (who, parts) in enumerate(said, 1)])  # fmt: skip


def _role(who: str) -> tuple[str]:
    return (who if who in ("user", "assistant") else "user",)


@given(TALKS)
@settings(max_examples=100, deadline=None)
def test_no_sentence_was_never_said(messages: list[Message]) -> None:
    """Every run of words between attribution and "…" stands, letter for letter, in a message."""
    draft = summarize_chunk(messages)
    plain = [re.sub(r"```.*?(```|\Z)", "", m.content, flags=re.DOTALL) for m in messages]
    said = [letters(text) for content in plain for text in (content, re.sub(r"</?[A-Za-z][^<>]*>", "", content))]
    if draft.text in {load_salience_words(language).labels["nothing"] for language in LANGUAGES}:
        return
    told = [part for _, text in sentences_of(draft) for part in re.split(r"(?<=[.!?…。！？؟:;])[”]?\s+|\s*…\s*", text)]
    told += [
        part for each in (*draft.concerns, *(a.split(": ", 1)[1] for a in draft.actions)) for part in each.split("…")
    ]

    assert [part for part in told if not any(letters(part) in content for content in said)] == []


@given(TALKS)
@settings(max_examples=100, deadline=None)
def test_sentences_come_in_the_order_in_which_they_were_said(messages: list[Message]) -> None:
    stamps = STAMP.findall(summarize_chunk(messages).text)

    assert stamps == sorted(stamps)


@given(TALKS)
@settings(max_examples=100, deadline=None)
def test_a_summary_is_plain_and_bounded(messages: list[Message]) -> None:
    draft = summarize_chunk(messages)

    assert draft.text.strip()
    assert words(draft.text) <= 160
    assert len(draft.themes) <= 5
    assert len(draft.concerns) <= 3
    assert len(draft.actions) <= 4
    assert not any("\n" in part for part in (*draft.themes, *draft.concerns, *draft.actions))


def test_what_a_user_pasted_is_not_said_by_the_user() -> None:
    """A sentence of a pasted mail or chat stands in quotation marks, or not at all."""
    mail = "Can you answer this mail?\n\nFrom: Bob <b@x.test>\nSubject: flat\n\nI live in Rome and I decided to sell the flat in June."
    chat = "Summarise this chat:\n[2025-03-03 08:15] Susan: I quit my job at the bank and moved to Graz."
    for pasted in (mail, chat):
        text = summarize_chunk(
            [Message("user", "I live in Porto."), Message("assistant", "Nice!"), Message("user", pasted)]
        ).text

        assert "I live in Porto" in text
        for words in ("I live in Rome", "I quit my job"):
            assert words not in text or f"“{words}" in text


def test_a_reply_that_comes_again_costs_no_sentence_of_the_user() -> None:
    said = ["My wife Ilse is vegetarian.", "Our son Bram only eats pasta."]
    messages = [
        m for text in said for m in (Message("user", text), Message("assistant", "I see, thanks for telling me."))
    ]

    text = summarize_chunk(messages).text

    assert all(sentence in text for sentence in said)


def test_a_reply_without_content_is_not_told() -> None:
    said = ["I got the head of department post!!", "We're driving to Asturias on July 20."]
    messages = [m for text in said for m in (Message("user", text), Message("assistant", "Thanks for telling me."))]

    text = summarize_chunk(messages).text

    assert all(sentence in text for sentence in said)
    assert "Thanks" not in text


def test_what_is_over_is_no_concern_and_what_to_stay_with_is_advice() -> None:
    draft = summarize_chunk(
        talk(
            "user: No fleas, and with the old food she scratches much less.",
            "assistant: Good. Stay with the old food, and no treats with salmon.",
            "user: All good now, she has not scratched for a week!",
            "assistant: Great news. Before the anaesthesia she should not eat for 12 hours.",
        )
    )

    assert draft.concerns == ()
    assert [action.partition(": ")[2] for action in draft.actions] == [
        "Stay with the old food, and no treats with salmon.",
        "Before the anaesthesia she should not eat for 12 hours.",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "The result of the second test came: all fine.",
        "The email came: we got the flat!",
        "He wrote: I'm sorry, come back.",
    ],
)
def test_a_few_words_after_a_colon_stay_with_what_announces_them(said: str) -> None:
    """They may be another's, but without them the sentence says nothing."""
    assert said in summarize_chunk(talk(f"user: {said}", "assistant: I see.")).text


def test_a_story_with_room_for_all_leaves_out_no_sentence_of_the_user() -> None:
    """Weak words count where nothing stronger wants the room; what says nothing is left out all the same."""
    said = ["I got the head of department post!!", "We're driving to Asturias on July 20 for ten days."]
    chats = [said, ["We bought the bike.", "Our rent goes up to 950 in June."]]
    talks = [
        summarize_rest(
            talk(*(line for text in chat for line in (f"user: {text}", "assistant: Thanks for telling me.")))
        )
        for chat in chats
    ]

    told = "\n".join(line.text for line in tell_story(talks, 400))

    assert all(sentence in told for sentence in said)
    assert "Thanks" not in told


@pytest.mark.parametrize(
    "text", ["from april we're opening at 6:30", "we open at 7 on weekdays and at 8:30", "date with Sam at 7:30"]
)
def test_a_time_at_the_end_of_a_sentence_makes_no_transcript(text: str) -> None:
    assert split_authorship(text) == (text, "")


@pytest.mark.parametrize(
    "news",
    [
        "She ate rat poison in the shed at noon, I saw the blue grains.",
        "She fainted on the stairs for ten seconds.",
        "The lump on her belly has doubled in size.",
        "She had a seizure in the garden.",
    ],
)
def test_an_emergency_outweighs_small_talk(news):
    walks = [
        "We went round the pond and she pulled whenever a duck came by. The sun was out and we stayed for an hour.",
        "She slept on the sofa and snored all afternoon. My sister came along with her pram and the two kids.",
        "The neighbour's boy threw sticks for her and she fetched them all. We had ice cream on the way home.",
        "She stole a sausage off the grill and looked proud. Traffic was terrible on the ring road again.",
        "We tried the new harness and it fits her chest well. I had to be back for a meeting at four.",
    ]
    with Memory(embedder=None) as memory:
        chat = memory.conversation("a", user="u")
        for number, walk in enumerate(walks):
            chat.record(walk, "Lovely. Walk her on the left side and praise her when she looks at you.")
            if number == 2:
                chat.record(news, "Go to the emergency vet now, do not wait.")
        chat.end()
        memory.digest()
        [summary] = [one for one in chat.summaries() if one.level == 1][:1]

    assert news.rstrip(".") in summary.text
    assert any(news[:20] in concern for concern in summary.concerns)
    assert any("emergency vet" in action for action in summary.actions)


FRIENDS = talk(
    "Ines: Guess what, I got the keys for the bakery in Rua Nova yesterday! I sign the lease for the second oven on Friday.",
    "Tom: Wow, that's incredible! You're such an inspiration, you never give up on your dreams. You must feel on top of the world!",
    "Ines: Thanks! You always know what to say. My brother Paulo is painting the walls. He works nights at the port, so it takes two weeks.",
    "Tom: Your brother is a gem. Keep believing in yourself, you're going to make so many people happy with your bread!",
    "Ines: I hope so. I'm scared about the loan, it's 38,000 euros over ten years. The bank wanted my flat as security.",
    "Tom: You've got this! You are so brave and determined, I really respect you for how you handle things that are scary.",
    "Ines: That means a lot. How was your week?",
    "Tom: I broke my wrist on Tuesday when I fell off the ladder. The cast comes off in six weeks, so no rowing until August, right?",
    "Ines: Oh no! You're so unlucky with ladders. You should rest and let others do the work for you.",
    "Tom: You're right, you always look out for me. I moved the regatta to September and told the club.",
    "Ines: Your club is lucky to have you! You're the kindest trainer they could wish for.",
    "Tom: You're too kind. You make me smile every time. Let's keep supporting each other, you and me!",
)


def test_a_summary_of_short_messages_is_a_third_of_them_and_tells_what_happened() -> None:
    draft = summarize_chunk(FRIENDS)
    told = sum(count_tokens(message.content) for message in FRIENDS)

    assert 300 <= told
    assert count_tokens(draft.text) <= told / 3
    for happened in ("got the keys", "38,000 euros", "broke my wrist", "moved the regatta"):
        assert happened in draft.text
    for praise in ("inspiration", "so unlucky", "kindest trainer", "too kind", "keep supporting", "respect you"):
        assert praise not in draft.text
    assert not any("respect you" in concern for concern in draft.concerns)


def test_a_sentence_about_him_follows_the_one_that_names_him() -> None:
    said = talk(
        "Ines: The oven comes on Friday. My brother Paulo is painting. He is allergic to wheat flour and has asthma since 2019.",
        "assistant: Keep him out of the mill room.",
        *(f"Ines: The {day} batch had {number} loaves of rye, sold at the market by noon." for day, number in BATCHES),
    )
    text = summarize_chunk(said).text

    assert "He is allergic" in text
    assert "My brother Paulo is painting. He is allergic" in text


BATCHES = (("Monday", 40), ("Tuesday", 55), ("Wednesday", 61), ("Thursday", 48), ("Friday", 90), ("Saturday", 120))


def test_a_question_is_not_told_as_a_statement() -> None:
    draft = summarize_chunk(talk("Ines: My flight to Porto leaves on Friday at 7, right?", "assistant: At 9, gate 12."))

    assert "right?" in draft.text
