"""The campaign that kills runs: a few kills, and what it finds where something is wrong."""

import pytest

from scripts import kills
from scripts.lib import streams

pytestmark = pytest.mark.slow

CASE = "best_pass"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    streams.write_power_law(folder / "stream", 1, 5, 400, kills.FEATURES)
    made = kills.Campaign(folder, (folder / "stream").read_bytes(), 5)
    made.known_of(CASE)
    return made


def test_a_few_kills_harm_no_model(campaign):
    printed = []
    drawn = kills.drawn(campaign, [CASE], 5, 3)
    assert drawn == kills.drawn(campaign, [CASE], 5, 3)
    assert kills.carry_out_all(campaign, drawn, printed.append) == 0, printed
    assert "5 kills, 0 failures" in printed[-1]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda place: (place / "m").unlink(), "m is gone"),
        (lambda place: (place / "m").write_bytes((place / "m").read_bytes()[:-1]), "m is none of the"),
        (lambda place: [(place / name).write_bytes(b"") for name in ("x", "y")], "2 files were left behind: x, y"),
        (lambda place: (place / ".m.1-0.tmp").write_bytes(b""), "the next run left .m.1-0.tmp"),
        (lambda place: (place.parent / "temporary" / "x").write_bytes(b""), "the next run left TMPDIR/x"),
    ],
)
def test_forbidden_states_are_detected(campaign, harm, message):
    campaign.reset(campaign.known_of(CASE).old)
    assert campaign.check(CASE) == "old"
    campaign.reset(campaign.known_of(CASE).old)
    harm(campaign.place)
    with pytest.raises(kills.Failure, match=message):
        campaign.check(CASE)
