"""Times named in a text, resolved against the moment it was written."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.dates import dated, days_counted, end_said, find_times, time_ahead

AT = datetime(2024, 5, 15, 12, 30, tzinfo=UTC)  # a Wednesday


def shown(text: str, at: datetime = AT, *, ahead: bool = False) -> list[str]:
    """Each time as ``words: from to grain relation``, in local time of *at*."""

    def clock(ms: int) -> str:
        moment = datetime.fromtimestamp(ms / 1000, UTC).astimezone(at.tzinfo)
        return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%dT%H:%M}"

    return [
        f"{span.words}: {clock(span.from_ms)} {clock(span.to_ms)} {span.grain} {span.relation}"
        for span in find_times(text, at, ahead=ahead)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday", "yesterday: 2024-05-14 2024-05-15 day at"),
        ("the day after tomorrow", "the day after tomorrow: 2024-05-17 2024-05-18 day at"),
        ("last night", "last night: 2024-05-14T18:00 2024-05-15T06:00 day at"),
        ("last weekend", "last weekend: 2024-05-11 2024-05-13 weekend at"),
        ("this weekend", "this weekend: 2024-05-18 2024-05-20 weekend at"),
        ("next week", "next week: 2024-05-20 2024-05-27 week at"),
        ("last month", "last month: 2024-04-01 2024-05-01 month at"),
        ("next year", "next year: 2025-01-01 2026-01-01 year at"),
        ("3 days ago", "3 days ago: 2024-05-12 2024-05-13 day at"),
        ("two weeks ago", "two weeks ago: 2024-04-28 2024-05-05 week at"),
        ("a couple of months ago", "a couple of months ago: 2024-03-01 2024-04-01 month at"),
        ("three years ago", "three years ago: 2021-01-01 2022-01-01 year at"),
        ("in 3 days", "in 3 days: 2024-05-18 2024-05-19 day at"),
        ("in 10 minutes", "in 10 minutes: 2024-05-15T12:40 2024-05-15T12:41 minute at"),
        ("last Tuesday", "last Tuesday: 2024-05-14 2024-05-15 day at"),
        ("last Wednesday", "last Wednesday: 2024-05-08 2024-05-09 day at"),
        ("next Tuesday", "next Tuesday: 2024-05-21 2024-05-22 day at"),
        ("next Thursday", "next Thursday: 2024-05-23 2024-05-24 day at"),
        ("I will go on Friday", "on Friday: 2024-05-17 2024-05-18 day at"),
        ("We met on Friday", "on Friday: 2024-05-10 2024-05-11 day at"),
        ("tomorrow at 5pm", "tomorrow at 5pm: 2024-05-16T17:00 2024-05-16T18:00 hour at"),
        ("at 9:30 tomorrow", "at 9:30 tomorrow: 2024-05-16T09:30 2024-05-16T09:31 minute at"),
        ("at noon", "at noon: 2024-05-15T12:00 2024-05-15T13:00 hour at"),
        ("in March I went", "in March: 2024-03-01 2024-04-01 month at"),
        ("I fly in August", "in August: 2024-08-01 2024-09-01 month at"),
        ("in March 2023", "in March 2023: 2023-03-01 2023-04-01 month at"),
        ("on 3 May", "on 3 May: 2024-05-03 2024-05-04 day at"),
        ("May 3rd, 2022", "May 3rd, 2022: 2022-05-03 2022-05-04 day at"),
        ("the 15th of June", "the 15th of June: 2024-06-15 2024-06-16 day at"),
        ("on the 20th", "on the 20th: 2024-05-20 2024-05-21 day at"),
        ("2024-02-29", "2024-02-29: 2024-02-29 2024-03-01 day at"),
        ("3/5/2024", "3/5/2024: 2024-03-05 2024-03-06 day at"),
        ("25.12.2024", "25.12.2024: 2024-12-25 2024-12-26 day at"),
        ("summer of 2019", "summer of 2019: 2019-06-01 2019-09-01 season at"),
        ("last winter", "last winter: 2023-12-01 2024-03-01 season at"),
        ("since December", "since December: 2023-12-01 2024-01-01 month since"),  # never of the next year
        ("since 2019", "since 2019: 2019-01-01 2020-01-01 year since"),
        ("since last summer", "last summer: 2023-06-01 2023-09-01 season since"),
        ("until June 1", "June 1: 2024-06-01 2024-06-02 day until"),
        ("for five years", "for five years: 2019-05-15T12:30 2024-05-15T12:30 year for"),
        ("in 2012", "in 2012: 2012-01-01 2013-01-01 year at"),
    ],
)
def test_words_and_their_range(text: str, expected: str) -> None:
    """Each phrase means one range and keeps its words."""
    assert shown(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "It may rain.",
        "I sat in the sun",
        "31 February",
        "2024-02-30",
        "99999999 years ago",
        "500 years ago",
        "3 cats",
        "mon ami",
        "second row",
        "",
    ],
)
def test_no_time_is_seen_where_none_is_named(text: str) -> None:
    """Words that only look like times, and dates outside the calendar, give nothing."""
    assert shown(text) == []


def test_ahead_takes_the_next_one() -> None:
    """An appointment on 1 March, spoken of in May, is next year's."""
    assert shown("on 1 March") == ["on 1 March: 2024-03-01 2024-03-02 day at"]
    assert shown("on 1 March", ahead=True) == ["on 1 March: 2025-03-01 2025-03-02 day at"]


