"""What was believed of a place or a tool ends when words move it elsewhere, and only then."""

from __future__ import annotations

import pytest

from holdfast import Memory


def believed(*said: str) -> list[str]:
    with Memory() as memory:
        chat = memory.conversation("a", user="ana")
        for words in said:
            chat.record(words, "Noted.")
        chat.end()
        memory.digest()
        return [fact.text for fact in memory.user("ana").facts()]


ENDS = [
    ("I have one child, Mia.", "Our second, Leo, was born on Friday.", ["Has a child called Mia."]),
    ("I prefer window seats.", "Book me an aisle seat from now on.", []),
    ("I can't swim.", "I learned to swim this summer.", []),
    ("I've never been to Japan.", "I came back from Japan yesterday, first time!", []),
    ("My commute is an hour.", "The commute is down to 20 minutes.", []),
    ("I'm lactose intolerant.", "It turned out it's not lactose but fructose.", ["Is fructose intolerant."]),
    ("We write our logs to Loki.", "Our logs go to Elastic these days.", ["Uses Elastic."]),
    ("I swim twice a week.", "I swim four times a week now.", ["Swims four times a week."]),
    ("I go to the gym on Mondays.", "My gym day is Thursday now.", ["Goes to the gym on Thursdays."]),
    ("I keep halal.", "I keep kosher now.", ["Eats kosher."]),
    ("We're flying to Rome in May.", "We're flying to Athens instead.", ["Is travelling to Athens."]),
    ("I prefer emails.", "I prefer calls over emails.", ["Prefers calls over emails."]),
    ("I live in Leeds.", "I moved to York, and now I'm in Hull.", ["Lives in Hull."]),
    ("I live in Boston.", "First we moved to Denver, later to Austin.", ["Lives in Austin."]),
    ("I'm gluten free.", "Turns out I can eat gluten after all.", []),
    ("I'm allergic to cats.", "The test says I'm not allergic to cats after all.", []),
    ("Our logs are in Loki.", "Our logs are in Elastic now.", ["Uses Elastic."]),
    ("We ship our logs to Loki.", "We've replaced Loki with Elastic for the logs.", ["Uses Elastic."]),
    ("We use Stripe for payments.", "Adyen handles our payments now.", ["Uses Adyen."]),
    ("We use Angular for the frontend.", "We rewrote the frontend in Svelte.", ["Uses Svelte."]),
    ("We're on the Pro plan.", "We upgraded to Enterprise.", ["Is on the enterprise plan."]),
    ("I'm a nurse at Initech.", "I joined Hooli as a midwife.", ["Works as a midwife.", "Works at Hooli."]),
    ("I prefer Python over JavaScript.", "I've come to dislike Python.", ["Dislikes Python."]),
    ("We track bugs in Jira.", "We track bugs in Linear now.", ["Tracks bugs in Linear now."]),
    ("We use Jenkins for CI.", "We moved to GitHub Actions.", ["Uses GitHub Actions."]),
    ("We host everything on AWS.", "We left AWS, everything runs on Hetzner now.", ["Uses Hetzner."]),
    ("I take my notes in Notion.", "I've moved all my notes from Notion to Obsidian.", ["Uses Obsidian."]),
    ("Our CI runs on Jenkins.", "We're on GitHub Actions now instead of Jenkins.", ["Uses GitHub Actions."]),
    ("We use Terraform.", "We're using Pulumi now, not Terraform.", ["Uses Pulumi."]),
    ("Our cache is Redis.", "Memcached replaced Redis as our cache.", ["Uses Memcached."]),
    ("We use Jenkins for CI.", "We moved our CI to GitHub Actions.", ["Uses GitHub Actions."]),
    ("We run on Kubernetes.", "We moved from Kubernetes to Nomad.", ["Uses Nomad."]),
    ("We use Slack for chat.", "We replaced Slack with Zulip.", ["Uses Zulip."]),
    ("We use Asana.", "We switched to Trello.", ["Uses Trello."]),
    ("We use Loki for logs.", "We use Elastic for logs now.", ["Uses Elastic."]),
    ("We track tickets in Jira.", "We dropped Jira for Linear.", ["Uses Linear."]),
    ("We track tickets in Jira.", "We dropped Jira, everything is in Linear now.", ["Uses Linear."]),
    ("We use Slack.", "We left Slack for Teams.", ["Uses Microsoft Teams."]),
    ("We use MongoDB.", "We moved off MongoDB to Postgres.", ["Uses PostgreSQL."]),
    ("Our company uses GitLab.", "We migrated everything to GitHub.", ["Uses GitHub."]),
    ("I prefer dark mode.", "I'm back to light mode, dark hurts my eyes.", ["Prefers light mode."]),
    ("I prefer tabs.", "I use spaces now instead of tabs.", []),
    ("Please answer in English.", "From now on answer in German please.", ["Wants replies in German."]),
    (
        "I work best late at night.",
        "These days I work best early in the morning.",
        ["Works best early in the morning."],
    ),
    ("I start work at 9.", "I start work at 7 now.", ["Starts work at 7 now."]),
    ("We're a team of 12.", "We're a team of 20 now.", ["Is a team of 20."]),
    ("Our API runs on Flask.", "We moved from Flask to FastAPI.", ["Uses FastAPI."]),
    ("Our mail goes through SendGrid.", "We migrated from SendGrid to Postmark.", ["Uses Postmark."]),
    ("I use Chrome and Firefox.", "I stopped using Chrome.", ["Uses Firefox."]),
    ("We use Jenkins for CI.", "We moved to GitHub Actions now. It works well.", ["Uses GitHub Actions."]),
    ("I go to the gym on Mondays.", "I never go to the gym any more.", []),
    ("I go to the gym every Monday.", "I don't go to the gym anymore.", []),
    ("I prefer Python over JavaScript.", "I dislike Python.", ["Dislikes Python."]),
    ("I dislike Python.", "I prefer Python over JavaScript.", ["Prefers Python over JavaScript."]),
    ("Our backend is in Python.", "We rewrote the backend in Go.", ["Uses Go."]),
    ("Our app is in Flask.", "We rebuilt the app with FastAPI last month.", ["Uses FastAPI."]),
    ("We use Slack at work.", "Our company moved to Teams.", ["Uses Microsoft Teams."]),
    ("I take the bus to work.", "I bike to work now.", ["Gets to work by bike."]),
    ("I prefer dark mode.", "I switched to light mode.", ["Prefers light mode."]),
    ("I'm learning Spanish.", "I stopped Spanish and started Italian.", ["Is learning Italian."]),
    ("My manager is Paula.", "Paula left, Kevin is my manager now.", ["Their manager is called Kevin."]),
    ("I sleep at 10 pm.", "I go to bed at midnight now.", ["Goes to bed at midnight."]),
    ("I'm single.", "I'm engaged to Mia.", ["Has a partner called Mia.", "Is engaged."]),
    ("I'm engaged to Tom.", "Broke it off with Tom.", []),
    ("I'm engaged to Tom.", "We tied the knot on Saturday.", ["Has a partner called Tom.", "Is married."]),
    ("I'm with Vodafone.", "We switched to O2.", ["Their phone company is O2."]),
    ("We bank with HSBC.", "We moved our account to Monzo.", ["Banks with Monzo."]),
    ("My daughter goes to Oakfield School.", "She moved to a different school.", []),
    ("My daughter goes to Oakfield School.", "My daughter left Oakfield School.", []),
    ("My son is in year 9.", "My son is in year 10 now.", ["Son is in year 10."]),
    ("I sing in a choir.", "I left the choir last month.", []),
    ("Our cleaner Maria comes on Thursdays.", "Maria retired last month.", []),
    ("Our cleaner Maria comes on Thursdays.", "We don't have a cleaner anymore.", []),
    ("My landlord is Mr Novak.", "Our new landlord is Mrs Hill.", ["Has the landlord Hill."]),
    ("I don't have any pets.", "We got a puppy!", ["Has a puppy."]),
    ("I don't have kids.", "We had a baby in March!", []),
    ("I don't own a car.", "I bought a car.", ["Owns a car."]),
    ("Our budget is 2000.", "Our budget is 2500 now.", ["Has a budget of 2500."]),
    ("I'm off on Thursdays.", "I'm off on Fridays now.", ["Is off on Fridays."]),
    ("My commute is an hour.", "My commute is 20 minutes now.", ["Commutes 20 minutes."]),
    ("My favourite colour is blue.", "My favorite color is green.", ["Has green as favorite color."]),
]


