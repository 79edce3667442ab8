"""Files and folders that another user could have written are recognised."""

import os
from pathlib import Path

import pytest

from xclass.system import trust

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def place(tmp_path):
    """A folder in a folder."""
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    return folder


def refusal(path: Path) -> str:
    """Return why a folder is not trusted."""
    with pytest.raises(trust.UntrustedError) as raised:
        trust.trusted_folder(path)
    return str(raised.value)


def test_a_folder_of_this_user_is_trusted_and_links_are_resolved(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(place)
    assert trust.trusted_folder(link) == trust.trusted_folder(place) == Path(os.path.realpath(place))


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_folder_that_all_may_write_to_is_refused(place, mode):
    place.chmod(mode)
    assert refusal(place) == f"other users may write to {place}"


def test_a_folder_above_may_have_the_sticky_bit_only(place):
    place.parent.chmod(0o1777)
    trust.trusted_folder(place)
    place.parent.chmod(0o777)
    assert refusal(place) == f"other users may write to {place.parent}"


@needs_root
def test_a_folder_of_another_user_is_refused_wherever_it_stands(place):
    for folder in (place, place.parent):
        os.chown(folder, NOBODY, -1)
        assert refusal(place) == f"{folder} belongs to user {NOBODY}"
        os.chown(folder, 0, -1)


@needs_root
def test_only_the_own_group_may_write(place):
    place.chmod(0o775)
    trust.trusted_folder(place)  # the group of root, which has no other member
    os.chown(place, -1, NOBODY)
    assert refusal(place) == f"other users may write to {place}"


def test_a_file_is_opened_if_only_this_user_can_write_it(place, tmp_path):
    file = place / "file"
    file.write_bytes(b"x")
    with trust.open_trusted(file) as opened:
        assert opened.read() == b"x"
    (place / "link").symlink_to(file)
    with pytest.raises(OSError, match="link"):
        trust.open_trusted(place / "link")
    os.mkfifo(place / "pipe")
    with pytest.raises(trust.UntrustedError, match="no regular file"):
        trust.open_trusted(place / "pipe")
    file.chmod(0o666)
    with pytest.raises(trust.UntrustedError, match="other users may write"):
        trust.open_trusted(file)


@needs_root
def test_a_file_of_another_user_is_refused(place):
    file = place / "file"
    file.write_bytes(b"x")
    os.chown(file, NOBODY, -1)
    with pytest.raises(trust.UntrustedError, match=f"belongs to user {NOBODY}"):
        trust.open_trusted(file)
