"""A hundred things that people say of themselves each have a declared address, and read aloud as a sentence."""

from __future__ import annotations

import pytest

from holdfast.digest.answers.wording import attribute_sentence
from holdfast.reconcile.registry import registry
from holdfast.types import Candidate

EVERYDAY = """
identity/name Ana | identity/goes_by Nan | identity/age 34 | identity/birth_date 3 May 1990 | identity/pronouns they/them
identity/nationality Brazilian | identity/marital_status married | identity/married_since 2015 | identity/religion Muslim
identity/gender woman | identity/orientation gay | identity/personality shy | identity/star_sign Leo | identity/breed beagle
identity/species cat | language/spoken Dutch | language/native Tamil | language/learning Welsh | home/lives_in Porto
home/comes_from Goa | home/born_in Lima | home/lives_with two friends | home/address 3 Mill Lane | home/housing a rented flat
home/lives_there_since 2019 | home/time_zone CET | work/works_as baker | work/works_at the port | work/works_in_city Hull
work/works_in_field logistics | work/works_hours nights | work/works_since May | work/works_from home | work/earns 40k
work/years_of_experience 12 | work/side_job tutoring | work/worked_as sailor | work/worked_at the mill | work/employment_status on leave
work/retired_since 2019 | work/is_retired true | education/studies law | education/studies_at Leiden | education/year second grade
education/graduates_on July 2027 | education/exam bar exam | education/graduated_from Turin | education/degree_in physics
dietary/vegan true | food/observes halal | food/does_not_eat olives | food/eats anything | food/drinks boldo tea
allergy/allergic_to latex | allergy/intolerant_to lactose | health/has_condition asthma | health/height 1.80 m | health/weight 70 kg
health/blood_pressure 120/80 | health/blood_type A+ | health/doctor Dr Lund | health/therapist Ms Roy | health/operation hip replacement
health/therapy physiotherapy | health/wears hearing aids | health/insurance AOK | health/is_pregnant true | health/smokes false
medication/iron 20 mg | preference/likes jazz | preference/dislikes flying | favorite/color green | communication/reply_length short
possession/owns a kiln | possession/drives a van | possession/subscribes_to a paper | family/wife Ada | family/husband Per
family/partner Kim | family/girlfriend Zoe | family/boyfriend Ned | family/mother Rosa | family/mother_in_law Ilse | family/stepfather Karl
family/friend Bo | family/best_friend Lea | family/ex Tom | family/neighbor Mr Hill | family/colleague Jo | family/manager Debra
family/mentor Freya | family/godchild Finn | pets/pet_named Miso | pets/vet Dr Paw | contact/emergency_contact Ada
life/happened broke an arm in 2020 | goal/saving_for a boat | plan/moving_to Oslo | trip/going_to Kyoto | trip/ends_on 3 June
trip/stays_at the Ryokan | trip/travels_by train | finance/rent 900 euros | finance/owes 5,000 to a bank | finance/has_saved 2,000
tech/uses_software Blender | schedule/works_out Mondays | hobby/supports Ajax | hobby/member_of a choir | hobby/volunteers a shelter
hobby/is_reading Middlemarch | project/deadline 1 June | project/status half done
"""
FACTS = [one.strip().partition(" ")[::2] for one in EVERYDAY.replace("\n", " | ").split("|") if one.strip()]
KEYED_BY_THE_USER = ("dietary", "medication", "favorite")


def test_there_are_a_hundred_of_them():
    assert len(FACTS) >= 100


@pytest.mark.parametrize(("address", "value"), FACTS)
def test_an_everyday_fact_has_a_declared_address(address, value):
    category, _, key = address.partition("/")
    found = registry()

    assert category in found.categories
    assert category in KEYED_BY_THE_USER or key in found.categories[category].keys
    assert found.refusal(Candidate("attribute", "self", category, key, value, "", 0.9, 1, "", 0)) == ""


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("social/friend", "family/friend"), ("work/mentor", "family/mentor"), ("work/boss", "family/manager"),
        ("family/spouse", "family/partner"), ("identity/height", "health/height"), ("identity/weight", "health/weight"),
        ("food/does_not_drink", "food/does_not_eat"), ("family/marital_status", "identity/marital_status"),
        ("work/work_city", "work/works_in_city"), ("tech/app", "tech/uses_software"), ("health/surgery", "health/operation"),
        ("health/gp", "health/doctor"), ("home/rent", "finance/rent"), ("finance/saving_for", "goal/saving_for"),
        ("food/dislikes", "preference/dislikes"), ("hobby/likes", "preference/likes"), ("travel/prefers", "preference/prefers"),
        ("technical/database", "tech/uses_database"), ("pets/dog_name", "pets/pet_named"),
    ],
)  # fmt: skip
def test_two_addresses_of_one_thing_are_one(given, meant):
    category, _, key = given.partition("/")
    found = registry().known_address(Candidate("attribute", "self", category, key, "x", "", 0.9, 1, "", 0, source="m"))

    assert f"{found.category}/{found.key}" == meant