@pytest.mark.parametrize(("first", "then", "left"), ENDS, ids=[case[1] for case in ENDS])
def test_what_words_move_elsewhere_ends(first: str, then: str, left: list[str]) -> None:
    assert believed(first, then) == left


STAYS = [
    ("I can't swim.", "My son learned to swim this summer."),
    ("I've never been to Japan.", "My boss came back from Japan yesterday."),
    ("I've never been to Japan.", "I came back from Spain yesterday."),
    ("I use Vim at home.", "At work I use VS Code."),
    ("I run on Sundays.", "I also run on Wednesdays now."),
    ("I'm a beginner in Python.", "I'm taking an advanced Python course now."),
    ("I go to choir on Mondays.", "I go to the gym on Mondays now."),
    ("I'm gluten free.", "I wish I could eat gluten again."),
    ("I lost my mom this spring.", "Our baby arrived, so that makes four kids now!"),
    ("I'm engaged to Tom.", "My sister broke it off with Dan."),
    ("I'm engaged to Tom.", "Tom broke his leg."),
    ("I'm with Vodafone.", "Vodafone is down today."),
    ("I'm with Vodafone.", "My sister switched to O2."),
    ("I'm with Vodafone.", "I'm thinking of switching to O2."),
    ("We bank with HSBC.", "My neighbour switched to Barclays."),
    ("My daughter goes to Oakfield School.", "Her friend moved to a different school."),
    ("My daughter goes to Oakfield School.", "Should she move to a different school?"),
    ("I sing in a choir.", "My friend quit the choir."),
    ("Our cleaner Maria comes on Thursdays.", "Maria went home early."),
    ("I don't have any pets.", "My neighbour got a puppy."),
    ("I don't have any pets.", "We want to get a puppy."),
    ("I don't have kids.", "My sister's daughter is 3."),
    ("I don't own a car.", "I bought a car seat for my niece."),
    ("Our budget is 2000.", "The flight costs 300 euros."),
    ("We use Stripe for payments.", "Adyen handles our invoices now."),
    ("We use Stripe for payments.", "Adyen handles our payments too now."),
    ("We use Stripe for payments.", "Adyen handles our payments."),
    ("We use Angular for the backoffice.", "We rewrote the frontend in Svelte."),
    ("Our backend is in Python.", "We rewrote the frontend in TypeScript."),
    ("Our backend is in Python.", "We rewrote part of the backend in Go."),
    ("I take the bus to work.", "I bike to work on Fridays."),
    ("We use Slack at work.", "Their company moved to Teams."),
    ("We use Loki for logs.", "We use Elastic for traces now."),
    ("We use Loki for logs.", "We use Elastic for logs, too."),
    ("I take 20 mg of lisinopril daily.", "I'm on lisinopril."),
    ("Our logs are in Loki.", "Our metrics are in Elastic now."),
    ("Our logs are in Loki.", "Our audit logs are in Elastic now."),
    ("Our logs are in Loki.", "Our logs are in Elastic too now."),
    ("Our logs are in Loki.", "Some of our logs are in Elastic now."),
    ("Our logs are in Loki.", "Our logs might be in Elastic now."),
    ("We track bugs in Jira.", "We track ideas in Linear now."),
    ("We use Jenkins for CI.", "We moved to Berlin."),
    ("We use Jenkins for CI.", "We also use GitHub Actions."),
    ("We use Jenkins for CI.", "We might move to GitHub Actions."),
    ("We use Jenkins for CI.", "We moved our docs to GitHub."),
    ("We use Asana and Trello.", "We switched to Jira."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions, but only partly."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions for some repos."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions for the mobile app."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions at my last company."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions in 2019 and came back."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions. Jenkins stays for releases."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions. Jenkins is still there."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions in the demo."),
    ("We use Jenkins for CI.", "We moved to GitHub Actions from GitLab CI."),
    ("We use Jenkins for CI.", "We left GitLab CI. We moved to GitHub Actions."),
    ("We use Asana.", "My wife switched to Trello."),
    ("We run on Kubernetes.", "Acme moved from Kubernetes to Nomad."),
    ("We run on Kubernetes.", "We thought about moving from Kubernetes to Nomad."),
    ("I go to the gym on Mondays.", "My wife never goes to the gym any more."),
    ("I go to the gym on Mondays.", "I never go to the gym on Fridays any more."),
    ("I run every Tuesday.", "I don't run every Thursday any more."),
    ("I prefer Python over JavaScript.", "I dislike Python 2."),
    ("I prefer Python over JavaScript.", "I dislike JavaScript."),
    ("I have offices in Berlin.", "I have offices in Porto now."),
    ("I use PostgreSQL.", "We use MySQL as well for the blog."),
    ("I have a Windows laptop.", "I bought a MacBook for my daughter."),
    ("I have an iPhone 12.", "I bought an iPhone 16 for Mia."),
    ("We use Slack.", "I left Slack for a minute."),
    ("We use Jira.", "We dropped Trello, everything is in Linear now."),
    ("I prefer tabs.", "My boss uses spaces instead of tabs."),
    ("I work best late at night.", "I work out best in the morning."),
    ("I start work at 9.", "I start work at 7 on Fridays now."),
    ("I swim at 7.", "I also swim at noon now."),
    ("I swim in the morning.", "I swim in the lake now."),
]


