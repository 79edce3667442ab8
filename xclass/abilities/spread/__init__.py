"""Spread learners: processes learn parts of a model from the same examples, with the same results; see `parts`.

units(learner)                    the largest number of parts, and why the options allow no more if that is one
rounds(learner)                   the functions (`parts.Round`) that a part calls for every batch, in order, all but the
                                  first only in the first part; each gets the task, and what the round before has
                                  returned as `onward` in every part, in order
combine(learner, task, results)   set the prediction and the loss of a task without features, in the whole;
                                  `results[r][j]` is the result of round r in part j
part_state(learner)               what a part has learned; arrays may be those that it goes on to learn with. The state
                                  of a learner without parts is that of the only part.
restore_part(learner, states)     continue a new part from the states of all parts, whose number may have been another
join(learner, states)             give the whole all that its parts have learned
whole_state(learner)              what the whole knows that no part does, such as counts of labels
restore_whole(learner, state)     continue a new whole from that state
pass_rounds(learner)              end a pass in a part: a generator, which yields what all parts need to go on and is
                                  sent what every part has yielded, in their order; all parts yield equally often
"""
