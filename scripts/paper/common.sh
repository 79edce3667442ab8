# Read by the scripts of this folder with `.`. A script is
#
#     begin NAME TITLE EXAMPLES "$@"    the command line; --small takes the first EXAMPLES examples
#     converted || {                    not yet, so:
#         raw NAME URL... [--size N] [--md5 D]   a file of the source, loaded if DATA does not have it: its path is $file
#         convert CONVERTER OPTIONS     makes train.vw, test.vw and labels.txt of it
#     }
#     row METHOD SETTING FIGURES OPTIONS... [-- OPTIONS OF TESTING]
#                               train and test; methods and measures are listed in row.py
#     tuned METHOD SETTING FIGURES OPTIONS...    the same with the best options of --probes random ones
#     tunable METHOD SETTING FIGURES OPTIONS...  tuned if there is --probes, and otherwise with the options as they are
#     absent SYSTEM FIGURES REASON      why a row of the paper is left out
#     centred                           rows that follow get the data with the mean of every feature subtracted
#     published SYSTEM SOURCE FIGURES   a row of the table that another system has, as SOURCE tells
#     finish                            the table
#
# A script for several sets of lists of labels names them in `several`, before `begin`: NAME:FOLDER/PREFIX for the files
# FOLDER/PREFIX_train.txt and _test.txt of the extreme classification repository, NAME alone for a set of VW text. It
# defines `rows`, which makes the rows of the set $which, and ends with `each_set`.
#
# Every script understands
#
#     --small         a cut that takes about a minute
#     --dry_run       print the commands, do nothing
#     --methods A,B   these methods only
#     --probes N      look for tuned options among N random ones where the paper does not give them (the Recall Tree paper: 59)
#     --runs N        make N runs, with other seeds, where the paper has a standard deviation (the papers: 3)
#     --sets A,B      these sets only, where a script has several
#     --work DIR      where files go; without it, paper_data/NAME in the project's folder
#
# and DATA=DIR: files of the source that are in DIR are not loaded. Where DIR has train.vw, test.vw and labels.txt, plain
# or .gz, these are taken as they are. A script for several sets looks for them in DIR/NAME, DIR/FOLDER and DIR, as
# PREFIX_train.txt or train.txt, plain or packed, and leaves out those that are not there.

# The recall tree of Vowpal Wabbit, which made the papers' figures; without these, rows have xclass's defaults.
vw_tree='--router_weight example --recall_stop bound'

# Sets of lists of labels, and where those of the repository can be had.
sets_of_lists='ml_bibtex ml_delicious ml_cooking ml_reuters ml_debdeps EURLex-4K:Eurlex/eurlex Wiki10-31K:Wiki10/wiki10'
sets_of_lists="$sets_of_lists AmazonCat-13K:AmazonCat/amazonCat WikiLSHTC-325K:WikiLSHTC/wikiLSHTC Amazon-670K:Amazon/amazon"
page=http://manikvarma.org/downloads/XC/XMLRepository.html

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/scripts/environment.sh"

stop() {
    echo "$name: $1" >&2
    exit 1
}

