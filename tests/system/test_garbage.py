"""Garbage is not collected in a block, and then as before."""

import gc
import threading

import pytest

from xclass.system import garbage


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_after_the_block_as_before_it(collects):
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with pytest.raises(KeyError), garbage.kept():
            with garbage.kept():
                pass
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("frozen", [False, True])
def test_objects_that_stay_are_not_looked_through_after_the_block(frozen):
    """Unless the program has frozen objects, which would no longer be."""
    before, own = gc.isenabled(), threading.get_ident()
    collections = []

    def note(phase, information):
        if threading.get_ident() == own:  # another thread may still end what an earlier test began
            collections.append(phase)

    gc.callbacks.append(note)
    try:
        gc.enable()
        (gc.freeze if frozen else gc.unfreeze)()
        number = gc.get_freeze_count()
        gc.collect(0)  # so that the objects below are all that count
        collections.clear()
        quarter = gc.get_threshold()[0] // 4
        with garbage.kept(for_good=True):
            objects = [[] for _ in range(3 * quarter)]
        assert gc.get_freeze_count() == number
        objects += [[] for _ in range(2 * quarter)]
        assert bool(collections) == frozen
    finally:
        gc.callbacks.remove(note)
        gc.freeze()  # as in conftest.py
        (gc.enable if before else gc.disable)()
