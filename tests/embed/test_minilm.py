"""The built-in embedder gives the vectors of the original model, for every text, from every thread."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from holdfast import Memory
from holdfast.embed import Embedder, default_embedder
from holdfast.embed.minilm import MiniLM
from holdfast.errors import ConfigError

# Made with the original float32 weights and the reference tokenizer; values are thousandths.
REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text(encoding="utf-8"))["vectors"]

CHAT = ["Hi!", "I moved to Porto last week.", "Which vaccines does Rex still need?", "ok " * 90, "我住在北京。", "😀"]


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["text"][:24])
def test_vectors_are_those_of_the_original(minilm, case):
    """8 bits a weight cost less than .006 of the cosine, 8 bits an activation up to .02."""
    ours = minilm.embed([case["text"] * case["times"]])[0]
    original = np.array(case["vector"], np.float32)

    assert ours @ original / np.linalg.norm(original) >= (0.994 if minilm.runtime == "numpy" else 0.98)


def test_rows_are_unit_vectors_in_the_order_of_the_texts(minilm):
    rows = minilm.embed(CHAT)

    assert rows.shape == (len(CHAT), minilm.dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(minilm.embed(CHAT[::-1]), rows[::-1], atol=1e-5)


def test_vector_does_not_depend_on_the_batch(minilm):
    """A text embedded again, alone or in other company, must find its own row."""
    together = minilm.embed(CHAT * 2)

    for row, text in zip(together, CHAT * 2, strict=True):
        np.testing.assert_allclose(minilm.embed([text])[0], row, atol=1e-5)


def test_meaning_is_nearer_than_wording(minilm):
    question, answer, decoy = minilm.embed(
        ["Where does she live now?", "We moved to Porto last week!", "Where does she keep the live bait?"]
    )
    cat, kitten, tax = minilm.embed(["My cat is ill.", "The kitten feels sick.", "I filed my tax return."])

    assert question @ answer > 0.15
    assert cat @ kitten > cat @ tax + 0.3
    assert not np.allclose(answer, decoy)


@pytest.mark.parametrize("text", ["", "   \n\t", "\x00\x07", "\ud800", "\u200b\u200d"])
def test_text_without_words_is_all_zeros(minilm, text):
    np.testing.assert_array_equal(minilm.embed([text]), np.zeros((1, minilm.dim), np.float32))


def test_no_texts_are_no_rows(minilm):
    assert minilm.embed([]).shape == (0, minilm.dim)


@pytest.mark.parametrize(
    "text", ["a\x00b", "lone \ud83d surrogate", "👩‍👩‍👧‍👦 family", "שלום עולם", "x" * 5_000, "…!?"]
)
def test_any_text_has_a_vector(minilm, text):
    row = minilm.embed([text])[0]

    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)


def test_what_stands_beyond_the_limit_is_not_read(minilm):
    start = "word " * 400

    np.testing.assert_allclose(minilm.embed([start + "Porto"]), minilm.embed([start + "Lisbon"]), atol=1e-5)


def test_megabyte_costs_no_more_than_a_long_message(minilm):
    """A pasted log must not hold up the user behind it."""

    def seconds(text: str) -> float:
        began = time.thread_time()
        minilm.embed([text])
        return time.thread_time() - began

    seconds("warm up")
    long = min(seconds("café et thé " * 300) for _ in range(3))
    megabyte = min(seconds("café et thé " * 90_000) for _ in range(3))

    assert megabyte < 3 * long


def test_threads_do_not_disturb_each_other(minilm):
    alone = minilm.embed(CHAT)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: minilm.embed(CHAT), range(8)))

    for rows in found:
        np.testing.assert_allclose(rows, alone, atol=1e-5)


def test_threads_cost_no_more_than_one_after_the_other(minilm):
    """Whichever thread asks, BLAS uses one core: with more, its threads burn 30 times the CPU in waiting."""

    def cpu_seconds(threads: int) -> float:
        began = time.process_time()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(minilm.embed, [CHAT] * 6))
        return time.process_time() - began

    minilm.embed(CHAT)
    alone = min(cpu_seconds(1) for _ in range(2))

    assert min(cpu_seconds(4) for _ in range(2)) < 3 * alone


def test_question_does_not_wait_for_the_background(minilm):
    """A reply waits for recall; hundreds of vectors of old messages do not go first."""
    done = threading.Event()

    def background() -> None:
        while not done.is_set():
            minilm.embed(["I moved to Porto last week and it rains every day."] * 200)

    worker = threading.Thread(target=background)
    worker.start()
    time.sleep(0.05)
    waited = []
    for _ in range(3):
        began = time.perf_counter()
        minilm.embed(["Where does she live now?"])
        waited.append(time.perf_counter() - began)
    done.set()
    began = time.perf_counter()
    worker.join(timeout=60)
    minilm.embed(["I moved to Porto last week and it rains every day."] * 200)
    whole = time.perf_counter() - began

    assert min(waited) < whole / 4


def test_other_numpy_work_has_its_threads_back_afterwards(minilm):
    """The limit to one BLAS thread ends with the last text, overlapping calls included."""

    def blas_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = blas_threads()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: minilm.embed([text]), CHAT * 3))

    assert blas_threads() == before


def test_first_text_may_come_from_many_threads(minilm):
    fresh = MiniLM(minilm._folder, minilm.runtime)
    barrier = threading.Barrier(4)

    def first(_: int) -> np.ndarray:
        barrier.wait(timeout=10)
        return fresh.embed(["I live in Lisbon"])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(first, range(4)))

    for row in found:
        np.testing.assert_allclose(row, minilm.embed(["I live in Lisbon"]), atol=1e-5)


def test_nothing_is_read_before_the_first_text(tmp_path):
    """Opening a memory stays fast and small; a folder without files is noticed when it matters."""
    embedder = MiniLM(tmp_path)

    with pytest.raises(ConfigError, match="cannot be read"):
        embedder.embed(["hello"])


def test_damaged_file_says_how_to_get_a_good_one(minilm, tmp_path):
    for file in minilm._folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:200_000])

    with pytest.raises(ConfigError, match=r"holdfast\.embed\.fetch\.fetch"):
        MiniLM(tmp_path).embed(["hello"])


def test_both_ways_to_compute_give_vectors_that_find_one_another():
    """So what one process has stored by the one is found by another's question by the other, under one id."""
    slow, fast = default_embedder("numpy"), default_embedder("onnxruntime")
    found, expected = fast.embed(CHAT * 3), slow.embed(CHAT * 3)

    assert (found * expected).sum(axis=1).min() > 0.98
    assert fast.id == slow.id


