#!/bin/sh
# WIKI-Small: the category, one of 36,504, of an article of Wikipedia, a bag of 380,078 words; 796,617 training and 199,155 test
# examples.
#
#     DATA=FOLDER sh scripts/paper/wiki_small.sh
#
# Source: a folder of Joshi and others (2017) that has to be opened in a browser. FOLDER holds its two files as
# wiki_small_train.txt and wiki_small_test.txt, plain or packed, in the format of LIBSVM or of the extreme classification
# repository; of several labels the first counts.

set -eu
. "$(dirname "$0")/common.sh"
begin wiki_small WIKI-Small 4000 "$@"
page='https://drive.google.com/open?id=0B1ZO0ijiC7SYUk9ybndPbWlCMXM'
converted || {
    raw wiki_small_train.txt --page "$page"
    most=$file
    raw wiki_small_test.txt --page "$page"
    convert sparse --train "$most" --test "$file" --several first
}
row oaa 'Softmax Tree paper' 'error=85.71' --shuffle 100000
row recall_tree 'Softmax Tree paper' 'error=92.64 seconds=3180' --shuffle 100000 --max_depth 15 --max_candidates 60
row softmax_tree 'k = 200, depth 8, random start' 'error=84.74' --leaf_classes 200 --depth 8 --tree_init random
row softmax_tree 'k = 50, depth 8, random start' 'error=81.02' --leaf_classes 50 --depth 8 --tree_init random
row softmax_tree 'k = 80, depth 7, random start' 'error=80.80' --leaf_classes 80 --depth 7 --tree_init random
row softmax_tree 'k = 100, depth 7, random start' 'error=79.68' --leaf_classes 100 --depth 7 --tree_init random
row softmax_tree 'k = 100, depth 7' 'error=77.26 top5=59.89' --leaf_classes 100 --depth 7
row softmax_tree 'k = 300, depth 7' 'error=76.86' --leaf_classes 300 --depth 7
row softmax_tree 'k = 150, depth 8' 'error=76.33 top5=57.91' --leaf_classes 150 --depth 8
row softmax_tree 'k = 150, depth 8, beta = 100' 'error=75.65 seconds=61980' \
    --leaf_classes 150 --depth 8 --zero_loss beta --beta 100
row log_multi 'default' 'error=?' --shuffle 100000
row filter_tree 'default' 'error=?' --shuffle 100000
row random_tree 'default' 'error=?' --shuffle 100000
row cpt 'default' 'error=?' --shuffle 100000
row hsm 'default' 'error=?' --shuffle 100000 --tree_sample 0
finish