def test_days_begin_at_midnight_of_the_writer() -> None:
    """Half past midnight in Tokyo is still yesterday in UTC; "yesterday" is Tokyo's."""
    tokyo = datetime(2024, 5, 15, 0, 30, tzinfo=timezone(timedelta(hours=9)))

    assert shown("yesterday", tokyo) == ["yesterday: 2024-05-14 2024-05-15 day at"]


@given(
    st.text(max_size=200),
    st.datetimes(timezones=st.just(UTC), min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
)
def test_any_text_at_any_time(text: str, at: datetime) -> None:
    """Never an error; spans are ordered, disjoint, verbatim, and begin before they end."""
    spans = find_times(text + " yesterday, in 40 years, last winter, 3 May, next month at 5pm", at)

    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(span.from_ms < span.to_ms for span in spans)


@pytest.mark.parametrize("unit", ["1 ", "2024-", "last last ", "in in in ", "3 May ", "two ", "at 5pm "])
def test_hostile_repetition_costs_linear_time(unit: str) -> None:
    """A long run of half a phrase is no trap."""
    start = time.process_time()
    find_times(unit * (50_000 // len(unit)), AT)

    assert time.process_time() - start < 6


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("I'm planning a trip to Japan for 10 days.", []),
        ("I stayed for two weeks.", []),
        ("I've lived here for 10 years.", ["for"]),
        ("We have been learning Korean for two months.", ["for"]),
    ],
)
def test_how_long_something_takes_is_not_since_when(text: str, relations: list[str]) -> None:
    assert [span.relation for span in find_times(text, datetime(2024, 5, 15, 12, 30, tzinfo=UTC))] == relations


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("vet tomorrow at 9:40", "en", "vet tomorrow at 9:40 (2026-03-21)"),
        ("choir every Thursday", "en", "choir every Thursday"),
        ("moves next month", "en", "moves next month (2026-04)"),
        ("party next Saturday (2026-03-28)", "en", "party next Saturday (2026-03-28)"),
        ("Umzug nächste Woche", "de", "Umzug nächste Woche (2026-03-23 to 2026-03-29)"),
        ("entrevista mañana a las 12", "es", "entrevista mañana a las 12 (2026-03-21)"),
        ("trabajo por la mañana", "es", "trabajo por la mañana"),
        ("下个月来成都", "zh", "下个月 (2026-04)来成都"),
    ],
)
def test_words_that_count_from_today_get_their_date(text: str, language: str, expected: str) -> None:
    assert dated(text, datetime(2026, 3, 20, 22, tzinfo=UTC), language) == expected


