"""Define what can be done with a learner besides learning and predicting; modules are loaded when they are used.

An ability has a folder here, whose docstring defines its functions, and in it a module for each reduction that has it.
Every reduction has `describe`, and `merge` unless its record says why not; `find.ability` loads the module. Reductions
import nothing from here.
"""