def test_processor_that_cannot_add_bytes_exactly_computes_with_floats(minilm, monkeypatch):
    """Without VNNI the sums of two products overflow, and the vectors would be far from right."""
    monkeypatch.setattr("holdfast.embed.minilm._adds_bytes_exactly", lambda: False)
    careful = MiniLM(minilm._folder, "onnxruntime")

    np.testing.assert_allclose(careful.embed(CHAT), default_embedder("numpy").embed(CHAT), atol=1e-5)


def test_what_numpy_stored_is_recalled_by_onnxruntime(tmp_path):
    with Memory(tmp_path / "m.db", embedder="numpy") as memory:
        memory.conversation("c", user="ana").record("My puppy chewed the sofa.", "Oh no!")
        memory.digest()
    with Memory(tmp_path / "m.db", embedder="fast") as memory:
        found = memory.user("ana").search("What has the dog destroyed?")

    assert "sofa" in found[0].text


def test_onnxruntime_that_does_not_load_is_replaced_by_numpy(minilm, monkeypatch, caplog):
    def broken(name: str) -> object:
        raise ImportError(f"{name} is made for another system")

    monkeypatch.setattr("holdfast.embed.minilm.import_module", broken)
    embedder = MiniLM(minilm._folder, "onnxruntime")

    assert embedder.embed(["hello"]).any()
    assert embedder.runtime == "numpy"
    assert "another system" in caplog.text


def test_is_an_embedder(minilm):
    assert isinstance(minilm, Embedder)
    assert str(minilm.dim) in minilm.id
