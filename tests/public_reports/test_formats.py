"""Situations from public reports about data formats, one test each."""

from command import learn, xclass

OPEN_QUOTE = """\
label\ttext
ham\tsee you
spam\t"win a prize now
ham\tcall me
spam\tfree entry
ham\tshe said "ok" then
spam\tsay "hi"
ham\tlater then
"""


def test_a_quote_that_opens_a_cell_by_mistake_is_an_error_at_its_line(tmp_path):
    """pandas-dev/pandas#25228, clarin-eric/ParlaMint#899, facebookresearch/pytext#376, pytorch/text#612."""
    (tmp_path / "train.tsv").write_text(OPEN_QUOTE)
    refused = xclass("train.tsv", "-f", "m", cwd=tmp_path)
    assert refused.status == 1
    assert "xclass: train.tsv:3:6: the quoted cell that begins here ends before 'ok\"_then'; write a" in refused.err
    assert "number of examples = 7\n" in learn("train.tsv", "--quoting", "none", "-f", "m", cwd=tmp_path).err
    again = xclass("train.tsv", "--quoting", "none", "-t", "-i", "m", "-p", "stdout", "--quiet", cwd=tmp_path)
    assert len(again.lines) == 7
