#!/bin/sh
# Extreme Classification Repository: lists of labels, precision at 1, 3 and 5, plain and weighted by propensity; on EURLex-4K,
# Wiki10-31K, AmazonCat-13K, WikiLSHTC-325K, Amazon-670K, and smaller sets of VW text.
#
#     DATA=FOLDER sh scripts/paper/xmc.sh
#     DATA=FOLDER sh scripts/paper/xmc.sh --sets EURLex-4K,ml_cooking --small
#
# Source: the repository's files of sparse features, which have to be fetched in a browser; FOLDER has those of some sets, such
# as Eurlex/eurlex_train.txt and Eurlex/eurlex_test.txt, and may have folders of VW text named ml_bibtex, ml_delicious,
# ml_cooking, ml_reuters and ml_debdeps. Rows of other systems are as published: on Bibtex and Delicious by the repository's
# page (February 2025, over all examples, also those without a label), else in the files README.md of omikuji, on four cores,
# and of craftml-rs. --multilabel_oaa is left out where one example would take more than 10,000 updates a word.
# The table has 2^26 slots, for the two largest sets 2^28, which are 4 GB; --multilabel grows as it needs. Nothing is tuned.

# shellcheck disable=SC2086
set -eu
. "$(dirname "$0")/common.sh"
several=$sets_of_lists
begin xmc 'Extreme Classification Repository' 1000 "$@"

rows() {
    measured='p1=? p3=? p5=? psp1=? psp3=? psp5=? seconds=? milliseconds=? megabytes=?'
    bits=26 propensity=''
    case $which in
        WikiLSHTC-325K) bits=28 propensity='--propensity 0.5,0.4' ;;
        Amazon-670K) bits=28 propensity='--propensity 0.6,2.6' ;;
    esac
    row multilabel 'one pass' "$measured" $propensity
    row plt 'one pass' "$measured" -b $bits $propensity
    row plt 'three passes' "$measured" -b $bits $propensity --passes 3 --holdout_off
    case $which in
        ml_debdeps | Wiki* | Amazon*) absent multilabel_oaa 'one pass' 'its time grows with the number of labels' ;;
        *) row multilabel_oaa 'one pass' "$measured" -b $bits $propensity ;;
    esac
    omikuji='README of omikuji' craftml='README of craftml-rs' repository="the repository's page"
    case $which in
        ml_bibtex)
            published SLEEC "$repository" 'p1=65.1 p3=39.6 p5=28.9'
            published Parabel "$repository" 'p1=64.5 p3=38.6 p5=27.9 psp1=50.9'
            published FastXML "$repository" 'p1=63.4 p3=39.2 p5=28.9'
            published PfastreXML "$repository" 'p1=63.5 p3=39.2 p5=29.1 psp1=52.3'
            published 1-vs-all "$repository" 'p1=62.6 p3=39.1 p5=28.8'
            published PD-Sparse "$repository" 'p1=61.3 p3=35.8 p5=25.7'
            published CRAFTML "$craftml" 'p1=61.38 p3=37.26 p5=27.34'
            ;;
        ml_delicious)
            published SLEEC "$repository" 'p1=67.6 p3=61.4 p5=56.6'
            published Parabel "$repository" 'p1=67.4 p3=61.8 p5=56.8 psp1=32.7'
            published FastXML "$repository" 'p1=69.6 p3=64.1 p5=59.3'
            published PfastreXML "$repository" 'psp1=34.6'
            published PD-Sparse "$repository" 'p1=51.8'
            published CRAFTML "$craftml" 'p1=68.04 p3=62.22 p5=57.61'
            ;;
        EURLex-4K)
            published Parabel "$omikuji" 'p1=82.2 p3=68.8 p5=57.6 seconds=18'
            published Bonsai "$omikuji" 'p1=82.8 p3=69.4 p5=58.1 seconds=87'
            published omikuji "$omikuji, k-means of 100" 'p1=83.0 p3=69.5 p5=58.3 seconds=19'
            published CRAFTML "$craftml" 'p1=79.34 p3=66.12 p5=55.17'
            ;;
        Wiki10-31K) published CRAFTML "$craftml" 'p1=83.42 p3=72.71 p5=63.60' ;;
        AmazonCat-13K) published CRAFTML "$craftml" 'p1=92.98 p3=77.52 p5=61.25' ;;
        WikiLSHTC-325K)
            published Parabel "$omikuji" 'p1=65.0 p3=43.2 p5=32.0 seconds=959'
            published Bonsai "$omikuji" 'p1=66.6 p3=44.5 p5=33.0 seconds=11156'
            published omikuji "$omikuji, k-means of 100" 'p1=66.6 p3=44.4 p5=33.0 seconds=4259'
            published CRAFTML "$craftml" 'p1=51.58 p3=32.29 p5=23.36'
            ;;
        Amazon-670K)
            published Parabel "$omikuji" 'p1=44.9 p3=39.8 p5=36.0 seconds=404'
            published Bonsai "$omikuji" 'p1=45.5 p3=40.3 p5=36.5 seconds=5759'
            published omikuji "$omikuji, k-means of 100" 'p1=45.6 p3=40.4 p5=36.6 seconds=1753'
            published CRAFTML "$craftml" 'p1=38.28 p3=34.13 p5=31.33'
            ;;
    esac
}

each_set
