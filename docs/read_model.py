"""Predict with a model of `xclass --oaa` or `xclass --cpt`, without xclass; model_file.md explains the steps.

python read_model.py model.bin < test.vw
"""

import json
import sys

import numpy as np
from read_features import features, tag

PLAIN = {"layout": "odd", "link": "identity", "hash": "strings", "loss_function": "squared", "cpt_arity": 2, "trees": 1}
LEARNING = """adaptive bits candidate_cut candidates constant cpt cpt_alpha cpt_tree decay_learning_rate indexing
    initial_t initial_weight invariant label_range learn_names learning_rate normalize_features normalized oaa
    oaa_subsample power_t quantile_tau random_seed rerank_rate sgd tree_noise tree_sample"""
TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "U32": "<u4", "U64": "<u8"}
GOLDEN, SPREAD = np.uint64(0x9E3779B97F4A7C15), 0xD6E8FEB86659FD93


def load(path):
    """Return the options, the facts and the arrays of a model; refuse it if it needs more than is done here."""
    data = np.fromfile(path, np.uint8)
    if data[8:47].tobytes() != b'{"__metadata__":{"format":"xclass model':
        raise ValueError(f"{path}: this is not a model of xclass")
    begin = 8 + int(data[:8].view("<u8")[0])
    entries = json.loads(data[8:begin].tobytes())
    options, facts, version = map(json.loads, map(entries.pop("__metadata__").get, ("options", "facts", "version")))
    learning = LEARNING.split() + ["loss_function"] * ("oaa" in options)
    others = {k: v for k, v in options.items() if k not in learning and v not in (None, False, [], PLAIN.get(k))}
    if others or version != 1 or not options.keys() & {"oaa", "cpt"}:
        raise ValueError(f"{path}: not supported: {others or 'its version, or a model without --oaa and --cpt'}")
    arrays = {k: data[begin:][slice(*e["data_offsets"])].view(TYPES[e["dtype"]]) for k, e in entries.items()}
    return options, facts["learner"], arrays


def column(arrays, table, name, rows):
    """Return a column of a table with all of its rows; those that the model leaves out are 0."""
    whole = np.zeros(rows, arrays[f"{table}.{name}"].dtype)
    whole[arrays.get(f"{table}.index", slice(None))] = arrays[f"{table}.{name}"]
    return whole


def best_leaf(index, x, w, bits, left, place):
    """Return the most probable leaf of a tree: the most probable node is opened next, until it is a leaf."""
    p, path, node, waiting = -1.0, "", 0, []
    while left[node]:
        z = (index * GOLDEN ^ np.uint64((place[node] >> 3) * SPREAD % 2**64)) * GOLDEN
        slot = (z >> 67 - bits) * 8 + ((z >> 64 - bits ^ place[node]) & 7)
        right = min(max(0.5 + 0.5 * float(np.cumsum(w[slot] * x)[-1]), 0.01), 0.99)
        waiting.append((p * (1 - right), path + "01"[right > 0.5], left[node]))
        waiting.append((p * right, path + "10"[right > 0.5], left[node] + 1))
        p, path, node = waiting.pop(waiting.index(min(waiting)))
    return node


def predict(path, lines):
    """Yield what `xclass -t -i PATH -p FILE` writes for lines of VW text."""
    options, facts, arrays = load(path)
    bits, classes, scaled = options["bits"], options.get("oaa"), arrays.get("scales.state", [0, 0])[1]
    names = dict(enumerate(bytes(arrays.get("class_names", b"")).decode().split(","), 1))
    w = column(arrays, "weights" if classes else "weights.0", "w", 2 ** (bits if classes else max(bits, 4)))
    size = column(arrays, "scales", "size", 2**20) if scaled else np.zeros(2**20)
    left, place, label = ([*arrays.get(f"tree.0.{k}", np.zeros(0)).tolist(), 0] for k in ("left", "place", "label"))
    for line in (line.encode() for line in lines if line.strip("\r\n")):
        index, x = features(line, bits)
        if classes:
            rows = w[: len(w) // classes * classes].reshape(-1, classes)
            scores = np.cumsum(rows[index % len(rows)] * x[:, None], axis=0)[-1]
            answer = np.argmax(np.clip(scores, *arrays["weights.range"])) + min(facts["indexing"], 1)
        else:
            if scaled:
                mean = size[index * GOLDEN >> 44]
                x = np.clip(x / np.where(mean > 0, mean, np.abs(x)), -10, 10).astype(np.float32)
            if options["normalize_features"] != "none":
                x = x * np.float32(1 / np.sqrt(np.cumsum(np.square(x, dtype=float))[-1]))
            answer = label[best_leaf(index, x, w, max(bits, 4), left, place)]
        yield (names.get(answer, "") if "class_names" in arrays else str(answer)) + tag(line)


if __name__ == "__main__":
    print(*predict(sys.argv[1], sys.stdin), sep="\n")
