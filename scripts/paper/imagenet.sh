#!/bin/sh
# ImageNet: 21,841 kinds of things in pictures, 6,144 features from the middle of a neural network; 14.2 million examples.
# 104 GB, packed, and as much again while it runs.
#
#     sh scripts/paper/imagenet.sh
#
# Source: Vowpal Wabbit's demo of the recall tree. The papers' times of one-against-all are of 24 cores. All rows make one
# pass, as in the Recall Tree paper; the LOMTree paper takes the best of up to 20. LOMTree has Vowpal Wabbit's quantile loss.
# Crosses with the path are those of the demo; the paper does not have them.

# shellcheck disable=SC2086
set -eu
. "$(dirname "$0")/common.sh"
begin imagenet ImageNet 1000 "$@"
source=http://hunch.net/~jl/datasets/imagenet
classes='--classes 21841 --packed'
[ -z "$small" ] || classes=''
converted || {
    raw training.txt.gz "$source/training.txt.gz"
    most=$file
    raw testing.txt.gz "$source/testing.txt.gz"
    convert vw --train "$most" --test "$file" --namespace b $classes
}
row oaa 'Recall Tree paper, default' 'error=84.7 seconds=73440 milliseconds=118' -l 1 --loss_function logistic \
    --oaa_subsample 1000
tuned oaa 'Recall Tree paper, tuned' 'error=82.2' --loss_function logistic --oaa_subsample 1000
row recall_tree 'Recall Tree paper, default' 'error=91.1 seconds=257040 milliseconds=4' $vw_tree -l 1 --node_only -q 'b\x88'
tuned recall_tree 'Recall Tree paper, tuned' 'error=88.4' $vw_tree --node_only -q 'b\x88'
row log_multi 'Recall Tree paper, default' 'error=96.7 seconds=50400 milliseconds=0.56' -l 1 \
    --layout vw --loss_function quantile --max_predictors '{K-1}'
tuned log_multi 'LOMTree paper, tuned' 'error=90.17 milliseconds=0.52' --layout vw --loss_function quantile
tunable filter_tree 'LOMTree paper' 'error=92.12'
tunable random_tree 'LOMTree paper' 'error=96.99' --layout vw
absent one-against-all 'LOMTree paper' 'the paper has no error of it'
row cpt 'default' 'error=?'
finish
