#!/bin/sh
# LTCB: the next word of a text, one of the 80,000 most frequent or another, from the six before it; the first 10^9 bytes of a
# dump of the English Wikipedia.
#
#     sh scripts/paper/ltcb.sh
#     TEXT=enwik8 sh scripts/paper/ltcb.sh     the first 10^8 bytes
#
# Source: the Large Text Compression Benchmark. One article in ten is for testing. Features: the six words, the previous two
# and three together. Random order is by a buffer of 10^7 examples, as in Vowpal Wabbit's demo, which also has the crosses with
# the path; the paper does not. Its "accuracy" of 73.3 and 74.6 is taken to be the error. With the multiplier 0 it speaks of the
# empirical recall, but Vowpal Wabbit, by which its 91 % were made, then never stops above a leaf: two rows. The paper's time of
# one-against-all is of 24 cores. LOMTree has Vowpal Wabbit's quantile loss.

set -eu
. "$(dirname "$0")/common.sh"
: "${TEXT:=enwik9}"
begin "ltcb_$TEXT" "LTCB, $TEXT" 20 "$@"
case $TEXT in
    enwik8) size=36445475 ;;
    enwik9) size=322592222 ;;
    *) stop "TEXT=$TEXT: must be enwik8 or enwik9" ;;
esac
converted || {
    raw "$TEXT.zip" "http://mattmahoney.net/dc/$TEXT.zip" --size $size
    # shellcheck disable=SC2086
    program wikipedia "$file" "$folder/articles.txt" $limit
    convert words --train "$folder/articles.txt" --context 6 --vocabulary 80000
}
words='-q ab --cubic abc' path='-q \x88a --cubic \x88ab' permuted='--shuffle 10000000'
# shellcheck disable=SC2086
{
    row oaa 'default' 'error=78.7 seconds=68760 milliseconds=3.6' -l 1 $words $permuted \
        --loss_function logistic --oaa_subsample 2000
    tuned oaa 'tuned' 'error=76.8' $words $permuted --loss_function logistic --oaa_subsample 2000
    row recall_tree 'default' 'error=78.0 progressive=74.6 seconds=17280 milliseconds=0.076' \
        $vw_tree -l 1 $words $path $permuted
    tuned recall_tree 'tuned' 'error=77.6' $vw_tree $words $path $permuted
    row recall_tree 'in order' 'progressive=73.3' $vw_tree -l 1 $words $path
    row recall_tree 'multiplier 0: empirical recall' 'error=91' $vw_tree -l 1 $words $path $permuted --bern_hyper 0
    row recall_tree 'multiplier 0 in Vowpal Wabbit: leaves only' 'error=91' -l 1 $words $path $permuted \
        --router_weight example --recall_stop never
    row recall_tree 'Algorithms 1 to 3 to the letter' 'error=?' -l 1 $words $path $permuted \
        --router_weight paper --recall_stop paper
    row log_multi 'default' 'error=78.4 seconds=15480 milliseconds=0.051' -l 1 $words $permuted \
        --layout vw --loss_function quantile --max_predictors '{K-1}'
    row filter_tree 'default' 'error=?' $words $permuted
    row random_tree 'default' 'error=?' $words $permuted
    row cpt 'default' 'error=?' $words $permuted
}
finish
