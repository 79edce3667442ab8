"""Describe learners and their predictions for people: lines for the start and the end of a run, figures, trees,
weights, explanations. Every module defines `explain`, and those of these functions that apply to its reduction.

explain(learner, batch, k)     the `Reasons` for the prediction of the only example of a batch; nothing is learned or
                               counted. `k` classes are explained, and the label, if there is one. The prediction is
                               that of a learner that does not learn: while it learns, a tree may search fewer nodes.
banner(learner)                lines before the first batch, such as shape and memory, in words that need no explanation
vw_banner(learner)             these lines with VW's names, for `--vw_exact`
learning_lines(learner, rule)  lines about learning rate and loss, for resolved options of the binary learner
summary(learner)               lines at the end of the run, after the lines common to all reductions
figures(learner)               the figures of the summary by name, in lower case and with underscores, for programs
outline(learner, levels)       the nodes of the first levels of trees in preorder, see `views`; no stage may run
class_counts(learner)          classes (int64[k]) and the weight of the learned examples of each (float64[k]), or None
feature_counts(learner, index) the weight of the learned examples with each feature (float64[z]), or None
table_view(learner)            the `TableView` of a learner with weight tables of `gd`, see `Learner.tables`
word_tables(learner)           its tables of tagged words (`tagged_words.Words`) by their names
"""
