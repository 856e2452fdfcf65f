"""Data sets read from archives: pins (counts, first, middle, last document), and what independent sources say."""

import hashlib
import re

import numpy as np
import pytest

from tasks import InputError, archives, catalogue
from tasks.datasets import Corpus, _newsgroups, _reuters
from tasks.tokens import RULES

# A part: documents; the first, middle and last one (labels, start, sha1 of the whole text); documents a label;
# documents without any text. The class counts of 20 Newsgroups are those of the table on its home page.
PINS = {
    "20ng": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "From: mathew <mathew@mantis.co.uk>\nSubject: Alt.Atheism FAQ:",
                    "53a52155f68bdd5e4357b0a6cdf618aeb4180762",
                ),
                (
                    "rec.sport.baseball",
                    "From: st902415@pip.cc.brandeis.edu (Adam Levin)\nSubject: Ear",
                    "db69886eb2c15785d27f24ea3d00b3626796ae1d",
                ),
                (
                    "talk.religion.misc",
                    "Subject: Re: Albert Sabin\nFrom: rfox@charlie.usd.edu (Rich F",
                    "66d6a50df046d6be638c59e13532fe1d1543a237",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            0,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "From: decay@cbnewsj.cb.att.com (dean.kaflowitz)\nSubject: Re:",
                    "e92f717ecdbfa3a30b5f91737fed3fd3d592be1b",
                ),
                (
                    "rec.sport.baseball",
                    "From: scott@asd.com (Scott Barman)\nSubject: Re: Box score ab",
                    "a37b33975f5ba600c26b8a690c3765a575e9b4dc",
                ),
                (
                    "talk.religion.misc",
                    "From: pharvey@quack.kfu.com (Paul Harvey)\nSubject: Re: I'll ",
                    "ebb34a6db7002c3feb008bef67edb90e45c59845",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            0,
        ),
    },
    "20ng-stripped": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "Archive-name: atheism/resources\nAlt-atheism-archive-name: re",
                    "aae2041436646366f7c053e9947cdbb6d92fdc94",
                ),
                (
                    "rec.sport.baseball",
                    "Just curious if anyone has started to standout early in the ",
                    "a702271e7c33399a1a75f9dc8c0dd25872cb2200",
                ),
                (
                    "talk.religion.misc",
                    "\nI hope I didn't award custody, Rich.  I purposely used \"han",
                    "96380a7b872eb25dd0cfb97c3f9181c1ddace52d",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            300,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "\nI am not familiar with, or knowledgeable about the original",
                    "09c1f19513e113adeace0fdd70a944e8e6a2afd1",
                ),
                (
                    "rec.sport.baseball",
                    '\nI\'ve seen it as "Colmn" also.\n\nBlame the Associated Press. ',
                    "e905bedfe74fc1b42b1b52adce2392bfef56c145",
                ),
                (
                    "talk.religion.misc",
                    "\nYou are in the village. Many happy returns! Be seeing you!",
                    "53fd5e44bd2ac642c11ffb9680a85411121ec634",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            215,
        ),
    },
    "20ng-subject": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "Alt.Atheism FAQ: Atheist Resources\nArchive-name: atheism/res",
                    "2ec8cdcb28aedb17a61db3f31d4430c8d22bd832",
                ),
                (
                    "rec.sport.baseball",
                    "Early BBDDD Returns?\nJust curious if anyone has started to s",
                    "dce625584acdc4e185c696c8a26b784348dcdc2d",
                ),
                (
                    "talk.religion.misc",
                    "Re: Albert Sabin\nIn article <1993Apr15.012537.26867@nntpd2.c",
                    "0e783301d4bb0231b2ff07812faa7a95507f74c7",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            0,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "Re: about the bible quiz answers\nIn article <healta.153.7352",
                    "a6a656d36411e761e7101d8d039b2e7d827dda10",
                ),
                (
                    "rec.sport.baseball",
                    "Re: Box score abbrev woes\nIn article <1993Apr15.195452.14672",
                    "da8a764335bca9980410a81c53a3092f3ebeba73",
                ),
                (
                    "talk.religion.misc",
                    "Re: I'll see your demand and raise you... (was Re: After 200",
                    "6688f24713f5230c7b206fecdb1ce723e8ccf5bc",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            0,
        ),
    },
    "imdb": {
        "train": (
            25000,
            [
                (
                    "neg",
                    "Story of a man who has unnatural feelings for a pig. Starts ",
                    "c60d08c2ebc0eac8fe1574bb838e4131875ace2f",
                ),
                (
                    "pos",
                    "Bromwell High is a cartoon comedy. It ran at the same time a",
                    "626c2b84bc253a0837258e6189ad1a854c8456b4",
                ),
                (
                    "pos",
                    "I always feel strange and guilty saying it (because I'm a fa",
                    "bc02d908671f778c3924dc7a35713ad280a45873",
                ),
            ],
            "12500 12500",
            0,
        ),
        "test": (
            25000,
            [
                (
                    "neg",
                    "Once again Mr. Costner has dragged out a movie for far longe",
                    "0e2d960e07506a0f866e9145c5e8bc30411557a1",
                ),
                (
                    "pos",
                    "I went and saw this movie last night after being coaxed to b",
                    "cf7e7e6678e3c354b289744ee36a6027e78c08a2",
                ),
                (
                    "pos",
                    "I was plagued by nightmares involving Sesame Street and the ",
                    "a64aadd2414ba611e82b61b589dab948f87a41e3",
                ),
            ],
            "12500 12500",
            0,
        ),
    },
    "reuters65": {
        "train": (
            5946,
            [
                (
                    "cocoa",
                    "BAHIA COCOA REVIEW\nShowers continued throughout the week in\n",
                    "d59c393dd6c1b7c5b00dc102a4aa470441b5959c",
                ),
                (
                    "gnp",
                    "BRAZIL'S GDP GREW 8.2 PCT LAST YEAR\nBrazil's Gross Domestic ",
                    "8eeda95fcb06dcc9c14c247ee9f4293545095a27",
                ),
                (
                    "ship",
                    "AUSTRALIAN UNIONS LAUNCH NEW SOUTH WALES STRIKES\nAustralian ",
                    "d14daa443ce138d16a0f2757e2416c555d8ac8c2",
                ),
            ],
            "1435 29 15 6 41 0 89 31 15 45 2 223 1 2673 4 10 49 70 38 0 6 0 13 3 3 140 2 27 "
            "26 2 32 1 4 8 13 7 6 176 70 0 22 3 9 12 13 1 2 0 1 30 15 0 29 107 4 9 90 2 17 "
            "225 19 1 12 0 8",
            0,
        ),
        "test": (
            2347,
            [
                (
                    "trade",
                    "ASIAN EXPORTERS FEAR DAMAGE FROM U.S.-JAPAN RIFT\nMounting tr",
                    "099728922f69ef2ccfe3487e37ff733eb06de7ce",
                ),
                (
                    "alum",
                    "ALCAN REDUCES COST OF PLANNED SMELTER\nAlcan Aluminium Ltd sa",
                    "01f86086369efcf95189760352358acbcb1a5b62",
                ),
                (
                    "gold",
                    "SIX KILLED IN SOUTH AFRICAN GOLD MINE ACCIDENT\nSix black min",
                    "4f1dd9f4f0be183a4d9d250dbebe4630d4fc6952",
                ),
            ],
            "620 16 8 5 12 1 21 13 9 15 0 98 2 1040 7 8 14 20 7 2 4 1 1 2 1 57 0 9 11 1 10 0 "
            "4 2 5 4 1 69 17 1 11 1 0 6 6 2 3 1 0 8 1 1 9 35 0 6 24 3 10 73 11 0 8 6 4",
            0,
        ),
    },
    "reuters90": {
        "train": (
            7770,
            [
                (
                    "cocoa",
                    "BAHIA COCOA REVIEW\nShowers continued throughout the week in\n",
                    "d59c393dd6c1b7c5b00dc102a4aa470441b5959c",
                ),
                (
                    "acq",
                    "GENCORP <GY> TO STUDY GENERAL PARTNER BID\nGenCorp Inc chairm",
                    "dc961e8fbf553bda3a471d13fa91265b64e6d06c",
                ),
                (
                    "ship",
                    "AUSTRALIAN UNIONS LAUNCH NEW SOUTH WALES STRIKES\nAustralian ",
                    "d14daa443ce138d16a0f2757e2416c555d8ac8c2",
                ),
            ],
            "1650 35 37 75 50 1 55 4 4 111 47 2 181 39 1 69 3 389 2 131 10 2877 13 37 101 "
            "94 433 5 1 14 16 16 9 5 347 41 40 4 46 6 15 12 1 75 10 30 538 140 2 75 8 1 2 8 "
            "124 16 2 30 2 20 5 3 3 2 5 18 55 23 35 37 1 197 21 24 13 14 78 16 126 1 5 11 9 "
            "18 369 87 212 19 45 21",
            0,
        ),
        "test": (
            3019,
            [
                (
                    "trade",
                    "ASIAN EXPORTERS FEAR DAMAGE FROM U.S.-JAPAN RIFT\nMounting tr",
                    "099728922f69ef2ccfe3487e37ff733eb06de7ce",
                ),
                (
                    "crude",
                    "LUKMAN SEES STABLE OIL PRICE FOR NEXT COUPLE YEARS\nThe curre",
                    "29653d618b004b81baf684db9465e2330997b31c",
                ),
                (
                    "gold",
                    "SIX KILLED IN SOUTH AFRICAN GOLD MINE ACCIDENT\nSix black min",
                    "4f1dd9f4f0be183a4d9d250dbebe4630d4fc6952",
                ),
            ],
            "719 23 14 30 18 1 18 2 3 28 18 1 56 20 2 28 1 189 1 44 4 1087 10 17 35 30 149 4 "
            "1 5 6 4 7 1 131 12 14 1 21 2 14 3 1 24 6 19 179 34 4 30 1 2 2 6 47 11 1 10 1 12 "
            "7 3 3 1 3 9 18 2 24 12 1 89 8 10 13 11 33 11 36 1 2 5 4 12 117 37 71 10 14 13",
            0,
        ),
    },
    "reuters-random70": {
        "train": (
            7956,
            [
                (
                    "ship",
                    "WORK AT CHITTAGONG PORT HALTED BY STRIKE\nCargo handling rema",
                    "eb46955b8a1db52f20535e65c213949a94fe25d1",
                ),
                (
                    "earn",
                    "<M-CORP INC> RAISES DIVIDEND\nSemi-annual div 7-1/2 cts vs fi",
                    "74c45410b3d97c7301f6e8f2a34f131599f85929",
                ),
                (
                    "trade",
                    "EC PUBLISHES LIST OF U.S. BARRIERS TO FREE TRADE\nThe Europea",
                    "4a3585609f5b0779072f7c2da04f06c8291bef2d",
                ),
            ],
            "1694 47 2 33 0 79 3 53 1 1 1 52 6 4 109 54 2 175 0 1 45 3 1 91 3 440 1 "
            "2 1 148 8 2774 2 1 20 45 109 91 421 8 2 22 1 16 13 10 6 372 4 36 46 5 "
            "58 7 23 13 1 2 2 1 79 12 36 571 131 5 96 10 3 3 9 131 20 3 33 1 0 29 11 "
            "2 4 5 4 2 1 6 22 1 62 16 44 0 42 1 0 3 2 202 27 1 23 18 22 81 15 24 132 "
            "2 5 11 3 10 26 390 100 200 1 24 49 32",
            0,
        ),
        "test": (
            3411,
            [
                (
                    "earn",
                    "H.F. AHMANSON AND CO <AHM> 3RD QTR NET\nShr 41 cts vs 80 cts\n",
                    "ad8e19a0830f86d0a12a42552e9841766bf4ad33",
                ),
                (
                    "grain wheat",
                    "MOROCCO TENDERS THURSDAY FOR PL 480 WHEAT\nMorocco will tende",
                    "8d97465652a29d0b51cc69fb3ca305f4652349a7",
                ),
                (
                    "corn grain oilseed soybean wheat",
                    "CBT TRADERS SEE LOWER SOYBEAN EXPORT INSPECTIONS\nThe USDA's ",
                    "c6eb30300176114061d49a52256c27fdfcf58817",
                ),
            ],
            "754 16 2 21 1 37 0 22 1 0 0 24 0 3 36 24 1 78 1 1 18 0 0 21 1 194 0 1 0 "
            "69 7 1213 1 1 8 20 54 44 207 2 0 3 0 11 8 8 1 141 3 29 21 3 18 2 12 4 0 "
            "0 0 2 35 5 15 230 59 2 34 1 0 1 5 61 9 0 10 2 1 12 1 2 0 1 2 1 0 2 13 0 "
            "22 11 23 1 9 0 2 0 1 103 10 0 12 9 3 39 6 8 52 0 3 6 1 5 7 161 37 106 1 "
            "8 20 12",
            0,
        ),
    },
}


