"""Helpers of the tests of the user's own documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus
from textbench.tasks.sources.user_data import UserData, load

DOCUMENTS = [("good film", "pos"), ("bad film", "neg"), ("", "neg"), ("fine, really\nfine", "pos")]
CSV = 'label,text\npos,good film\nneg,bad film\nneg,\npos,"fine, really\nfine"\n'
TWO_PARTS = "text,label,part\na,x,train\nb,y,Train\nc,x,TEST\nd,z,test\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file below a folder and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, **options: Any) -> Corpus:
    return load(UserData(str(path), **options))


def pairs(corpus: Corpus) -> list[tuple[str, str]]:
    """Return every (text, label), training documents first."""
    texts = corpus.train_texts + corpus.test_texts
    targets = [*corpus.train_targets, *corpus.test_targets]
    return [(text, corpus.target_names[target]) for text, target in zip(texts, targets, strict=True)]


def refusal(path: Path, **options: Any) -> str:
    """Return the message that refuses a path: one line, and printable."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.isprintable(), repr(message)
    return message


def texts_of_jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
