"""Predict with a model of `xclass --oaa` or `xclass --cpt`, without xclass; model_file.md explains the steps.

`predict("model.bin", open("test.vw"))` yields the predictions. Some things are simpler than in xclass:

* Options other than KNOWN, weights of namespaces and values that are words (`colour:red`) are refused. Tags are not
  written. Features without a name (`:7`) do not get the index that xclass gives them.
* Features are summed up in the order of the line; xclass puts namespaces with the same first byte together.
"""

import json

import numpy as np

# options that do not matter for predictions or are used below, and the supported values of others
KNOWN = """bits candidate_cut candidates cpt cpt_alpha cpt_tree decay_learning_rate indexing label_range learn_names
    learning_rate loss_function max_doublings next oaa oaa_subsample power_t quantile_tau random_seed rerank_rate sgd
    tree_noise initial_t tree_sample cpt_arity=2 hash=strings layout=odd layout=tagged link=identity number_rules=ieee
    trees=1 version=1 normalize_features=auto beam text_case text_chars text_ngram text_split text_unicode"""
TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "U32": "<u4", "U64": "<u8"}
GOLDEN, SPREAD = np.uint64(0x9E3779B97F4A7C15), 0xD6E8FEB86659FD93


def number(text=b"1"):
    """Return a value of a feature, rounded to float32."""
    return np.float32(float(text))


def name_hash(name, seed):
    """Return the hash of a name: a name of digits is taken as a number, others are hashed by MurmurHash3."""
    h = seed
    for i in range(0, len(name) + 1, 4):
        k = int.from_bytes(name[i : i + 4], "little") * 0xCC9E2D51 % 2**32
        h ^= (k << 15 | k >> 17) * 0x1B873593 % 2**32
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) % 2**32 if i + 4 <= len(name) else h ^ len(name)
    for shift, factor in (16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1):
        h = (h ^ h >> shift) * factor % 2**32
    return (int(name) + seed) % 2**32 if name.isdigit() else h


def features(line, bits):
    """Yield the index and the value of each feature of a line, and those of the constant."""
    for [space], *words in ([w.split(b":") for w in (b"|" + part).split()] for part in line.encode().split(b"|")[1:]):
        for name, *value in words:
            yield np.uint64(name_hash(name, name_hash(space[1:], 0)) % 2**bits), number(*value)
    yield np.uint64(11650396), np.float32(1)


def node_weights(z, place, table, doublings):
    """Return the weights of features at a place, given their hashes: one for each word of a line, 0 but for its own."""
    bits = len(table).bit_length() - 1
    tag = np.maximum(z >> 51 + doublings - bits & 8191, 8) & 8184 | place & 7
    words = table[z >> 64 - bits]
    magnitude = (words >> 3 & 0xFFF0000).view(np.float32) * np.float32(2.0**108)
    return np.where(words & 8191 == tag[:, None], np.where(words >> 31, -magnitude, magnitude), 0)


def best_leaf(index, x, table, doublings, left, place):
    """Return the most probable leaf of a tree: the most probable node is opened next, until it is a leaf."""
    p, path, node, waiting = -1.0, [], 0, []
    while left[node]:
        z = (index * GOLDEN ^ np.uint64((place[node] >> 3) * SPREAD % 2**64)) * GOLDEN
        s = np.cumsum(node_weights(z, place[node], table, doublings) * x[:, None])[-1]
        r = min(max(0.5 + 0.5 * float(s), 0.01), 0.99)
        waiting += [(p * (1 - r), [*path, r > 0.5], left[node]), (p * r, [*path, r <= 0.5], left[node] + 1)]
        p, path, node = waiting.pop(waiting.index(min(waiting)))
    return node


def predict(path, lines):
    """Yield the prediction for each line of VW text that is not empty."""
    with open(path, "rb") as file:
        header, data = json.loads(file.read(int.from_bytes(file.read(8), "little"))), np.fromfile(file, np.uint8)
    meta = header.pop("__metadata__")
    options = json.loads(meta["options"]) | json.loads(meta["facts"])["learner"] | {"version": meta["version"]}
    refused = {k: v for k, v in options.items() if v and not {k, f"{k}={v}"} & set(KNOWN.split())}
    if refused or not ("oaa" in options or ("cpt" in options and options["loss_function"] == "squared")):
        raise ValueError(f"{path}: not supported: {refused or 'neither --oaa, nor --cpt with squared loss'}")
    arrays = {k.replace(".0.", "."): data[slice(*e["data_offsets"])].view(TYPES[e["dtype"]]) for k, e in header.items()}
    cut = max(options["bits"], 24 if options.get("max_doublings") and options["bits"] >= 20 else 0)
    bits, classes, scaled = options["bits"], options.get("oaa"), arrays.get("scales.state", [0, 0])[1]
    names = dict(enumerate(bytes(arrays.get("class_names", b"")).decode().split(","), 1))
    # a table with an index, or with bits for the rows in use, leaves out the rows that are 0
    arrays |= {k[:-6] + "index": np.unpackbits(a).nonzero()[0] for k, a in arrays.items() if k.endswith(".in_use")}
    doublings = int(arrays.get("weights.doublings", [0])[0])
    tagged = "weights.word" in arrays
    w = np.zeros(2 ** (max(bits, 4) + tagged + doublings), np.uint32 if tagged else np.float32)
    w[arrays.get("weights.index", slice(0, 2**bits if classes else None))] = arrays[
        "weights.word" if tagged else "weights.w"
    ]
    size = np.zeros(2**20)
    size[arrays.get("scales.index", slice(None))] = arrays["scales.size"] if scaled else 0
    left, place, label = ([*arrays.get(f"tree.{k}", np.zeros(0)).tolist(), 0] for k in ("left", "place", "label"))
    for index, x in (map(np.array, zip(*features(line, cut), strict=True)) for line in lines if line.strip("\r\n")):
        if classes:
            rows = w[: 2**bits // classes * classes].reshape(-1, classes)
            scores = np.cumsum(rows[index % len(rows)] * x[:, None], axis=0)[-1]
            answer = np.argmax(np.clip(scores, *arrays["weights.range"])) + min(options["indexing"], 1)
        else:
            mean = size[index * GOLDEN >> 44]
            x = np.clip(x / np.where(mean > 0, mean, np.abs(x) + (x == 0)), -10, 10).astype(np.float32) if scaled else x
            x = x * np.float32(1 / np.sqrt(np.cumsum(np.square(x, dtype=float))[-1]))
            answer = label[best_leaf(index, x, w.reshape(-1, 16), doublings, left, place)]
        yield names.get(answer, "") if "class_names" in arrays else str(answer)
