"""Part of a script that notes the names of the kernels that are compiled, in the list `compiled`."""

NOTE_COMPILED = """
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, compilation):
        compiled.append(compilation.data["dispatcher"].py_func.__name__)
    def on_end(self, compilation):
        pass
event.register("numba:compile", Listener())
"""