SAID = datetime(2026, 3, 15, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("until Friday 2026-03-20 for a chest infection", "2026-03-21"),
        ("hurt ankle, no running for 6 weeks (until about 2026-04-26)", "2026-04-27"),
        ("on leave (until about end of September 2026)", "2026-10-01"),
        ("physio says no running for 6 weeks", "2026-04-27"),
        ("I'm working from Lviv for three weeks, from tomorrow", "2026-04-06"),
        ("I have to rest for 2 weeks", "2026-03-30"),
        ("nights this month, four on three off", "2026-04-01"),
        ("I'm staying with my sister this month", "2026-04-01"),
        ("No sugar until the wedding (2026-09-05).", "2026-09-06"),
        ("staying at mum's until the end of the month", "2026-04-01"),
        ("on nights until end of this week", "2026-03-16"),
        ("working from Lisbon till the end of the year", "2027-01-01"),
        ("I'm on crutches for six weeks", "2026-04-27"),
        ("my arm is in a cast for 4 weeks", "2026-04-13"),
        ("she was in a cast for 4 weeks", ""),
        ("I've been on crutches for six weeks", ""),
        ("until the end of the meeting", ""),
        ("until the end of time", ""),
        ("off school until Monday", "2026-03-17"),
        ("I've been vegan for ten years", ""),
        ("I haven't eaten meat for 3 weeks", ""),
        ("no cigarettes for 3 months now", ""),
        ("lived in Oslo for 6 months", ""),
        ("Works Monday until Friday", ""),
        ("sleeps until noon", ""),
        ("can't start until May", ""),
        ("Started yoga this month", ""),
        ("is starting a new job this month", ""),
        ("stays with dad for two weeks every summer", ""),
        ("Needs the report by Friday", ""),
        ("closed until further notice", ""),
    ],
)
def test_a_state_ends_where_its_words_say_so(text: str, expected: str) -> None:
    end = end_said(text, SAID)

    assert ("" if end is None else datetime.fromtimestamp(end / 1000, UTC).date().isoformat()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.3 ml a day for 10 days", True),
        ("for five days only", True),
        ("took it for a week", False),
        ("has been on it for 3 months", False),
        ("75 mg for 2 weeks, then 150 mg", False),
        ("500 mg every day", False),
        ("for a couple of weeks", True),
        ("for a week", True),
        ("for 3 days a week", False),
        ("for 10 days of each cycle", False),
        ("for 5 days when it flares", False),
        ("for 6 months it made me sick", False),
    ],
)
def test_a_medicine_is_taken_as_long_as_it_was_prescribed(text: str, expected: bool) -> None:
    assert (end_said(text, SAID, prescribed=True) is not None) is expected


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        ("Is travelling to Greece on 12 May.", "off to Greece on 12 May for two weeks", "2026-05-26"),
        ("Is travelling to Greece on 12 May.", "off to Greece on 12 May", "2026-05-15"),
        ("Is travelling to Japan in April.", "flying to Japan in April for 10 days", "2026-05-10"),
        ("Is travelling to Rome in 2028.", "going to Rome in 2028", "2029-01-03"),
        ("Is travelling to Rome.", "going to Rome for a week", ""),
        ("Is travelling to Rome since Monday.", "in Rome since Monday", ""),
    ],
)
def test_what_is_to_come_is_over_after_its_day(text: str, quote: str, expected: str) -> None:
    end = time_ahead(text, quote, SAID, spare=2)

    assert ("" if end is None else datetime.fromtimestamp(end / 1000, UTC).date().isoformat()) == expected


def test_next_is_never_past_whatever_the_tense() -> None:
    (span,) = find_times("We are getting married next June.", SAID)

    assert datetime.fromtimestamp(span.from_ms / 1000, UTC).date().isoformat() == "2026-06-01"


@pytest.mark.parametrize(
    ("text", "days"),
    [("Is 34 weeks pregnant.", 238), ("Is five months pregnant.", 150), ("Is pregnant.", 0), ("Waited 3 weeks.", 0)],
)
def test_a_count_that_goes_on_is_read_in_days(text: str, days: int) -> None:
    assert days_counted(text) == days


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Is off sick for six weeks.", "2026-04-27"),
        ("de", "Ist sechs Wochen lang krankgeschrieben.", "2026-04-27"),
        ("de", "Darf zwei Wochen keinen Sport machen", "2026-03-30"),
        ("de", "Ist seit sechs Wochen krankgeschrieben.", ""),
        ("de", "Das Baby ist sechs Wochen alt", ""),
        ("es", "Está de baja seis semanas.", "2026-04-27"),
        ("es", "Está de baja desde hace seis semanas", ""),
        ("fr", "Est en arrêt pendant six semaines.", "2026-04-27"),
        ("fr", "Est en arrêt depuis six semaines", ""),
    ],
)
def test_a_length_that_lies_ahead_ends_in_other_languages_too(language: str, text: str, expected: str) -> None:
    end = end_said(text, SAID, language)

    assert ("" if end is None else datetime.fromtimestamp(end / 1000, UTC).date().isoformat()) == expected
