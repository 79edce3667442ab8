"""Explain predictions.

explain(learner, batch, k)   the `Reasons` for the prediction of the only example of a batch; nothing is learned or
                             counted. `k` classes are explained, and the label, if there is one. The prediction is that
                             of a learner that does not learn: while it learns, a tree may search fewer nodes.
"""
