"""Garbage is not collected in a block, and then as before."""

import gc

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
