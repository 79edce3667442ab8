"""Serve scikit-learn's SGDClassifier by FastAPI, as its users do; `http_bench` starts it.

    PYTHON fastapi_server.py train TRAIN.vw MODEL CLASSES BITS
    PYTHON fastapi_server.py serve MODEL PORT [by_feature]

PYTHON is an interpreter with fastapi, uvicorn, scikit-learn and joblib; nothing of xclass is needed. The texts are
hashed to 2 ** BITS features. With `by_feature`, the coefficients lie in the memory feature by feature, because the
product of a sparse row with the transpose that scikit-learn computes copies all of them otherwise.
"""

import sys

import joblib
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

CHUNK = 2_000  # examples that are learned at once


def train(path: str, model: str, classes: str, bits: str) -> None:
    """Learn from lines `label |a words`, and write the model."""
    with open(path) as file:
        labels, texts = zip(*(line.rstrip("\n").split(" |a ") for line in file), strict=True)
    vectorizer = HashingVectorizer(n_features=1 << int(bits), alternate_sign=False, norm=None, dtype=np.float64)
    classifier = SGDClassifier(loss="log_loss", random_state=1)
    y, every = np.array(labels, int), np.arange(1, int(classes) + 1)
    for begin in range(0, len(texts), CHUNK):
        rows = vectorizer.transform(texts[begin : begin + CHUNK])
        classifier.partial_fit(rows, y[begin : begin + CHUNK], classes=every)
    joblib.dump((vectorizer, classifier), model)


def serve(path: str, port: str, *order: str) -> None:
    """Serve a model."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    vectorizer, classifier = joblib.load(path)
    if order:
        classifier.coef_ = np.asfortranarray(classifier.coef_)
    app = FastAPI()

    class Question(BaseModel):
        text: str

    @app.post("/predict")
    async def predict(question: Question) -> dict[str, int]:
        return {"prediction": int(classifier.predict(vectorizer.transform([question.text]))[0])}

    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    {"train": train, "serve": serve}[sys.argv[1]](*sys.argv[2:])
