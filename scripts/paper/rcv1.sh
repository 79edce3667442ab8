#!/bin/sh
# RCV1: news of Reuters, one of a story's topics drawn at random: how likely is each? 781,265 training and 23,149 test
# examples, the files' use turned round, 101 topics.
#
#     sh scripts/paper/rcv1.sh
#
# Source: rcv1v2 (topics; full sets) of the LIBSVM collection. The CPT paper goes on learning while it tests; the squared
# loss is that of the label's probability before the label is learned. One-against-all took one pass, CPT two, both by gradient
# descent (--sgd); --probes looks for the learning rates, and alpha of the general tree, that the paper took from a coarse grid
# by the training error. xclass divides the probabilities of one-against-all by their sum and keeps those of a node of CPT in
# [.01, .99], which the paper does not.

set -eu
. "$(dirname "$0")/common.sh"
begin rcv1 RCV1 4000 "$@"
libsvm=https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel
converted || {
    raw rcv1_topics_combined_test.svm.bz2 "$libsvm/rcv1_topics_combined_test.svm.bz2"
    most=$file
    raw rcv1_topics_train.svm.bz2 "$libsvm/rcv1_topics_train.svm.bz2"
    convert sparse --train "$most" --test "$file" --several draw
}
tunable oaa 'CPT paper, one pass' 'squared=? seconds=2300' --sgd --loss_function squared
tunable cpt 'CPT paper, general, two passes' 'squared=? seconds=108' --sgd --loss_function squared --passes 2 --holdout_off
tunable cpt_balanced 'CPT paper, two passes' 'squared=?' --sgd --loss_function squared --passes 2 --holdout_off
tunable cpt_random 'CPT paper, two passes' 'squared=?' --sgd --loss_function squared --passes 2 --holdout_off
absent 'web pages and advertisements' 'CPT paper' \
    'the data are proprietary; python -m scripts.paper.frequencies makes its table on other data'
row recall_tree 'default, one pass' 'squared=?'
row hsm 'default, one pass' 'squared=?' --tree_sample 0
finish
