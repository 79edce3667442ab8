"""The backend of Annif in demo/: with a fake of the part of Annif that it uses, and with Annif where there is one."""

import importlib.util
import os
import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace

import pytest

SUBJECTS = ["tea", "hot", "cake", "sweet"]
TEXTS = [
    ("pour boiling water over the leaves", {0, 1}),
    ("beat eggs and sugar", {2, 3}),
    ("stir honey into the tea", {0, 3}),
    ("bake the dough", {2}),
    ("", {1}),
    ("nobody knows what this is about", set()),
]


class Corpus:
    """Documents that may be read several times, as of Annif."""

    def __init__(self, *texts):
        self.texts = texts

    @property
    def documents(self):
        return (SimpleNamespace(text=text, subject_set=subjects) for text, subjects in self.texts)

    def is_empty(self):
        return not self.texts


class FakeBackend:
    def __init__(self, backend_id, config_params, project):
        self.backend_id, self.project, self.datadir = backend_id, project, project.datadir
        self.params = {**self.DEFAULT_PARAMETERS, **config_params}
        self.messages = []

    def info(self, message):
        self.messages.append(message)

    warning = info

    def train(self, corpus, params=None, jobs=0):
        self._train(corpus, {**self.params, **(params or {})}, jobs)

    def learn(self, corpus, params=None):
        self._learn(corpus, {**self.params, **(params or {})})

    def suggest(self, documents, params=None):
        self.initialize()
        return self._suggest_batch(documents, {**self.params, **(params or {})})


class FakeError(Exception):
    def __init__(self, message, project_id=None, backend_id=None):
        super().__init__(message)


class FakeBatch(list):
    @classmethod
    def from_sequence(cls, results, subjects, limit=None):
        assert all(0 <= each.subject_id < len(subjects) and 0 < each.score <= 1 for row in results for each in row)
        return cls(row[:limit] for row in results)


def fake_annif():
    """Return the modules of Annif that the backend imports, with as much in them as it uses."""

    def save(model, folder, name):
        model.save(os.path.join(folder, name))

    errors = ("ConfigurationException", "NotInitializedException", "NotSupportedException", "OperationFailedException")
    contents = {
        "annif": {},
        "annif.backend": {"_backend_fns": {}},
        "annif.backend.backend": {"AnnifLearningBackend": FakeBackend},
        "annif.exception": {name: type(name, (FakeError,), {}) for name in errors},
        "annif.suggestion": {
            "SubjectSuggestion": namedtuple("SubjectSuggestion", "subject_id score"),
            "SuggestionBatch": FakeBatch,
        },
        "annif.util": {"atomic_save": save},
    }
    modules = {name: ModuleType(name) for name in contents}
    for name, module in modules.items():
        module.__dict__.update(contents[name])
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(modules[parent], own, module)
    return modules


@pytest.fixture(params=["fake", "annif"])
def demo(request, monkeypatch):
    """The module, imported with the fake or with Annif."""
    if request.param == "annif":
        pytest.importorskip("annif", reason="annif is not installed: pip install annif")
    else:
        for name in [name for name in sys.modules if name.partition(".")[0] == "annif"]:
            monkeypatch.delitem(sys.modules, name)
        for name, module in fake_annif().items():
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "demo.annif_backend", raising=False)
    module = importlib.import_module("demo.annif_backend")
    yield module
    sys.modules.pop("demo.annif_backend", None)


@pytest.fixture
def backend(demo, tmp_path):
    """Return a backend with the settings of a project."""

    def make(**settings):
        analyzer = SimpleNamespace(tokenize_words=str.split)
        project = SimpleNamespace(datadir=str(tmp_path), subjects=SUBJECTS, analyzer=analyzer)
        return demo.XclassBackend("xclass", {"options": "--plt {K} -b 16", "passes": "9", **settings}, project)

    return make


def best(suggestions):
    return [SUBJECTS[suggestion.subject_id] for suggestion in suggestions]


def documents(*texts):
    return list(Corpus(*((text, None) for text in texts)).documents)


def test_subjects_are_learned_suggested_and_learned_online(backend):
    trained = backend()
    trained.train(Corpus(*TEXTS))
    batch = trained.suggest(documents("honey tea", "", "dough"))
    assert len(batch) == 3 and set(best(batch[0])[:2]) == {"tea", "sweet"} and best(batch[2])[0] == "cake"
    assert list(batch[1]) == []  # no words, no subjects
    assert all(0 < suggestion.score <= 1 for suggestion in batch[0])
    assert best(trained.suggest(documents("dough"), {"limit": 1})[0]) == ["cake"]
    loaded = backend()
    loaded.initialize(parallel=True)
    assert loaded._model is None  # processes that are forked load it themselves
    before = next(s.score for s in loaded.suggest(documents("whistling kettle"))[0] if s.subject_id == 1)
    for _ in range(5):
        loaded.learn(Corpus(("a whistling kettle", {1})))
    again = backend().suggest(documents("whistling kettle"))[0]
    assert best(again)[0] == "hot" and next(s.score for s in again if s.subject_id == 1) > before + 0.1


def test_what_cannot_be_done_is_reported(backend, demo, tmp_path):
    with pytest.raises(demo.NotInitializedException, match="xclass-model not found"):
        backend().suggest(documents("tea"))
    with pytest.raises(demo.NotSupportedException, match="documents are not kept"):
        backend().train("cached")
    with pytest.raises(demo.NotSupportedException, match="training with no documents"):
        backend().train(Corpus())
    with pytest.raises(demo.ConfigurationException, match="options=--pltt 4: there is no option --pltt"):
        backend(options="--pltt {K}").train(Corpus(*TEXTS))
    assert not (tmp_path / "xclass-model").exists()
    trained = backend(options="--multilabel_oaa {K} -b 16")
    trained.train(Corpus(*TEXTS))
    with pytest.raises(
        demo.OperationFailedException, match=r"4; allowed are .* train again if the vocabulary has grown"
    ):
        trained.learn(Corpus(("a new subject", {4})))
