"""Texts: characters, words and grams against plain Python, and the same features from every door."""

import io
import json
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xclass
from tests.support.effort import tries
from xclass.api import configuration
from xclass.data import characters, feature_names, texts
from xclass.data.batch import CONSTANT
from xclass.explain import feature_names as names
from xclass.formats import detect
from xclass.text import parser, reader

BITS = 24
MASK = np.uint32(2**BITS - 1)
letters = "abzAÉZéßÅΣςЖжİıǅŒœ0179_ñĉ"
signs = " \t\xa0\u3000,.?!'’“-—…#@:|/<>%$€£©№½²ﬁｆＵ日本カナ가한😀\u200d\xad"
written = st.lists(
    st.one_of(st.sampled_from(letters), st.sampled_from(letters).map(lambda c: c + "\u0301"), st.sampled_from(signs)),
    max_size=20,
).map("".join)
any_text = st.one_of(written, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
options = st.fixed_dictionaries(
    {
        "text_split": st.sampled_from(texts.SPLITS),
        "text_case": st.sampled_from([None, *texts.CASES]),
        "text_unicode": st.sampled_from([None, *texts.NORMAL_FORMS]),
        "text_ngram": st.sampled_from([None, 1, 2, 3]),
        "text_chars": st.sampled_from([None, "2-3", "3-5"]),
        "hash": st.sampled_from(["strings", "all"]),
        "hash_seed": st.sampled_from([0, 7]),
    }
)


def rules_of(text: bytes, **given) -> texts.TextRules:
    return texts.Texts(texts.TextOptions(**given), False, MASK).rules(np.frombuffer(text, np.uint8))


def words_of(text: str, **given) -> list[str]:
    data = text.encode()
    return [word.decode() for (word,) in texts.named(data, rules_of(data, text_ngram=1, **given))]


def normalised(text: str, case: str, form: str) -> str:
    """Return a text as Python normalises it; a character that the tables keep is left as it is."""
    parts = []
    for part in re.findall(".\u0301?", text, re.DOTALL):
        new = unicodedata.normalize("NFKC", part)
        new = unicodedata.normalize("NFKC", new.casefold()) if case == "fold" else new
        if form == "accents":
            new = "".join(c for c in unicodedata.normalize("NFKD", new) if not unicodedata.combining(c))
            new = unicodedata.normalize("NFC", new)
        kept = len(new.encode()) > 2 * len(part.encode()) or part == "½"
        parts.append(part if kept else re.sub("[\u200d\xad]", "", new))
    return "".join(parts)


@settings(max_examples=tries(300))
@given(written, st.sampled_from(["fold", "keep"]), st.sampled_from(["nfkc", "accents"]))
@example("E\u0301cole ﬁne STRASSE Straße", "fold", "nfkc")
@example("ÉCOLE naïve", "fold", "accents")
def test_words_are_those_of_python(text, case, form):
    found = words_of(text, text_case=case, text_unicode=form)
    expected = re.findall(r"[日本カナ]|(?:(?![日本カナ])[\w\u0301\u0307])+|[^\w\s]", normalised(text, case, form))
    assert found == expected
    no_marks = words_of(text, text_case=case, text_unicode=form, text_split="words")
    assert no_marks == [word for word in expected if re.match(r"[\w\u0301\u0307]", word)]


def test_words_of_examples():
    assert " ".join(words_of("WHAT IS the Number, in?", text_case="fold")) == "what is the number , in ?"
    assert words_of("Is IT it?") == ["is", "it", "it", "?", "Is", "IT"]
    assert words_of("Crème BRÛLÉE", text_unicode="accents", text_case="fold") == ["creme", "brulee"]
    assert words_of("don't x_1 3.5", text_split="words") == ["don", "t", "x_1", "3", "5"]
    assert words_of("日本語 हिन्दी 한국어 😀😀") == ["日", "本", "語", "हिन्दी", "한국어", "😀", "😀"]
    assert words_of("soft\xadware, Soft WARE", text_split="spaces") == ["soft\xadware,", "Soft", "WARE"]
    assert words_of("Soft WARE,", text_split="spaces", text_case="fold") == ["soft", "ware,"]
    assert words_of("ﷺ ½ a\u200bb") == ["ﷺ", "½", "ab"]  # what would become too long is kept


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=tries(100))
@given(st.binary(max_size=30) | any_text.map(str.encode), options)
@example("\u0301é\u0301".encode()[:-1] + b"\xed\xa0\x80\xf4\x90\x80\x80\xe0\x80", {"text_chars": "2-3"})
def test_features_have_the_names_that_are_shown(text, given_options):
    chosen = parser.ParserOptions(**given_options)
    rule = feature_names.new_hashing(chosen.hash_seed, chosen.hash == "all", BITS)
    rules = texts.Texts(chosen, rule.hash_all, rule.mask).rules(np.frombuffer(text, np.uint8))
    data = np.frombuffer(bytearray(text + bytes(feature_names.PADDING)), np.uint8)
    most = texts.most_features(rules, len(text), 1)
    begin, end = np.zeros(1, np.int64), np.array([len(text)])
    seeds, work = np.array([rule.unnamed]), texts.work_for(rules, len(text))
    _, index = texts.indices(data, begin, end, seeds, rules, work, most + 1)
    assert len(index) <= most
    namer = names.Namer(
        chosen, configuration.namespaces.NamespaceOptions(), configuration.interactions.InteractionOptions(), BITS
    )
    shown = namer.of_written(names.written_features([text.decode("utf-8", "surrogateescape")], 0))
    assert [one.hash for one in shown[:-1]] == index.tolist()
    assert shown[-1].text == b"Constant"


