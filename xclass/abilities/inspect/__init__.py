"""Show what a learner has learned, for `--readable_model`, `--invert_hash` and `--audit`.

table_view(learner)                    the `TableView` of a learner with weight tables of `gd`, see `Learner.tables`
word_tables(learner), word_keys,       tables of tagged words and what their words belong to, see `inspect.cpt`
word_places, word_lines
"""