absolute() {
    case $1 in /*) echo "$1" ;; *) echo "$(pwd)/$1" ;; esac
}

begin() {
    name=$1 title=$2 examples=$3
    shift 3
    small='' dry_run='' methods='' sets='' lists='' probes=0 runs=1 rows_data='' work=$root/paper_data/$name
    while [ $# -gt 0 ]; do
        case $1 in
            --small) small=--small ;;
            --dry_run) dry_run=--dry_run ;;
            --methods | --sets | --probes | --runs | --work)
                [ $# -gt 1 ] || stop "$1 needs a value"
                case $1 in
                    --methods) methods=$2 ;;
                    --sets) sets=$2 ;;
                    --probes) probes=$2 ;;
                    --runs) runs=$2 ;;
                    --work) work=$2 ;;
                esac
                shift
                ;;
            -h | --help)
                sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
                sed -n '/^# Every script/,/^$/s/^# \{0,1\}//p' "$here/common.sh"
                exit 0
                ;;
            *) stop "$1 is not known; --help tells what is" ;;
        esac
        shift
    done
    choose_python
    known=$(run paper.row --list) || stop "xclass does not run; see above"
    all=$(echo "$known" | sed 1q)
    known=$(echo "$known" | sed 1d)
    for one in $(echo "$methods" | tr , ' '); do
        case " $all " in *" $one "*) ;; *) stop "--methods $one: must be one of $all" ;; esac
    done
    [ -z "$sets" ] || [ -n "${several:-}" ] || stop "--sets is not known; --help tells what is"
    for one in $(echo "$sets" | tr , ' '); do
        case " $several " in
            *" $one "* | *" $one:"*) ;;
            *) stop "--sets $one: must be one of $(echo "$several" | sed 's/:[^ ]*//g')" ;;
        esac
    done
    case $probes in '' | *[!0-9]*) stop "--probes $probes: must be a whole number" ;; esac
    case $runs in '' | *[!0-9]*) stop "--runs $runs: must be a whole number" ;; esac
    data=''
    if [ -n "${DATA:-}" ]; then
        data=$(cd "$DATA" && pwd) || stop "DATA=$DATA is no folder"
    fi
    work=$(absolute "$work")
    failed=0
    [ -n "${several:-}" ] || begin_set
}

# Make the folder of a set, in $work, and begin its table.
begin_set() {
    folder=$work/vw
    limit=''
    if [ -n "$small" ]; then
        folder=$work/small
        limit="--limit $examples"
    fi
    if [ -z "$dry_run" ]; then
        mkdir -p "$folder" || stop "cannot write in $work"
        rm -f "$folder/rows.jsonl"
    fi
}

# Make the rows and the table of each set of `several` that was chosen and is in DATA.
each_set() {
    made=0
    for one in $several; do
        which=${one%%:*} source=${one#*:}
        case ,${sets:-$which}, in *",$which,"*) ;; *) continue ;; esac
        if (own_set); then
            made=$((made + 1))
        else
            [ $? = 2 ] || failed=1
        fi
    done
    [ "$made$failed" != 00 ] || stop "none of the sets is there; DATA=FOLDER says where they are, see --help"
    [ "$failed" = 0 ]
}