def indices_of(batches) -> list[list[int]]:
    return [
        [i for i in batch.index[batch.start[k] : batch.start[k + 1]].tolist() if i != CONSTANT]
        for batch in batches
        for k in range(batch.n)
    ]  # fmt: skip


def read(text: str, form: str, given_options, **of_reader) -> list[list[int]]:
    of_reader = reader.ReaderOptions(format=form, **of_reader)
    source = reader.Reader(
        of_reader, parser.Parser(parser.ParserOptions(learn_names=True, **given_options), BITS, "multiclass"),
        stream=io.BytesIO(text.encode()), choose=detect.chooser(of_reader),
    )  # fmt: skip
    return indices_of(list(source))


@settings(max_examples=tries(60), deadline=None)
@given(
    st.lists(any_text.map(lambda text: re.sub("[\r\n\x0b\x0c\0]|__label__", " ", text)), min_size=1, max_size=4),
    options,
)
@example(["Is THIS a test?", "Crème e\u0301", " ", "x"], {"text_chars": "3-5"})
def test_every_door_gives_the_same_features(given_texts, given_options):
    pandas = pytest.importorskip("pandas")
    with xclass.Learner("multiclass", bits=BITS, learn_names=True, **given_options) as learner:
        expected = indices_of(learner.inputs.batches(xclass.Documents(given_texts)))
        single = [indices_of([learner.inputs.example(t, None, None, False)]) for t in given_texts if "|" not in t]
        assert [[one] for t, one in zip(given_texts, expected, strict=True) if "|" not in t] == single
        in_column = indices_of(learner.inputs.batches(pandas.DataFrame({"text": given_texts})))
    lines = [json.dumps({"label": "y", "text": text}, ensure_ascii=False) for text in given_texts]
    assert read("\n".join(lines), "jsonl", given_options) == expected
    assert read("".join(f"__label__y {text}\n" for text in given_texts), "fasttext", given_options) == expected
    halves = [(text[: len(text) // 2].split(), text[len(text) // 2 :].split()) for text in given_texts]
    inner = "".join(f"{' '.join(a)} __label__y {' '.join(b)}\n" for a, b in halves)
    with_blanks = "".join(f"__label__y {' '.join([*a, *b])}\n" for a, b in halves)
    assert read(inner, "fasttext", given_options) == read(with_blanks, "fasttext", given_options)
    cells = ['"' + text.replace('"', '""') + '"' for text in given_texts]
    table = "label,text\n" + "".join(f"y,{cell}\n" for cell in cells)
    assert read(table, "csv", given_options, column_kind=("text:text",)) == in_column
    flat = [json.dumps({"label": "y", "message": text}) for text in given_texts]
    flat = "\n".join(flat).replace('"message"', '"text"')
    as_columns = read(flat, "jsonl", given_options, column_kind=("text:text",))
    assert as_columns == in_column


def test_n_grams_of_all_features_take_the_place_of_those_of_texts():
    with xclass.Learner("multiclass", ngram=2) as learner:
        of_texts = learner.core.config.parser
        assert (of_texts.text_ngram, of_texts.text_case) == (1, "fold")


def test_a_model_keeps_how_texts_are_read(tmp_path):
    with xclass.Learner("multiclass", bits=14, text_chars="3-4", text_case="fold") as learner:
        learner.learn_many(["Red TEA", "black coffee"], ["tea", "coffee"])
        learner.save(tmp_path / "m")
        stored = learner.core.config.stored()
    with xclass.load(tmp_path / "m") as loaded:
        assert loaded.core.config.parser.text_chars == "3-4" and loaded.predict("teas RED") == "tea"
    older = {name: value for name, value in stored.items() if not name.startswith("text_")}
    of_older = configuration.of_model("m", older).parser
    assert (of_older.text_split, of_older.text_case, of_older.text_unicode) == ("spaces", "keep", "keep")
    assert (of_older.text_ngram, of_older.text_chars) == (1, None)


def test_tables_of_ascii_are_the_beginning_of_those_of_unicode():
    for case in ("fold", "keep"):
        for form in texts.NORMAL_FORMS:
            few, all_of_them = (characters.tables(case, form, count) for count in (128, characters.BMP))
            assert few.pool.tolist() == all_of_them.pool[:128].tolist()
    assert characters.kinds(128).tolist() == characters.kinds(characters.BMP)[:128].tolist()
