"""Model files with faults, by the thousand: each is refused by name, or is a model that predicts.

The usual run makes a few hundred; `bash ci/test --all-faults` makes 10 000 of each kind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fault_counts import count
from forged_files import forged
from golden_models import FOLDER
from mutations import with_other_bytes, with_other_parts
from peak_memory import peak_bytes

from gpustump import ModelFileError, StumpEnsemble

FILES = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.json"))}
DOCUMENTS = [json.loads(content) for content in FILES.values()]

LONGEST_MESSAGE = 1000

pytestmark = pytest.mark.filterwarnings("ignore:values are missing:UserWarning")


def other_bytes(draw: random.Random) -> bytes:
    return with_other_bytes(draw, draw.choice(list(FILES.values())))


def other_bytes_with_their_checksum(draw: random.Random) -> bytes:
    """The bytes are changed until they are still a JSON object."""
    while True:
        try:
            document = json.loads(other_bytes(draw))
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and "model" in document:
            return forged(document).encode()


def other_parts(draw: random.Random) -> bytes:
    """Other values and parts, under a checksum and a digest that fit them."""
    return forged(with_other_parts(draw, DOCUMENTS)).encode()


def two_files(draw: random.Random) -> bytes:
    """The beginning of one file and the end of another."""
    first, second = draw.choices(list(FILES.values()), k=2)
    return first[: draw.randrange(len(first) + 1)] + second[draw.randrange(len(second)) :]


@pytest.mark.filterwarnings("ignore:.* has values that were not in training")
@pytest.mark.parametrize(
    ("make", "usual"),
    [
        (other_bytes, 150),
        (other_bytes_with_their_checksum, 60),
        (other_parts, 250),
        (two_files, 40),
    ],
)
def test_a_file_with_a_fault_is_refused_or_predicts(
    make: Callable[[random.Random], bytes], usual: int, tmp_path: Path
) -> None:
    before = peak_bytes()
    n_loaded = 0
    for number in range(count(usual, 10_000)):
        content = make(random.Random(f"{make.__name__} {number}"))
        try:
            n_loaded += loads(content, tmp_path)
        except Exception as error:
            raise AssertionError(f"{make.__name__} {number}: {error!r}") from error
    assert n_loaded < count(usual, 10_000)
    assert peak_bytes() - before < 500e6


def loads(content: bytes, folder: Path) -> bool:
    """Whether a file is a model, after checking everything in it, or that the refusal is in
    order."""
    path = folder / "model.json"
    path.write_bytes(content)
    try:
        model = StumpEnsemble.load(path)
    except ModelFileError as error:
        message = str(error)
    else:
        is_kept(model, content, folder)
        answers(model)
        return True
    assert str(path) in message
    assert len(message) < LONGEST_MESSAGE
    return False


def is_kept(model: StumpEnsemble, content: bytes, folder: Path) -> None:
    """Check that a model has its file's digest, and keeps it in another file."""
    document = json.loads(content.decode(json.detect_encoding(content)))
    assert model.digest() == document["digest"]
    model.save(folder / "again.json")
    assert StumpEnsemble.load(folder / "again.json").digest() == model.digest()


def answers(model: StumpEnsemble) -> None:
    """Check everything that a model predicts for some rows."""
    assert repr(model).isprintable()
    if model.n_features > 1000:  # a number in the file, without a name for each
        return
    values = [np.nan, 0.0, 1.0, -1e308, np.inf]
    X = np.asarray([[value] * model.n_features for value in values])
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    if model.is_regression:
        with np.errstate(over="ignore"):
            assert np.array_equal(model.predict(X), model.quantities_of(scores))
    else:
        assert set(model.predict(X).tolist()) <= set(model.classes)
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(model.explain(X).sum(axis=-1), scores)
    for bag in model.bag_models:
        assert np.isfinite(bag.decision_function(X)).all()
    assert len(model.encoding.shown_names) == model.n_features


def command_document() -> dict:
    return json.loads(FILES["command"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"position": -1}, "positions must be 0 or more and below 7"),
        ({"position": 7}, "positions must be 0 or more and below 7"),
        ({"position": 10**30}, "positions must be 0 or more and below 7"),
        ({"position": 1}, "positions must all be different"),
        ({"position": 0.0}, "position an int"),
        ({"kind": "pickle"}, "of an unknown kind"),
        ({"values": ["a"]}, "of an unknown kind"),
        ({"name": None}, "name and values must be text"),
    ],
)
def test_an_encoding_that_fits_no_table_is_refused(tmp_path, changes, said):
    document = command_document()
    document["details"]["encoding"]["columns"][0] |= changes
    (tmp_path / "model.json").write_text(forged(document))
    with pytest.raises(ModelFileError, match=f"model's details hold no valid encoding.*{said}"):
        StumpEnsemble.load(tmp_path / "model.json")


def test_a_message_about_bags_is_short_however_many_there_are(tmp_path):
    document = json.loads(FILES["discrete-bags"])
    document["bags"] = {"sizes": [[9] * 5000], "constants": [[[0.0]] * 5000]}
    (tmp_path / "model.json").write_text(forged(document))
    with pytest.raises(ModelFileError, match="sizes of the bags must add up to") as refused:
        StumpEnsemble.load(tmp_path / "model.json")
    assert len(str(refused.value)) < LONGEST_MESSAGE


def test_a_file_of_one_repeated_byte_takes_no_more_memory_than_itself(tmp_path):
    before = peak_bytes()
    for byte in (b"[", b"{", b'"', b"9", b" ", b"\0"):
        (tmp_path / "model.json").write_bytes(byte * 10_000_000)
        with pytest.raises(ModelFileError, match=r"model\.json is not a gpustump model"):
            StumpEnsemble.load(tmp_path / "model.json")
    assert peak_bytes() - before < 200e6
