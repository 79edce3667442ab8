#!/bin/sh
# Sector: web pages of companies in 105 branches as counts of 55,197 words; 8,657 training and 962 test examples.
#
#     sh scripts/paper/sector.sh
#
# Source: the LIBSVM collection's two files, put together and split 90 to 10 at random, as in the LOMTree paper. Its rows are
# the best of several step sizes and up to 20 passes; --probes looks for them. LOMTree has Vowpal Wabbit's quantile loss.
# "Online gradient descent" is taken to be Vowpal Wabbit's, with adaptive steps; --sgd --power_t 0 would be plain steps.

set -eu
. "$(dirname "$0")/common.sh"
begin sector Sector 2000 "$@"
libsvm=https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/sector
converted || {
    raw sector.bz2 "$libsvm/sector.bz2"
    most=$file
    raw sector.t.bz2 "$libsvm/sector.t.bz2"
    convert sparse --train "$most" "$file" --shuffle
}
tunable oaa 'LOMTree paper' 'error=9.17 seconds=18 milliseconds=0.24' --passes 20
tunable log_multi 'LOMTree paper' 'error=16.19 seconds=13 milliseconds=0.13' --passes 20 --layout vw --loss_function quantile
tunable filter_tree 'LOMTree paper' 'error=17.70' --passes 20
tunable random_tree 'LOMTree paper' 'error=15.77' --passes 20 --layout vw
row recall_tree 'default' 'error=?' --passes 20
row cpt 'default' 'error=?' --passes 20
row softmax_tree 'default' 'error=?'
finish
