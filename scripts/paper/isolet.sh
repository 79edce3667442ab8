#!/bin/sh
# Isolet: the 26 letters, spoken by 150 people; 617 features; 7,017 training and 780 test examples.
#
#     sh scripts/paper/isolet.sh
#
# Source: the UCI repository's two files, put together and split 90 to 10 at random, as in the LOMTree paper. Its rows are the
# best of several step sizes and up to 20 passes; --probes looks for them. LOMTree has Vowpal Wabbit's quantile loss.
# "Online gradient descent" is taken to be Vowpal Wabbit's, with adaptive steps; --sgd --power_t 0 would be plain steps.

set -eu
. "$(dirname "$0")/common.sh"
begin isolet Isolet 2000 "$@"
uci=https://archive.ics.uci.edu/ml/machine-learning-databases/isolet
converted || {
    raw isolet1+2+3+4.data.Z "$uci/isolet1+2+3+4.data.Z"
    most=$file
    raw isolet5.data.Z "$uci/isolet5.data.Z"
    convert uci --train "$most" "$file" --shuffle
}
tunable oaa 'LOMTree paper' 'error=3.56 seconds=20 milliseconds=0.16' --passes 20
tunable log_multi 'LOMTree paper' 'error=6.36 seconds=16 milliseconds=0.14' --passes 20 --layout vw --loss_function quantile
tunable filter_tree 'LOMTree paper' 'error=15.10' --passes 20
tunable random_tree 'LOMTree paper' 'error=16.92' --passes 20 --layout vw
row recall_tree 'default' 'error=?' --passes 20
row cpt 'default' 'error=?' --passes 20
row softmax_tree 'default' 'error=?'
finish