@pytest.mark.parametrize(("first", "then"), STAYS, ids=[case[1] for case in STAYS])
def test_what_may_still_be_so_stays(first: str, then: str) -> None:
    alone = believed(first)

    assert alone
    assert set(alone) <= set(believed(first, then))


@pytest.mark.parametrize("who", ["My sister is", "I am", "Our offices are"])
def test_who_may_be_in_two_places_is_left_in_both(who: str) -> None:
    with Memory() as memory:
        user = memory.user("ana")
        user.remember(f"{who} in Mensa", category="context")
        user.remember(f"{who} in Rome now", category="context")

        assert f"{who} in Mensa" in [fact.text for fact in user.facts("context")]


def test_memories_given_as_sentences_replace_one_another_too() -> None:
    with Memory() as memory:
        user = memory.user("ana")
        user.remember("Tickets are in Jira", category="technical")
        change = user.remember("Tickets are in Linear now", category="technical")

        assert (change.op, change.previous and change.previous.text) == ("replaced", "Tickets are in Jira")
        assert [fact.text for fact in user.facts()] == ["Tickets are in Linear now"]


def test_a_sentence_that_says_no_more_than_an_attribute_is_a_quote_of_it() -> None:
    with Memory() as memory:
        memory.conversation("a", user="ana").record("We're running PostgreSQL 15 and we use Kubernetes.", "Noted.")
        user = memory.user("ana")
        known = [fact.text for fact in user.facts()]
        for text in ("Running PostgreSQL 15", "Switched to PostgreSQL 15", "Deploys on Kubernetes"):
            assert user.remember(text, category="technical").op == "confirmed"
        assert [fact.text for fact in user.facts()] == known
        assert user.remember("Running PostgreSQL 15 on two servers", category="technical").op != "confirmed"


