"""Merge learners.

merge(learner, sources)    fill a new learner with the merged state of others, see `sources.Sources`; return notes for
                           the user. ModelError names the models that do not fit together and says what to do.
"""
