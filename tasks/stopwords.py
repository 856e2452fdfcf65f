"""English stop lists by name: none, scikit-learn's, SMART's and NLTK's.

Lists with apostrophe forms ("don't", "isn't") hold them as published. A pattern of letters alone cuts such a
word in two before the list is asked; the halves go only if the list holds them too, as NLTK's does.
"""

from __future__ import annotations

from textbench.tasks import InputError
from textbench.tasks.catalogue import nearest

STOP_LISTS = ("none", "scikit-learn", "smart", "nltk")

# The stopwords corpus of NLTK, English, 179 words: the edition of 2018 to 2023, the first with apostrophes
# (https://www.nltk.org/nltk_data/, "stopwords"). The copy in python-rake lacks some words and alters others.
NLTK_WORDS = """
i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him his
himself she she's her hers herself it it's its itself they them their theirs themselves what which who whom
this that that'll these those am is are was were be been being have has had having do does did doing a an the
and but if or because as until while of at by for with about against between into through during before after
above below to from up down in out on off over under again further then once here there when where why how all
any both each few more most other some such no nor not only own same so than too very s t can will just don
don't should should've now d ll m o re ve y ain aren aren't couldn couldn't didn didn't doesn doesn't hadn
hadn't hasn hasn't haven haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn
shouldn't wasn wasn't weren weren't won won't wouldn wouldn't
"""


def stop_words(name: str) -> frozenset[str]:
    """Return the stop list of that name, lower-case words.

    - `none`: no words.
    - `scikit-learn`: its `ENGLISH_STOP_WORDS`, 318 words.
    - `smart`: the list of the SMART system, 570 words (Lewis et al., JMLR 5, 2004, online appendix 11).
    - `nltk`: NLTK's English list, 179 words.

    Raises InputError for another name, with the nearest ones.
    """
    if name == "none":
        return frozenset()
    if name == "scikit-learn":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    if name == "smart":
        from RAKE import SmartStopList

        return frozenset(SmartStopList())
    if name == "nltk":
        return frozenset(NLTK_WORDS.split())
    raise InputError(f"there is no stop list {name!r}; {nearest(name, STOP_LISTS)}")
