"""Both Snowball packages give the same stems, so an index does not depend on which one is installed."""

import pytest
import snowballstemmer
import Stemmer

from holdfast.text.languages import STEMMERS

WORDS = (
    "running allergies generously organization dying skies memories moved nationally häuser gingen vegetarisch "
    "viviendo corazones cantábamos habitais mangeaient heureusement вегетарианка переехали ξενοδοχείο taşındık "
    "talossa szállodák växter bøker kinderen parlavano fericire मैंने يعيشون சென்னைக்கு pekerjaannya"
).split()


@pytest.mark.parametrize("algorithm", sorted(STEMMERS.values()))
def test_portable_stemmer_agrees_with_the_native_one(algorithm):
    native, portable = Stemmer.Stemmer(algorithm), snowballstemmer.stemmer(algorithm)

    assert portable.stemWords(WORDS) == native.stemWords(WORDS)