@pytest.fixture(scope="module")
def corpora(data_dir: object) -> dict[str, Corpus]:
    return {name: catalogue.dataset(name).load().load() for name in PINS}


@pytest.mark.parametrize("name", sorted(PINS))
@pytest.mark.parametrize("part", ["train", "test"])
def test_pins(corpora: dict[str, Corpus], name: str, part: str) -> None:
    corpus = corpora[name]
    n_documents, documents, n_per_label, n_empty = PINS[name][part]
    texts, targets = getattr(corpus, f"{part}_texts"), getattr(corpus, f"{part}_targets")
    assert len(texts) == n_documents
    for i, (labels, start, sha1) in zip((0, n_documents // 2, n_documents - 1), documents, strict=True):
        assert texts[i][:60] == start
        assert hashlib.sha1(texts[i].encode()).hexdigest() == sha1
        assert " ".join(labels_of(corpus, targets, i)) == labels
    counts = np.bincount(targets) if targets.ndim == 1 else targets.sum(axis=0, dtype=np.int64).A1
    padded = np.pad(counts, (0, len(corpus.target_names) - len(counts)))
    assert padded.tolist() == [int(count) for count in n_per_label.split()]
    assert sum(not text.strip() for text in texts) == n_empty


def labels_of(corpus: Corpus, targets: np.ndarray, i: int) -> list[str]:
    return [corpus.target_names[j] for j in ([targets[i]] if targets.ndim == 1 else targets[i].indices)]


@pytest.mark.parametrize("name", sorted(PINS))
def test_contract(corpora: dict[str, Corpus], name: str) -> None:
    corpus, module = corpora[name], catalogue.dataset(name).load()
    assert corpus.name == name
    assert corpus.target_names == sorted(corpus.target_names)
    for targets in (corpus.train_targets, corpus.test_targets):
        assert targets.dtype == (np.int64 if targets.ndim == 1 else np.int8)
        if targets.ndim == 2:
            assert targets.has_canonical_format
            assert set(targets.data) == {1}
            assert np.diff(targets.indptr).min() >= 1
    assert corpus.notes and module.SOURCE and module.LICENCE and module.CITATION
    assert all(len(digest) == 64 for digest in module.SHA256.values())
    assert catalogue.dataset(name).constant("RULE") in RULES
    assert catalogue.dataset(name).description.endswith(".")


def test_reuters90_has_the_published_counts_of_its_largest_topics(corpora: dict[str, Corpus]) -> None:
    """Joachims, Text categorization with support vector machines, 1998; Debole and Sebastiani, 2005."""
    corpus = corpora["reuters90"]
    published = {"earn": (2877, 1087), "acq": (1650, 719), "money-fx": (538, 179), "grain": (433, 149)}
    for topic, counts in published.items():
        column = corpus.target_names.index(topic)
        assert (corpus.train_targets[:, [column]].sum(), corpus.test_targets[:, [column]].sum()) == counts


def test_reuters65_classes(corpora: dict[str, Corpus]) -> None:
    trained = set(corpora["reuters65"].train_targets.tolist())
    tested = corpora["reuters65"].test_targets.tolist()
    assert (len(trained), len(trained & set(tested))) == (58, 51)
    assert sum(target not in trained for target in tested) == 13


def test_random70_has_five_labels_without_a_training_document(corpora: dict[str, Corpus]) -> None:
    corpus = corpora["reuters-random70"]
    together = corpus.train_targets.sum(axis=0) + corpus.test_targets.sum(axis=0)
    assert together.min() >= 1
    assert len(corpus.target_names) == 120


def test_reuters_text_agrees_with_an_independent_preparation(corpora: dict[str, Corpus]) -> None:
    """Cardoso-Cachopo's R8, made from the same stories: title and body, everything but letters a space."""
    known = {text.strip() for text in catalogue.dataset("r8").load().load().train_texts}
    texts = corpora["reuters65"].train_texts
    ours = {" ".join(re.sub("[^a-z]", " ", text.lower()).split()) for text in texts}
    assert len(ours & known) / len(known) > 0.9


def test_stripped_is_what_scikit_learn_gives(corpora: dict[str, Corpus]) -> None:
    from sklearn.datasets import _twenty_newsgroups as rules

    whole, stripped = corpora["20ng"].test_texts, corpora["20ng-stripped"].test_texts
    for text, expected in zip(whole[::50], stripped[::50], strict=True):
        body = rules.strip_newsgroup_header(text)
        assert rules.strip_newsgroup_quoting(rules.strip_newsgroup_footer(body)) == expected


def test_imdb_keeps_no_line_break_marks(corpora: dict[str, Corpus]) -> None:
    assert not any("<br />" in text for text in corpora["imdb"].train_texts)


def test_content_digests_are_those_of_the_archives(data_dir: object) -> None:
    for archive in (_reuters.ARCHIVE, _newsgroups.ARCHIVE, catalogue.dataset("imdb").load().ARCHIVE):
        assert archives.content_digest(archives.read(archive)) == archive.content_sha256


STORY = """<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" OLDID="1" NEWID="1">
<TOPICS><D>grain</D><D>wheat</D></TOPICS><PLACES><D>usa</D></PLACES>
<TEXT{type}>&#2;
{text}</TEXT>
</REUTERS>
"""


def story(text: str, type: str = "") -> _reuters.Story:
    (parsed,) = _reuters.parse(STORY.format(text=text, type=type).encode("iso-8859-1"), "toy.sgm")
    return parsed


def test_a_story() -> None:
    parsed = story(
        "<TITLE>A &lt;B> &amp;lt; C</TITLE><DATELINE>X</DATELINE><BODY>S&P, AT&T\n Z\xfcrich &#3;</BODY>"
    )
    assert parsed.text == "A <B> &lt; C\nS&P, AT&T\n Z\xfcrich"
    assert parsed.topics == ("grain", "wheat")
    assert (parsed.mod_apte, parsed.has_body) == ("train", True)


def test_a_story_without_body_is_its_title_and_an_unprocessed_one_its_whole_text() -> None:
    assert story("<TITLE>BRIEF</TITLE>", ' TYPE="BRIEF"').text == "BRIEF"
    assert story("WHOLE&#127;TEXT", ' TYPE="UNPROC"').text == "WHOLE TEXT"


@pytest.mark.parametrize(
    ("sgml", "message"),
    [
        ("<REUTERS TOPICS='YES'>", r"toy\.sgm: every story must be closed, got none after story 0"),
        ("<REUTERS>x</REUTERS>", r"toy\.sgm, story 1: it needs LEWISSPLIT"),
    ],
)
def test_a_bad_story_is_named(sgml: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(_reuters.parse(sgml.encode(), "toy.sgm"))


def test_indicator_leaves_out_other_labels_and_repeats() -> None:
    found = _reuters.indicator([["b", "a", "b"], ["z"], ["c"]], ["a", "b", "c"])
    assert found.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("From: a\nSubject: Re: x\nLines: 2\n\nbody\n\nmore", "Re: x\nbody\n\nmore"),
        ("subject: long\n\tand longer\nFrom: a\n\nbody", "long and longer\nbody"),
        ("From: a\n\nSubject: of the body", "Subject: of the body"),
        ("no headers at all", ""),
    ],
)
def test_subject_and_body(message: str, expected: str) -> None:
    assert _newsgroups.subject_and_body(message) == expected


def test_a_review_that_is_not_utf8() -> None:
    from tasks.datasets import imdb

    assert imdb.review("na\xefve<br /><br />good".encode()) == "na\xefve  good"
    with pytest.raises(InputError, match="a review must be UTF-8, got byte 0xff at 2"):
        imdb.review(b"ab\xff")
