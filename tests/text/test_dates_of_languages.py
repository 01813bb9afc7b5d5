"""Times named in Spanish, French, German, Korean and Chinese."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.text.dates import find_times

AT = datetime(2024, 5, 15, 12, 30, tzinfo=UTC)  # a Wednesday


def shown(text: str, language: str) -> list[str]:
    """Each time as ``words: first day, grain, relation``."""
    return [
        f"{span.words}: {datetime.fromtimestamp(span.from_ms / 1000, UTC):%Y-%m-%d} {span.grain} {span.relation}"
        for span in find_times(text, AT, language)
    ]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("es", "Me mudé hace dos meses", "hace dos meses: 2024-03-01 month at"),
        ("es", "Tengo cita mañana a las 10:30", "mañana a las 10:30: 2024-05-16 minute at"),
        ("es", "pasado mañana", "pasado mañana: 2024-05-17 day at"),
        ("es", "Vivo aquí desde 2019", "desde 2019: 2019-01-01 year since"),
        ("es", "el próximo martes", "el próximo martes: 2024-05-21 day at"),
        ("es", "la semana que viene", "la semana que viene: 2024-05-20 week at"),
        ("es", "es el 3 de junio", "el 3 de junio: 2024-06-03 day at"),
        ("fr", "il y a deux mois", "il y a deux mois: 2024-03-01 month at"),
        ("fr", "demain à 10h30", "demain à 10h30: 2024-05-16 minute at"),
        ("fr", "depuis trois ans", "depuis trois ans: 2021-05-15 year since"),
        ("fr", "l'an dernier", "l'an dernier: 2023-01-01 year at"),
        ("fr", "mardi prochain", "mardi prochain: 2024-05-21 day at"),
        ("de", "vor zwei Monaten", "vor zwei Monaten: 2024-03-01 month at"),
        ("de", "morgen um 10 Uhr", "morgen um 10 Uhr: 2024-05-16 hour at"),
        ("de", "seit 2019", "seit 2019: 2019-01-01 year since"),
        ("de", "Meine Prüfung ist am 3. Juni", "am 3. Juni: 2024-06-03 day at"),
        ("de", "letztes Jahr", "letztes Jahr: 2023-01-01 year at"),
        ("ko", "두 달 전에 이사했어요", "두 달 전: 2024-03-01 month at"),
        ("ko", "2019년부터 살아요", "2019년: 2019-01-01 year since"),
        ("ko", "다음 주까지", "다음 주: 2024-05-20 week until"),
        ("ko", "다음 주 화요일", "다음 주 화요일: 2024-05-21 day at"),
        ("ko", "작년에 결혼했어요", "작년: 2023-01-01 year at"),
        ("ko", "6월 3일에 시험", "6월 3일: 2024-06-03 day at"),
        ("zh", "两个月前搬家了", "两个月前: 2024-03-01 month at"),
        ("zh", "从2019年开始", "2019年: 2019-01-01 year since"),
        ("zh", "下周二", "下周二: 2024-05-21 day at"),
        ("zh", "去年", "去年: 2023-01-01 year at"),
        ("zh", "十一月", "十一月: 2024-11-01 month at"),
        ("pt", "Me mudei há dois meses", "há dois meses: 2024-03-01 month at"),
        ("pt", "Tenho dentista amanhã às 10:30", "amanhã às 10:30: 2024-05-16 minute at"),
        ("pt", "na próxima terça", "na próxima terça: 2024-05-21 day at"),
        ("pt", "a prova é dia 3 de junho", "dia 3 de junho: 2024-06-03 day at"),
        ("it", "Mi sono trasferita due mesi fa", "due mesi fa: 2024-03-01 month at"),
        ("it", "domani alle 10:30", "domani alle 10:30: 2024-05-16 minute at"),
        ("it", "vivo qui dal 2019", "dal 2019: 2019-01-01 year since"),
        ("it", "martedì prossimo", "martedì prossimo: 2024-05-21 day at"),
        ("ja", "2ヶ月前に引っ越しました", "2ヶ月前: 2024-03-01 month at"),
        ("ja", "2019年から住んでいます", "2019年: 2019-01-01 year since"),
        ("ja", "来週の火曜日", "来週の火曜日: 2024-05-21 day at"),
        ("ja", "試験は6月3日です", "6月3日: 2024-06-03 day at"),
    ],
)
def test_words_name_the_time(language: str, text: str, expected: str) -> None:
    """The words as they stand and the first day that they mean."""
    assert shown(text, language) == [expected]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("es", "me levanto por la mañana"),
        ("de", "Guten Morgen"),
        ("de", "Ich jogge jeden Morgen"),
        ("ko", "금요일마다 운동해요"),
        ("zh", "每周五跑步"),
    ],
)
def test_habits_and_greetings_name_no_day(language: str, text: str) -> None:
    """Every Friday is no one Friday, and good morning is not tomorrow."""
    assert shown(text, language) == []