@pytest.mark.parametrize(
    ("address", "value", "language", "text"),
    [
        ("work/works_as", "runs a small bike shop", "en", "Runs a small bike shop."),
        ("work/works_as", "baker", "en", "Works as a baker."),
        ("work/works_as", "head of sales", "en", "Works as head of sales."),
        ("family/aunt", "Rosa", "en", "Has an aunt called Rosa."),
        ("family/wife", "Ada", "en", "Has a wife called Ada."),
        ("family/manager", "Debra", "en", "Has a manager called Debra."),
        ("plan/plans_to", "a quiet evening", "en", "Plans: a quiet evening."),
        ("plan/plans_to", "paint the hall", "en", "Plans to paint the hall."),
        ("budget/max_usd", "65 for snacks", "en", "Budget (max usd): 65 for snacks."),
        ("budget/max_eur_for_puglia", "2000", "en", "Budget for puglia: 2000 EUR."),
        ("identity/birth_date", "June 2023", "en", "Was born in June 2023."),
        ("identity/birth_date", "June 3, 2023", "en", "Was born on June 3, 2023."),
        ("health/has_condition", "left achilles playing up", "en", "Health: left achilles playing up."),
        ("life/happened", "broke an arm in 2020", "en", "Broke an arm in 2020."),
        ("health/ferritin", "9", "en", "Ferritin: 9."),
        ("pets/has_pet", "two budgies", "en", "Has two budgies."),
        ("home/lives_in", "Salta", "es", "Vive en Salta."),
        ("home/lives_in", "上海", "zh", "住在上海。"),
        ("home/lives_in", "Wismar", "de", "Wohnt in Wismar."),
    ],
)
def test_an_attribute_reads_aloud_as_a_sentence(address, value, language, text):
    category, _, key = address.partition("/")

    assert attribute_sentence(category, key, value, language) == text


@pytest.mark.parametrize(
    ("address", "value", "language", "text"),
    [
        ("preference/likes", "매운 음식", "ko", "매운 음식을 좋아한다."),
        ("preference/dislikes", "고수", "ko", "고수를 싫어한다."),
        ("pets/pet_named", "나비", "ko", "나비라는 반려동물이 있다."),
        ("pets/pet_named", "초롱", "ko", "초롱이라는 반려동물이 있다."),
        ("plan/moving_to", "서울", "ko", "서울로 이사할 예정이다."),
        ("plan/moving_to", "부산", "ko", "부산으로 이사할 예정이다."),
        ("language/spoken", "영어", "ko", "영어를 한다."),
        ("family/wife", "지은", "ko", "아내 이름은 지은."),
        ("favorite/color", "초록", "ko", "제일 좋아하는 색: 초록."),
        ("dietary/vegetarian", "true", "ko", "채식을 한다."),
        ("identity/breed", "Beagle", "de", "Rasse: Beagle."),
        ("health/smokes", "no", "de", "Raucht nicht."),
        ("family/sister", "Lena", "de", "Die Schwester heißt Lena."),
        ("family/sister", "zwei Schwestern, eine in Rom, eine in Kiel", "de", "Die Schwester: zwei Schwestern, eine in Rom, eine in Kiel."),
        ("budget/max_eur", "65", "de", "Budget: 65 (max eur)."),
        ("possession/drives", "un Seat", "es", "Conduce un Seat."),
        ("work/works_since", "2020", "fr", "Y travaille depuis 2020."),
        ("pets/has_pet", "un gatto", "it", "Ha un animale: un gatto."),
        ("trip/going_to", "Recife", "pt", "Viaja para Recife."),
        ("possession/owns", "自転車", "ja", "自転車を持っている。"),
        ("home/lives_with", "两个朋友", "zh", "和两个朋友一起住。"),
        ("health/smokes", "no", "en", "Does not smoke."),
    ],
)  # fmt: skip
def test_an_attribute_is_worded_in_the_language_of_the_chat(address, value, language, text):
    category, _, key = address.partition("/")

    assert attribute_sentence(category, key, value, language) == text


@pytest.mark.parametrize("language", ["de", "es", "fr", "it", "pt", "ko", "ja", "zh"])
def test_no_attribute_that_a_model_is_shown_is_worded_in_english_elsewhere(language):
    same = [
        f"{name}/{key}"
        for name, one in registry().categories.items()
        for key, spec in one.keys.items()
        if (value := "yes" if spec.type == "bool" else "x7")
        and attribute_sentence(name, key, value, language) == attribute_sentence(name, key, value)
        and not key.startswith("how_many_")
    ]

    assert set(same) <= {"life/happened", "health/operation"}  # its value is the sentence; "Operation" is German, too