# Do so for one; fail with 2 if it is not there.
own_set() {
    prefix=''
    [ "$source" = "$which" ] || prefix=${source#*/}_
    if ! held_set && [ -z "$dry_run" ]; then
        echo "left out: $which: not in DATA=${DATA:-}"
        exit 2
    fi
    work=$work/$which title="$title, $which" lists=--lists
    echo "$title:"
    begin_set
    converted || [ "$source" = "$which" ] || {
        raw "${prefix}train.txt" --page "$page"
        most=$file
        raw "${prefix}test.txt" --page "$page"
        convert sparse --train "$most" --test "$file" --several lists
    }
    rows
    finish || exit 1
}

# Look for the files of a set; they are in $data, by the names ${prefix}train.txt and ${prefix}test.txt, or as VW text.
held_set() {
    [ -n "$data" ] || return 1
    for place in "$data/$which" "$data/${source%%/*}" "$data"; do
        for begins in ${prefix:+"$prefix"} ''; do
            [ "$place$begins" != "$data" ] || continue # train.txt of DATA itself might be any set's
            for end in '' .gz .bz2 .xz .zip; do
                if [ -f "$place/${begins}train.txt$end" ]; then
                    data=$place prefix=$begins
                    return
                fi
            done
        done
        if [ "$place" != "$data" ] && in_folder "$place" train.vw > /dev/null; then
            data=$place
            return
        fi
    done
    return 1
}

# Print a command.
say() {
    printf '$'
    printf ' %s' "$@"
    printf '\n'
}

# Run a command of scripts/, such as paper.row, from the project's folder; paths have to be absolute.
run() {
    command=$1
    shift
    (cd "$root" && exec "$python" -m "scripts.$command" "$@")
}

# Print such a command.
say_run() {
    command=$1
    shift
    say python -m "scripts.$command" "$@"
}

# Print the file of a set in a folder, plain or packed; fail if there is none.
in_folder() {
    for one in "$1/$2" "$1/$2.gz"; do
        if [ -f "$one" ]; then
            echo "$one"
            return
        fi
    done
    return 1
}

# What a converted set is made of and by.
made_of() {
    echo "$(cat "$0" "$root"/scripts/convert/*.py | cksum) $data ${GLOVE:-}"
}

# shellcheck disable=SC2086
converted() {
    if [ -z "$dry_run" ] && [ -f "$folder/labels.txt" ] && [ "$(cat "$folder/made_of" 2> /dev/null)" = "$(made_of)" ]; then
        return 0
    fi
    if [ -n "$data" ] && given_train=$(in_folder "$data" train.vw) && given_test=$(in_folder "$data" test.vw) &&
        given_labels=$(in_folder "$data" labels.txt); then
        if [ -n "$small" ]; then
            convert vw $lists --train "$given_train" --test "$given_test"
            return 0
        fi
        [ -n "$dry_run" ] || clear_folder
        for one in "$given_train" "$given_test" "$given_labels"; do
            say ln -s "$one" "$folder"
            [ -n "$dry_run" ] || ln -s "$one" "$folder" || exit 1
        done
        return 0
    fi
    return 1
}

clear_folder() {
    for one in train.vw test.vw labels.txt; do
        rm -f "$folder/$one" "$folder/$one.gz"
    done
    rm -f "$folder/made_of"
    rm -rf "$folder/centred"
}

raw() {
    offered "$@" || exit 1
}

# As raw, but fail if the file cannot be had.
offered() {
    file=$work/raw/$1
    set -- convert.fetch "$work/raw" "$@" ${data:+--data "$data"}
    say_run "$@"
    [ -n "$dry_run" ] || file=$(run "$@")
}

# Tell whether a file is there already.
held() {
    [ -z "$dry_run" ] && run convert.fetch "$work/raw" "$1" ${data:+--data "$data"} > /dev/null 2>&1
}

# Run a program of scripts/convert.
program() {
    converter=$1
    shift
    say_run "convert.$converter" "$@"
    [ -n "$dry_run" ] || run "convert.$converter" "$@" || exit 1
}

convert() {
    [ -n "$dry_run" ] || clear_folder
    # shellcheck disable=SC2086
    program "$@" $limit --out "$folder"
    [ -n "$dry_run" ] || made_of > "$folder/made_of"
}

centred() {
    rows_data=$folder/centred
    [ -z "$dry_run" ] && [ -f "$rows_data/labels.txt" ] && return 0
    most=$(in_folder "$folder" train.vw) || most=$folder/train.vw
    program vw --train "$most" --test "$(in_folder "$folder" test.vw || echo "$folder/test.vw")" --subtract_mean \
        --out "$rows_data"
}

row() {
    method=$1 setting=$2 figures=$3
    shift 3
    case ,${methods:-$method}, in *",$method,"*) ;; *) return 0 ;; esac
    # shellcheck disable=SC2086
    run paper.row "$folder" "$method" "$setting" "$figures" $small $dry_run ${look:-} \
        --probes "$probes" --runs "$runs" ${rows_data:+--data "$rows_data"} --known="$known" -- "$@" ||
        failed=$((failed + 1))
}

tuned() {
    look=--tuned
    row "$@"
    look=''
}

tunable() {
    method=$1 setting=$2
    shift 2
    if [ "$probes" = 0 ]; then
        row "$method" "$setting, not tuned" "$@"
    else
        tuned "$method" "$setting, tuned" "$@"
    fi
}

published() {
    # shellcheck disable=SC2086
    run paper.row "$folder" "$1" "$2" "$3" --published $dry_run
}

absent() {
    echo "left out: $1, $2: $3"
}

finish() {
    [ -n "$dry_run" ] ||
        run paper.table "$folder" "$title${small:+ (--small: a cut, not comparable)}" || failed=1
    [ "$failed" = 0 ]
}
