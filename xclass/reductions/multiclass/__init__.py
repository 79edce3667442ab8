"""Proposals by trees of probabilities and by an index, decided by scorers of classes (`--multiclass`).

A kernel that learns an example asks `core.label_arrays.span` for the range of its labels, and goes through them; what
it computes for a label (`TreePredictions.p`, `Opinions.label_weight`, `RankedCandidates.p`) has the index of the label.
So lists of labels enter in `label_arrays` alone. Outside of the kernels is left to decide what losses and sums of
errors mean for several labels (`TreeLearner.finish`, `reranking.sum_errors`), and whose counts the index leaves out in
further passes: now those of the first label.
"""
