"""Define what can be done with a learner besides learning and predicting; modules are loaded when they are used.

An ability has a folder here, and in it a module of functions for each reduction that has it. The record of a reduction
names its abilities; `find.ability` loads the module. Reductions import nothing from here.
"""
