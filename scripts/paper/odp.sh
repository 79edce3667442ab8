#!/bin/sh
# ODP: the category, one of 105,033, of a page of the Open Directory, a bag of 422,712 words; 1,084,404 training and 493,014
# test examples. Some 3 GB; 12 GB unpacked.
#
#     sh scripts/paper/odp.sh
#
# Source: Vowpal Wabbit's demo of the recall tree, and its buffer of 100,000 examples for a random order. The papers' times of
# one-against-all are of 24 cores. All rows of its and the LOMTree paper make one pass; the latter takes the best of up to 20.
# LOMTree has Vowpal Wabbit's quantile loss. The Softmax Tree paper's recall tree has the options of the demo, as it says; its
# tables have depth 6, the demo 5. Rows of the softmax tree have the settings of the appendix of its paper; --l2 9.2e-8 is
# C = 10 of scikit-learn. The passes of MACH are not told.

# shellcheck disable=SC2086
set -eu
. "$(dirname "$0")/common.sh"
begin odp ODP 1000 "$@"
classes='--classes 105033'
[ -z "$small" ] || classes=''
converted || {
    hunch=http://hunch.net
    raw odp_train.vw.gz $hunch/~vw/odp_train.vw.gz $hunch/~jl/odp_train.vw.gz
    most=$file
    raw odp_test.vw.gz $hunch/~vw/odp_test.vw.gz $hunch/~jl/odp_test.vw.gz
    convert vw --train "$most" --test "$file" --namespace b $classes
}
row oaa 'Recall Tree paper, default' 'error=91.2 seconds=4680 milliseconds=560' -l 1 --loss_function logistic \
    --oaa_subsample 1000 --shuffle 100000
tuned oaa 'Recall Tree paper, tuned' 'error=90.6' --loss_function logistic --oaa_subsample 1000 --shuffle 100000
row oaa 'Softmax Tree paper, no subsample' 'error=89.22 train=64.24 milliseconds=1317.58 megabytes=155700' \
    --shuffle 100000 --passes 10 --holdout_off --loss_function logistic --l2 9.2e-8
row mach 'Softmax Tree paper, B = 32, R = 25' \
    'error=84.55 train=46.38 seconds=138060 milliseconds=684.04 megabytes=1200' \
    --mach 25,32 --shuffle 100000 --passes 10 --holdout_off --loss_function logistic
absent '(pi, kappa)-DS' 'error=86.31 milliseconds=36.41 megabytes=1000' 'the double sampling of Joshi and others (2017) is not in xclass'
row recall_tree 'Recall Tree paper, default' 'error=96.2 seconds=5400 milliseconds=1.9' $vw_tree -l 1 --shuffle 100000
tuned recall_tree 'Recall Tree paper, tuned' 'error=93.8' $vw_tree --shuffle 100000
row recall_tree 'Softmax Tree paper' 'error=94.64 train=93.12 seconds=6780 milliseconds=8.42 megabytes=3400' \
    $vw_tree -l 1 --shuffle 100000 --node_only -q 'b\x88' --max_candidates 400 --max_depth 5
row log_multi 'Recall Tree paper, default' 'error=95.4 seconds=2160 milliseconds=0.52' -l 1 --shuffle 100000 \
    --layout vw --loss_function quantile --max_predictors '{K-1}'
tuned log_multi 'LOMTree paper, tuned' 'error=93.46 milliseconds=0.26' --shuffle 100000 --layout vw --loss_function quantile
tunable filter_tree 'LOMTree paper' 'error=93.76' --shuffle 100000
tunable random_tree 'LOMTree paper' 'error=93.85' --shuffle 100000 --layout vw
tree='--l1 0.1 --tao_iterations 20 --tao_tolerance 0 --leaf_passes 20 --smooth 0'
{
    row softmax_tree 'k = 50, depth 11, random start' 'error=88.44+-0.33 train=71.98+-0.28 milliseconds=10.92' \
        $tree --leaf_classes 50 --depth 11 --tree_init random
    row softmax_tree 'k = 100, depth 11, random start' 'error=88.29+-0.30 train=70.52+-0.23 milliseconds=11.54' \
        $tree --leaf_classes 100 --depth 11 --tree_init random
    row softmax_tree 'k = 1000, depth 8, random start' \
        'error=86.54+-0.29 train=63.67+-0.25 seconds=184320 milliseconds=10.23' \
        $tree --leaf_classes 1000 --depth 8 --tree_init random
    row softmax_tree 'k = 300, depth 9' 'error=83.78 top5=76.04 train=62.86 milliseconds=9.59 megabytes=100' \
        $tree --leaf_classes 300 --depth 9 --tree_init prototypes
    row softmax_tree 'k = 300, depth 9, beta = 100' \
        'error=81.84 train=51.37 seconds=172800 milliseconds=9.87 megabytes=100' \
        $tree --leaf_classes 300 --depth 9 --tree_init prototypes --zero_loss beta --beta 100
}
row cpt 'default' 'error=?' --shuffle 100000
finish
