"""The story of a subject: above its conversations, dated, traced to their summaries, bounded, erased and made again with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from holdfast import Config, Memory
from holdfast.context.result import Context
from holdfast.recall import search
from holdfast.scope import Scope
from holdfast.store import ConsentRow, ReadView
from holdfast.testing.fakes import FakeClock
from holdfast.text.terms import count_tokens
from holdfast.types import Story, StoryLine

SUBJECTS = {
    "luna": ["limps on the left leg", "sleeps in the hall", "eats duck only", "chases the postman", "weighs more"],
    "max": ["coughs at night", "hides under the sofa", "refuses the blue pill", "swims in the lake", "lost a tooth"],
    "shop": ["opens on Tuesdays", "sells green candles", "needs a new roof", "hired a painter", "moved to Mill Street"],
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 5, 9, tzinfo=UTC))


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=None, clock=clock, config=Config(story_tokens=300)) as memory:
        yield memory


def visit(memory: Memory, clock: FakeClock, subject: str, number: int, *, user: str = "elena") -> None:
    """Talk about one subject in a conversation of its own; each has a word that no other has."""
    chat = memory.conversation(f"{subject} {number}", user=user, subject=subject)
    what = SUBJECTS[subject][number % 5]
    chat.record(
        f"On visit {number} I noticed that {subject.title()} {what}, near the {subject}mark{number} gate.", "I see."
    )
    chat.record(f"I'm worried that {subject.title()} {what} more often than before.", "Let's watch it until next week.")
    chat.record(
        f"I decided to write it down as note {subject}note{number} every evening.", "Good idea, keep doing that."
    )
    clock.advance(days=3)


def thirty(memory: Memory, clock: FakeClock) -> None:
    for number in range(10):
        for subject in SUBJECTS:
            visit(memory, clock, subject, number)
    memory.digest()


def story(memory: Memory, subject: str) -> Story:
    return memory.user("elena").story(subject)


def begin(memory: Memory, subject: str) -> Context:
    return memory.conversation("new", user="elena", subject=subject).context("Hi, we're back. Any better?", note=False)


def summary_ids(memory: Memory, subject: str) -> set[str]:
    chats = [memory.conversation(f"{subject} {number}", user="elena", subject=subject) for number in range(10)]
    return {one.id for chat in chats for one in chat.summaries()}


def test_thirty_conversations_of_three_subjects_make_three_stories(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)

    for subject, others in ((one, set(SUBJECTS) - {one}) for one in SUBJECTS):
        told = story(memory, subject)
        summaries = {
            one.id: one
            for number in range(10)
            for one in memory.conversation(f"{subject} {number}", user="elena", subject=subject).summaries()
        }
        assert count_tokens(told.text) <= 300
        assert all(other not in told.text.casefold() for other in others)
        assert {one.summary for line in told.lines for one in line.sources} == set(summaries)
        for line in told.lines:
            said = "\n".join(summaries[one.summary].text for one in line.sources)
            words = [
                word
                for word in line.text.replace("]", " ").replace("[", " ").split()
                if "mark" in word or "note" in word
            ]
            assert line.first_at is not None
            assert line.dated[:2] == "20" or line.dated[:3] == "[20"
            assert all(word.strip(".,") in said for word in words)
        assert [line.first_at for line in told.lines] == sorted(line.first_at for line in told.lines)  # type: ignore[type-var]
    assert memory.doctor().ok


def test_two_conversations_make_no_story_and_three_do(memory: Memory, clock: FakeClock) -> None:
    for number in range(2):
        visit(memory, clock, "luna", number)
    memory.digest()
    assert memory.user("elena").story("luna").lines == ()

    visit(memory, clock, "luna", 2)
    memory.digest()
    assert len(story(memory, "Luna").lines) == 3


def test_a_new_conversation_begins_with_the_story(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)

    context = begin(memory, "luna")

    told = story(memory, "luna")
    shown = [one for one in context.sources if one.section == "earlier"]
    assert {one.kind for one in shown} == {"story"}
    assert {one.id for one in shown} == {told.id}
    assert told.lines[-1].text[:40] in context.section("earlier").text.replace("\\n", "\n")
    assert "max" not in context.section("earlier").text.casefold()


def test_what_the_story_does_not_tell_yet_follows_by_itself(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    chat = memory.conversation("fresh", user="elena", subject="luna")
    chat.record("Luna jumped over the garden fence.", "Oh!")
    chat.record("She came back with the neighbor.", "Good.")

    context = begin(memory, "luna")

    assert "garden fence" in context.section("earlier").items[-1]
    assert {one.kind for one in context.sources if one.section == "earlier"} == {"story", "message"}


def test_it_is_made_again_when_a_conversation_changes(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    before = story(memory, "luna")

    visit(memory, clock, "luna", 10)
    memory.digest()

    after = story(memory, "luna")
    assert after.version == before.version + 1
    assert any(one.conversation == "luna 10" for line in after.lines for one in line.sources)
    assert story(memory, "max").version == 1


def test_nothing_is_made_again_without_a_change(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    before = story(memory, "luna")
    clock.advance(days=30)
    memory.digest()

    assert story(memory, "luna") == before


def test_a_cleared_conversation_goes_from_the_story_at_once(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    before = story(memory, "luna")
    resting = [line for line in before.lines if any(one.conversation == "luna 9" for one in line.sources)]

    receipt = memory.conversation("luna 9", user="elena", subject="luna").clear()

    assert receipt.rows["story lines"] == len(resting)
    left = story(memory, "luna")
    assert list(left.lines) == [line for line in before.lines if line not in resting]
    assert "lunamark9" not in left.text
    assert "lunamark9" not in begin(memory, "luna").to_text()
    assert memory.doctor().ok
    memory.digest()
    again = story(memory, "luna")
    assert {one.summary for line in again.lines for one in line.sources} == summary_ids(memory, "luna")
    assert story(memory, "max").version == 1


def test_an_erased_message_goes_from_the_story(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)

    receipt = memory.conversation("luna 9", user="elena", subject="luna").forget(1)
    assert receipt.rows["story lines"] >= 1
    assert "lunamark9" not in story(memory, "luna").text

    memory.digest()
    assert "lunamark9" not in story(memory, "luna").text
    assert {one.summary for line in story(memory, "luna").lines for one in line.sources} == summary_ids(memory, "luna")
    assert memory.doctor().ok


def test_a_story_of_two_conversations_goes(memory: Memory, clock: FakeClock) -> None:
    for number in range(3):
        visit(memory, clock, "luna", number)
    memory.digest()

    memory.conversation("luna 0", user="elena", subject="luna").clear()
    memory.digest()

    assert memory.user("elena").story("luna").lines == ()


def test_nothing_is_left_of_an_erased_user_or_subject(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)

    memory.user("elena", subject="luna").erase()
    assert memory.user("elena").story("luna").lines == ()
    assert story(memory, "max").version == 1

    memory.user("elena").erase()
    assert memory.user("elena").story("max").lines == ()
    assert memory.doctor().ok


def test_a_paused_user_has_no_story_made(memory: Memory, clock: FakeClock) -> None:
    for number in range(3):
        visit(memory, clock, "luna", number)
    memory.user("elena").pause()
    memory.digest()

    assert memory.user("elena").story("luna").lines == ()
    assert begin(memory, "luna").tokens < 30


def test_a_conversation_that_the_story_tells_is_not_told_twice_to_itself(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)

    context = memory.conversation("luna 9", user="elena", subject="luna").context("And now?", note=False)

    assert "lunamark9" not in context.section("earlier").text
    assert "lunamark9" in context.section("recent").text


def test_merged_subjects_have_one_story(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)

    memory.user("elena").merge_subjects("max", "luna")
    memory.digest()

    told = story(memory, "luna")
    assert story(memory, "max") == told  # a name of it now
    assert {one.conversation.split()[0] for line in told.lines for one in line.sources} == {"luna", "max"}
    assert memory.doctor().ok


def test_a_rebuilt_summary_is_told_by_the_story(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    chat = memory.conversation("luna 9", user="elena", subject="luna")

    rebuilt = chat.rebuild("summaries")
    memory.digest()
    assert story(memory, "luna").version == 2
    assert {one.summary for line in story(memory, "luna").lines for one in line.sources} == summary_ids(memory, "luna")

    chat.restore(rebuilt.id)
    memory.digest()
    assert story(memory, "luna").version == 3
    assert {one.summary for line in story(memory, "luna").lines for one in line.sources} == summary_ids(memory, "luna")
    assert story(memory, "max").version == 1


def test_a_story_that_waited_through_a_pause_is_made_after_it(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    memory.conversation("luna 9", user="elena", subject="luna").rebuild("summaries")
    memory.user("elena").pause()
    memory.user("elena").resume()
    memory.digest()

    assert story(memory, "luna").version == 2
    assert story(memory, "max").version == 1


def test_an_imported_user_has_stories(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    exported = memory.user("elena").export()

    with Memory(embedder=None, clock=clock, config=Config(story_tokens=300)) as other:
        other.import_(exported)
        other.digest()

        assert story(other, "luna").text == story(memory, "luna").text
        assert other.doctor().ok


def test_only_past_facts_that_a_text_says_are_looked_up(
    memory: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = search._replacement

    def counted(view: ReadView, chosen: Sequence[ConsentRow], known: dict[str, str], fact_id: str) -> str:
        asked.append(fact_id)
        return plain(view, chosen, known, fact_id)

    monkeypatch.setattr(search, "_replacement", counted)
    chat = memory.conversation("moves", user="elena", subject="luna")
    for city in ("Porto", "Faro", "Lagos", "Braga", "Evora", "Sines"):
        chat.record(f"I live in {city}.", "Noted.")
        clock.advance(minutes=5)
    chat.end()
    memory.digest()
    summary = replace(chat.summaries()[0], start_seq=1, end_seq=12, themes=())
    (porto,) = (fact for fact in memory.user("elena").history("home") if fact.value == "Porto")
    scope = Scope("default", "default", "elena", "luna", "moves")

    for text, left, looked_up in (
        ("Luna ate.", "Luna ate.", []),
        ("Luna ate. Home is Porto.", "Luna ate.", [porto.id]),
    ):
        told = [replace(summary, text=text)]
        lines = [StoryLine(text, None, None, ())]
        asked.clear()
        shown = memory._engine.store.read(scope, partial(search.without_changed, summaries=told))
        assert [one.text for one in shown] == [left]
        assert asked == looked_up
        asked.clear()
        said = memory._engine.store.read(scope, partial(search.without_changed_lines, lines=lines))
        assert [one.text for one in said] == [left]
        assert asked == looked_up


def test_what_was_written_by_hand_has_no_story_made_again(memory: Memory, clock: FakeClock) -> None:
    for number in range(3):
        visit(memory, clock, "luna", number)
    memory.user("elena", subject="luna").remember("Luna is afraid of the vacuum cleaner.")
    memory.digest()

    assert story(memory, "luna").lines
    assert [job for job in memory.jobs() if job.kind == "story"] == []


def test_the_general_story_stands_beside_that_of_a_subject_when_asked_for(memory: Memory, clock: FakeClock) -> None:
    """With `general=True` also in the first chat about a subject; without it, and to other users, never."""
    for month, news in (
        ("may", "started pottery in Lindau"),
        ("june", "fired the first bowl"),
        ("july", "sold a vase at the fair"),
    ):
        chat = memory.conversation(month, user="ana")
        chat.record(f"I {news}, on a Tuesday evening after work.", "Well done.")
        chat.end()
        clock.advance(days=20)
    memory.digest()
    assert len(memory.user("ana").story().lines) >= 3

    def shown(user: str, **more: bool) -> str:
        context = memory.conversation("first", user=user, subject="shop").context("What's new?", **more)
        return "".join(section.text for section in context.sections if section.name == "earlier")

    assert "sold a vase at the fair" in shown("ana", general=True)
    assert shown("ana") == shown("bob", general=True) == ""


def test_the_story_keeps_how_values_went_though_each_has_changed_since(memory: Memory, clock: FakeClock) -> None:
    visits = [
        "The cat is losing weight and vomits every morning; she weighs 3.2 kg.",
        "Since we switched her to rabbit food the vomiting is gone and she weighs 3.6 kg.",
        "She weighs 4.0 kg.",
    ]
    for number, said in enumerate(visits):
        chat = memory.conversation(f"v{number}", user="u", subject="luna")
        chat.record(said, "I see.")
        chat.end()
        memory.digest()
        clock.advance(days=30)
    told = memory.user("u").story("luna").text

    assert [weight for weight in ("3.2 kg", "3.6 kg", "4.0 kg") if weight in told] == ["3.2 kg", "3.6 kg", "4.0 kg"]
    assert "vomits every morning" in told
    earlier = memory.conversation("new", user="u", subject="luna").context("Is she any better?").section("earlier")
    assert "rabbit food" in earlier.text


VISITS = [
    "Max scratches his ears all night.",
    "The vet found ear mites in Max's left ear.",
    "Max gets ear drops twice a day, he hates them.",
    "Max's ears are clean again, he sleeps through.",
    "Max growled at the neighbour's cat today.",
    "We started a desensitisation training for Max.",
    "Max ignored the cat on the walk today, great progress!",
    "Max ate a sock on Friday.",
    "The sock came out on Sunday, Max is fine.",
    "Max turned 9, his hips are stiff in the morning.",
]


@pytest.mark.parametrize("most", [400, 200])
def test_every_visit_has_a_line_and_what_is_asked_at_each_takes_no_room(clock: FakeClock, most: int) -> None:
    """What was seen stays, true of its day, although it has ended; where there is less room, older visits share lines."""
    with Memory(embedder=None, clock=clock, config=Config(story_tokens=most)) as memory:
        for number, said in enumerate(VISITS):
            chat = memory.conversation(f"max {number}", user="elena", subject="max")
            chat.record(said, "Thank you, noted.")
            chat.record("Should I change anything?", "Keep going as before and tell me in a week.")
            chat.end()
            clock.advance(days=9)
        memory.digest()
        told = memory.user("elena").story("max")

    assert count_tokens(told.text) <= most
    assert {one.conversation for line in told.lines for one in line.sources} == {f"max {n}" for n in range(10)}
    assert "Should I change anything?" not in told.text
    if most == 400:
        assert [said for said in VISITS if said not in told.text] == []


def test_what_is_said_again_is_told_once_but_a_trouble_each_time(clock: FakeClock) -> None:
    with Memory(embedder=None, clock=clock) as memory:
        for number, news in enumerate(["We walked to the lake.", "We walked to the mill.", "We walked to the church."]):
            chat = memory.conversation(f"v{number}", user="elena", subject="luna")
            chat.record(f"{news} Luna vomited in the car. My sister came along.", "I see.")
            chat.end()
            clock.advance(days=9)
        memory.digest()
        told = memory.user("elena").story("luna").text

    assert told.count("vomited in the car") == 3
    assert told.count("My sister came along") == 1


def test_each_line_of_a_story_ends_with_the_news_of_its_talk(clock: FakeClock) -> None:
    news = ["She eats again.", "The lump was benign, nothing more.", "We moved her to the other stable."]
    with Memory(embedder=None, clock=clock) as memory:
        for number, last in enumerate(news):
            chat = memory.conversation(f"v{number}", user="elena", subject="luna")
            for day in range(10):
                chat.record(
                    f"On March {day + 1} Dr. Wu gave Luna {day + 2}0 mg of medicine {number}{day} and I decided to book visit {day}, as I was worried.",
                    "I recommend that you keep a diary.",
                )
            chat.record(last, "I see.")
            chat.end()
            clock.advance(days=9)
        memory.digest()
        lines = memory.user("elena").story("luna").lines

    assert [last for last, line in zip(news, lines, strict=True) if last not in line.text] == []


def test_a_talk_of_which_only_an_empty_answer_is_left_has_no_line(clock: FakeClock) -> None:
    with Memory(embedder=None, clock=clock) as memory:
        for number, said in enumerate(
            ["I repair clocks in Porto.", "I am allergic to penicillin.", "My sister Ana comes."]
        ):
            memory.conversation(f"v{number}", user="elena").record(said, "I'll keep that in mind.")
            memory.conversation(f"v{number}", user="elena").end()
            clock.advance(days=9)
        memory.digest()
        memory.conversation("v1", user="elena").forget(1)
        memory.digest()
        clock.advance(days=1)
        memory.digest()
        story = memory.user("elena").story()

    assert story is not None
    assert [line.sources[0].conversation for line in story.lines] == ["v0", "v2"]
    assert "keep that in mind" not in story.text


def test_a_subject_that_is_talked_about_all_day_has_a_story(memory: Memory, clock: FakeClock) -> None:
    """Each conversation ends by a silence of six hours, and the next has begun by then: the story is not put off again and again."""
    for number in range(12):
        chat = memory.conversation(f"shift {number}", user="elena", subject="shop")
        for part in range(6):
            chat.record(
                f"In shift {number} we sold {part + 3} candles of kind {part} to a woman in a green coat.", "Ok."
            )
        memory.digest()
        clock.advance(hours=4)
        memory.digest()

    assert len({one.conversation for line in story(memory, "shop").lines for one in line.sources}) >= 9
    assert memory.doctor().ok


@pytest.mark.parametrize(
    ("news", "asked"),
    [
        (
            ["Luna hat seit Montag Durchfall.", "Wir geben ihr jetzt Reis.", "Sie frisst wieder."],
            "Soll ich etwas ändern?",
        ),
        (["Luna tiene diarrea desde el lunes.", "Le damos arroz y pollo.", "Ya come otra vez."], "¿Debo cambiar algo?"),
        (
            ["루나가 월요일부터 설사를 해요.", "이제 쌀과 닭고기를 먹여요.", "이제 다시 잘 먹어요."],
            "무엇을 바꿔야 할까요?",
        ),
    ],
)
def test_what_is_asked_at_each_visit_takes_no_room_in_any_language(
    memory: Memory, clock: FakeClock, news: list[str], asked: str
) -> None:
    for number, said in enumerate(news):
        chat = memory.conversation(f"v{number}", user="ana", subject="luna")
        chat.record(said, "OK.")
        chat.record(asked, "OK.")
        chat.end()
        clock.advance(days=9)
    memory.digest()
    told = memory.user("ana").story("luna").text

    assert [said for said in news if said not in told] == []
    assert asked not in told


TALK = [
    "How long should a walk be at her age?",
    "We went out by the river again.",
    "The postman came while I was cooking.",
    "Is the dry food fine for the summer?",
    "My neighbor asked about her, too.",
    "It rained for most of the day here.",
    "I was at work until the evening.",
    "She lay in the hall as always.",
]


def rest_of_a_talk(memory: Memory, clock: FakeClock, said: str, *, subject: str | None, before: int = 12) -> None:
    """Talk long enough for a summary, and then say what is too little for one of its own."""
    chat = memory.conversation("today", user="elena", subject=subject)
    for day in range(before):
        chat.record(
            f"{TALK[day % 4]} {TALK[(day * 3 + 1) % 4 + 4]}",
            "Good, keep the evening walk, and note how she reacts at the door when the postman comes by in the morning. "
            "Let her rest afterwards, and weigh the food for now.",
        )
        clock.advance(minutes=2)
    memory.digest()
    chat.record(said, "Oh!")


@pytest.mark.parametrize(
    ("before", "ended"),
    [(0, False), (0, True), (12, False)],
    ids=["a talk that goes on", "a talk", "the rest of a long one"],
)
@pytest.mark.parametrize("subject", ["luna", None])
def test_a_reader_of_the_story_sees_what_no_summary_covers_yet(
    memory: Memory, clock: FakeClock, subject: str | None, before: int, ended: bool
) -> None:
    for number in range(3):
        chat = memory.conversation(f"v{number}", user="elena", subject=subject)
        chat.record(f"At visit {number} Luna {SUBJECTS['luna'][number]}.", "I see.")
        chat.end()
        clock.advance(days=3)
    memory.digest()
    rest_of_a_talk(memory, clock, "Luna broke a tooth on the garden fence.", subject=subject, before=before)
    if ended:
        memory.conversation("today", user="elena", subject=subject).end()
    memory.digest()

    told = memory.user("elena").story(subject)
    newest = told.lines[-1]
    assert "broke a tooth" in newest.text
    assert newest.sources[-1].conversation == "today"
    assert newest.sources[-1].end_seq == 2 * before + 2
    assert newest.dated.startswith("[2026-01-14] ")
    assert [line for line in told.lines if "broke a tooth" in line.text] == [newest]
    for days in (8, 60) if not before else ():  # a silence that ends the talk
        clock.advance(days=days)
        memory.digest()
        assert memory.user("elena").story(subject).text.count("broke a tooth") == 1
    assert memory.doctor().ok


def test_the_news_of_a_story_are_bounded_erased_and_of_its_subject_alone(memory: Memory, clock: FakeClock) -> None:
    thirty(memory, clock)
    before = story(memory, "luna")
    chats = [memory.conversation(f"open {number}", user="elena", subject="luna") for number in range(30)]
    for number, chat in enumerate(chats):
        chat.record(f"Luna chewed the rope number {number} and looked at the gate for an hour.", "I see.")
        clock.advance(minutes=5)
    memory.conversation("thanks", user="elena", subject="luna").record("Thanks, bye!", "Bye!")
    memory.conversation("max", user="elena", subject="max").record("Max bit the mailman.", "Oh!")
    memory.conversation("own", user="elena", subject="luna", own_facts=True).record("Luna is a lion here.", "Roar!")

    told = story(memory, "luna")
    assert (told.version, told.id) == (before.version, before.id)
    assert [line for line in told.lines if not line.sources[0].conversation.startswith("open")] == list(before.lines)
    assert "rope number 29" in told.text
    assert count_tokens(told.text) <= 600
    assert all(other not in told.text for other in ("mailman", "bye", "lion"))

    chats[-1].forget(1)
    assert "rope number 29" not in story(memory, "luna").text
    for chat in chats:
        chat.clear()
    assert "rope" not in story(memory, "luna").text


def test_news_alone_make_no_story(memory: Memory, clock: FakeClock) -> None:
    for number in range(2):
        visit(memory, clock, "luna", number)
    memory.digest()
    memory.conversation("third", user="elena", subject="luna").record("Luna broke a tooth.", "Oh!")

    assert story(memory, "luna").lines == ()
