"""Subject indexing by Annif with xclass: a backend that trains, goes on learning with `annif learn`, and suggests.

    python demo/annif_backend.py train PROJECT CORPUS...
    python demo/annif_backend.py learn PROJECT CORPUS...
    python demo/annif_backend.py suggest PROJECT < document.txt

This adds the backend `xclass` to Annif and then is Annif's own command, with all that `annif --help` lists; `run`
starts its web service, which has a method `learn`. A project is a section of projects.cfg:

    [subjects]
    name=Subjects
    language=en
    backend=xclass
    vocab=subjects
    analyzer=snowball(english)
    allow_learn=1

Further settings: `options`, those of xclass, by default `--multilabel`, in which {K} stands for the number of subjects,
as in `--plt {K} -b 24`; `passes`, the number of passes of `train`, 1 by default; `limit`, as for other backends. Needs
the packages annif (from 1.4 on) and xclass.

An example is a document, its features are the words that Annif's analyzer makes of the text, with their numbers, and
its labels are the numbers of the subjects in the vocabulary. Documents without words or without subjects teach nothing.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import annif.backend
import annif.util
from annif.backend.backend import AnnifLearningBackend
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.suggestion import SubjectSuggestion, SuggestionBatch

import xclass
from xclass.errors import DataError, UsageError

DOCUMENTS = 1000  # of a call of `learn_many`, few enough to be held in memory


class XclassBackend(AnnifLearningBackend):
    """Backend of Annif that learns with xclass, from one document after the other."""

    name = "xclass"
    DEFAULT_PARAMETERS = {"limit": 100, "options": "--multilabel", "passes": 1}  # noqa: RUF012 - as in Annif
    MODEL_FILE = "xclass-model"

    _model: xclass.Learner | None = None  # None until it is trained or loaded

    def initialize(self, parallel: bool = False) -> None:
        """Load the model; if processes are about to be forked, leave that to them, for threads do not survive it."""
        path = Path(self.datadir, self.MODEL_FILE)
        if not path.exists():
            raise NotInitializedException(f"model {path} not found", backend_id=self.backend_id)
        if self._model is None and not parallel:
            self._model = xclass.load(path)

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        """Learn a corpus with a new model. `corpus` may be read several times, or is the word "cached"."""
        if corpus == "cached":
            raise NotSupportedException("train --cached: documents are not kept", backend_id=self.backend_id)
        if corpus.is_empty():
            raise NotSupportedException("training with no documents", backend_id=self.backend_id)
        if jobs:
            self.warning(f"--jobs {jobs} has no effect: the processors of the process are used, see taskset(1)")
        options = str(params["options"]).replace("{K}", str(len(self.project.subjects)))
        try:
            model = xclass.Learner.from_command(options)
        except UsageError as error:
            raise ConfigurationException(f"options={options}: {error}", backend_id=self.backend_id) from error
        for number in range(1, int(params["passes"]) + 1):
            self.info(f"pass {number}")
            self._learn_corpus(model, corpus)
            model.end_pass()
        self._save(model)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        """Go on learning from the documents of a corpus, in one pass."""
        self.initialize()
        assert self._model is not None
        self._learn_corpus(self._model, corpus)
        self._save(self._model)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> SuggestionBatch:
        """Return up to `limit` subjects of each document, with their probabilities; none where it has no words."""
        assert self._model is not None
        limit = int(params["limit"])
        examples = [self._words(document) for document in documents]
        suggested: list[list[SubjectSuggestion]] = [[] for _ in documents]
        filled = [place for place, words in enumerate(examples) if words]
        if filled:
            labels, probabilities = self._model.predict_many([examples[place] for place in filled], k=limit)
            for place, *row in zip(filled, labels.tolist(), probabilities.tolist(), strict=True):
                pairs = zip(*row, strict=True)
                suggested[place] = [SubjectSuggestion(subject, p) for subject, p in pairs if subject >= 0]
        return SuggestionBatch.from_sequence(suggested, self.project.subjects, limit=limit)

    def _words(self, document: Any) -> Counter[str]:
        return Counter(self.project.analyzer.tokenize_words(document.text))

    def _labelled(self, corpus: Any) -> Iterator[tuple[Counter[str], list[int]]]:
        """Yield words and numbers of subjects of each document that has both."""
        for document in corpus.documents:
            words, subjects = self._words(document), sorted(document.subject_set)
            if words and subjects:
                yield words, subjects

    def _learn_corpus(self, model: xclass.Learner, corpus: Any) -> None:
        examples = self._labelled(corpus)
        while part := list(itertools.islice(examples, DOCUMENTS)):
            words, subjects = zip(*part, strict=True)
            try:
                model.learn_many(list(words), list(subjects))
            except DataError as error:
                advice = "train again if the vocabulary has grown since training"
                raise OperationFailedException(f"{error}; {advice}", backend_id=self.backend_id) from error

    def _save(self, model: xclass.Learner) -> None:
        annif.util.atomic_save(model, self.datadir, self.MODEL_FILE)
        self._model = model


def register() -> None:
    """Add the backend to those that Annif knows; it has no other way to add one from outside."""
    annif.backend._backend_fns[XclassBackend.name] = lambda: XclassBackend


if __name__ == "__main__":
    from annif.cli import cli

    register()
    sys.exit(cli())
