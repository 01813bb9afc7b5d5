"""The home page and the plots: what they count, what each number opens, and that a plot is a table as well."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from holdfast import Config, Memory, Price
from holdfast.testing.fakes import HashEmbedder

from .looks import picture, sticks_out, violations
from .served import Site, serve

SIZES = [(1440, "light"), (768, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def today() -> Iterator[Site]:
    """A memory by the real clock, since a home page is about the last days: six messages of two users, a replaced fact."""
    with Memory(embedder=HashEmbedder(), config=Config()) as memory:
        memory.conversation("web", user="ana").record("I live in Porto.", "Lovely.")
        memory.conversation("web", user="ana").record("I moved to Faro.", "Nice.")
        memory.conversation("web", user="bo <b>").record("I'm vegetarian.", "Noted.")
        memory.user("ana").remember(category="hobby", key="plays", value="the violin")
        memory.digest()
        with serve(memory) as site:
            yield site


@pytest.fixture(scope="module")
def nothing() -> Iterator[Site]:
    with Memory(embedder=HashEmbedder()) as memory, serve(memory) as site:
        yield site


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_home_fits_and_can_be_read(today, visitor, width, scheme):
    someone = visitor(today, "operator")
    page = someone.open("/dashboard", width=width, scheme=scheme)
    expect(page.locator("#week .figures")).to_be_visible()
    expect(page.locator("#messages canvas")).to_be_visible()
    picture(page, f"home {width} {scheme}")
    assert violations(page) == []
    assert sticks_out(page) == []
    plots = [page.locator(f"#plot-{name}").bounding_box() for name in ("messages", "facts")]
    assert width < 1000 or plots[0]["height"] == plots[1]["height"]
    assert page.locator("#newest").bounding_box()["y"] - max(box["y"] + box["height"] for box in plots) >= 12
    assert someone.watch.all == []


def test_home_counts_what_happened_and_each_number_opens_it(today, visitor):
    someone = visitor(today, "operator")
    page = someone.open("/dashboard")
    expect(page.locator("#attention")).to_contain_text("Nothing needs attention")
    figure = page.locator(".figures > div", has_text="Messages")
    expect(figure.locator(".figure")).to_have_text("6")
    rows = page.locator("#plot-messages .plot-table tbody tr")
    assert rows.count() == 30
    assert [cell.inner_text() for cell in rows.last.locator("td").all()] in (["6", "2"], ["", ""])
    assert rows.last.locator("td").nth(0).get_attribute("data-value") == "6"
    assert rows.last.locator("td").nth(1).get_attribute("data-value") == "2"
    expect(page.locator("#plot-messages .u-legend .u-value").nth(1)).to_have_text("6")  # the newest, without a pointer
    page.locator("#theme input[value=dark]").check(force=True)  # the plots are drawn again, in its colours
    expect(page.locator("#plot-messages canvas")).to_have_count(1)
    replaced = page.locator(".figures > div", has_text="Facts replaced")
    assert int(replaced.locator(".figure").inner_text()) >= 1
    replaced.locator("a").click()
    page.wait_for_url(re.compile("/dashboard/changes"))
    expect(page.locator("#changes tbody tr").first).to_contain_text("fact replaced")
    page.locator("#changes tbody tr").first.get_by_role("link", name="ana").click()
    expect(page.locator("h1")).to_have_text("ana")
    assert someone.watch.all == []


def test_a_plot_is_a_table_for_who_cannot_see_it(today, visitor):
    """The table of each plot opens by keyboard, and has the numbers that are drawn."""
    someone = visitor(today, "operator")
    page = someone.open("/dashboard/metrics")
    expect(page.locator("#measures table")).to_be_visible()
    plot = page.locator("figure#messages")
    expect(plot.locator("canvas")).to_be_visible()
    assert "the table below has the same numbers" in plot.locator(".plot-area").get_attribute("aria-label")
    plot.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(plot.locator(".plot-table tbody tr").last).to_contain_text("6")
    assert violations(page) == []
    assert sticks_out(page) == []
    picture(page, "metrics plots")
    assert someone.watch.all == []


def test_without_scripts_the_table_is_there(today, chromium):
    context = chromium.new_context(java_script_enabled=False)
    context.add_cookies([{"name": "holdfast_key", "value": today.key("operator"), "url": today.origin}])
    page = context.new_page()
    page.goto(today.origin + "/dashboard")
    for _ in range(100):
        if page.locator("#plot-messages .plot-table tbody tr").count():
            break
        page.goto(today.origin + "/dashboard")
    assert page.locator("#plot-messages .plot-table tbody tr").last.is_visible()
    context.close()


def test_the_demo_is_loaded_into_an_empty_memory_only(nothing, visitor):
    someone = visitor(nothing, "operator")
    page = someone.open("/dashboard")
    assert "holdfast demo" not in page.content()  # a command that would fill another store
    picture(page, "home empty")
    assert violations(page) == []
    page.get_by_role("button", name="Load demo").click()
    expect(page.locator("#notice")).to_contain_text("The demo is loaded")
    expect(page.get_by_role("link", name="japan")).to_be_visible()
    nothing.memory.digest()
    expect(page.locator("#list")).not_to_contain_text("no summary yet", timeout=60_000)  # without a reload
    expect(page.locator("#list")).to_contain_text("up to date")
    assert {user for _, user, _ in nothing.memory.admin.users()} >= {"priya", "elena", "tomasz"}
    answer = page.request.post(nothing.origin + "/dashboard/demo", form={}, headers={"Origin": nothing.origin})
    assert answer.status == 409
    assert [line for line in someone.watch.all if "409" not in line] == []


@pytest.fixture(scope="module")
def measured() -> Iterator[Site]:
    """A memory with contexts before replies, while its server runs; every read is logged."""
    config = Config(prices={"big": Price(input=2.0, output=8.0, cached=0.5)}, read_log_share=1.0)
    with Memory(embedder=HashEmbedder(), config=config) as memory, serve(memory) as site:
        chat = memory.conversation("web", user="ana")
        for number in range(20):
            chat.append({"role": "user", "content": f"Day {number}: " + "we talked about the garden. " * 20})
            chat.context(budget_tokens=500)
            chat.append({"role": "assistant", "content": "I see."})
        chat.record_usage(model="big", input_tokens=900_000, output_tokens=10, cached_tokens=400_000)
        memory.user("ana").search("garden")
        memory.digest()
        yield site


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_latency_stable_prefix_and_saved_money_are_seen(measured, visitor, width, scheme):
    someone = visitor(measured, "operator")
    page = someone.open("/dashboard/metrics", width=width, scheme=scheme)
    for name in ("latency", "prefix", "cached"):
        plot = page.locator(f"figure#{name}")
        expect(plot.locator("canvas")).to_be_visible()
        plot.locator("summary").click()
        expect(plot.locator(".plot-table tbody tr").last).to_contain_text("ms" if name == "latency" else "%")
    hour = page.locator("figure#latency tbody th").last
    assert "UTC" in hour.inner_text()
    assert hour.bounding_box()["height"] < 60  # on one line
    assert violations(page) == []
    assert sticks_out(page) == []
    picture(page, f"measured metrics {width} {scheme}")
    page = someone.open("/dashboard", width=width, scheme=scheme)
    expect(page.locator(".figures > div", has_text="Money saved by caches")).to_contain_text("$0.60")
    page.locator(".figures > div", has_text="Money saved by caches").locator("a").click()
    page.wait_for_url(re.compile("/dashboard/metrics#cached"))
    page.go_back()
    expect(page.locator(".figures > div", has_text="Money saved by contexts")).to_contain_text("$")
    assert violations(page) == []
    assert sticks_out(page) == []
    picture(page, f"measured home {width} {scheme}")
    assert someone.watch.all == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_access_log_is_seen_by_operator_and_user(measured, visitor, width, scheme):
    page = visitor(measured, "operator").open("/dashboard/users/ana", width=width, scheme=scheme)
    page.locator("#audit summary").click()
    expect(page.locator("#audit ul")).to_contain_text("read context × 20 · by local")
    assert violations(page) == []
    assert sticks_out(page) == []
    picture(page, f"access operator {width} {scheme}")
    page = visitor(measured, "user", user="ana").open("/me", width=width, scheme=scheme)
    expect(page.locator("#access")).to_contain_text("Read for a reply")
    assert violations(page) == []
    assert sticks_out(page) == []
    picture(page, f"access me {width} {scheme}")