@pytest.mark.parametrize(
    "said",
    [
        "My blood pressure went up to 150.",
        "My salary went up to 4000.",
        "My weight went down to 70.",
        "My temperature went up to 39.",
        "I'm down to 78.",
        "I'm back to 13.6 kg.",
        "I'm up to 30 percent.",
    ],
)
def test_a_number_of_another_thing_is_no_dose(said: str) -> None:
    assert "Takes sertraline 20 mg every day." in believed("I take 20 mg sertraline every day.", said)


@pytest.mark.parametrize(
    "said", ["My dose went up to 40.", "They upped it to 40 mg.", "My sertraline is up to 40 now."]
)
def test_a_new_dose_replaces_the_old(said: str) -> None:
    assert believed("I take 20 mg sertraline every day.", said) == ["Takes sertraline 40 mg every day."]


@pytest.mark.parametrize(
    ("kept", "said", "left"),
    [
        ("Uses PostgreSQL 15", "We switched to MySQL.", ["Uses MySQL."]),
        ("Uses Jenkins", "We moved to GitHub Actions.", ["Uses GitHub Actions."]),
        ("Running Jenkins for the builds", "We moved to GitHub Actions.", ["Uses GitHub Actions."]),
        ("Uses PostgreSQL 15", "We switched from PostgreSQL 15 to MySQL.", ["Uses MySQL."]),
        ("Uses PostgreSQL", "I also use MySQL now.", ["Uses MySQL.", "Uses PostgreSQL"]),
        ("Uses PostgreSQL", "We might switch to MySQL.", ["Uses PostgreSQL"]),
    ],
)
def test_a_memory_about_a_tool_ends_when_the_user_moves_to_another(kept: str, said: str, left: list[str]) -> None:
    with Memory(embedder=None) as memory:
        user = memory.user("ana")
        user.remember(kept, category="technical")
        memory.conversation("a", user="ana").record(said, "Noted.")
        assert sorted(fact.text for fact in user.facts()) == left
