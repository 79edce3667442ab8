"""List the options of VW that xclass does not have, to accept them with a note or to refuse them with advice.

Options that do not change what is learned, or that ask for what xclass does anyway, are accepted (`ACCEPTED`), so that
command lines written for VW work; a note explains their effect. All other options of VW are refused, and the message
names the nearest option of xclass (`ADVICE`). A test compares these lists with the help of VW 9.11.
"""

from __future__ import annotations

from ..errors import UsageError
from ..options.declare import Option

ONLINE = (
    "xclass learns by online gradient descent, see --sgd, --adaptive, --normalized, --invariant; the exception is "
    "--softmax_tree, which is fitted to all examples at once"
)
COSTS = (
    "xclass does not support costs of classes; learn classes with --oaa K, or with --recall_tree K where they are "
    "many, and weight examples by their importance"
)
JSON = "xclass does not read VW's JSON; convert it to VW text, or to the JSON lines of --format jsonl"
DAEMON = "--daemon"  # lets `xclass` serve, as VW does
FEATURE_SOURCES = "make such features when writing the data, or use --ngram, --skips, -q"

ADVICE: tuple[tuple[str, str], ...] = (
    # flags, advice
    ("--dry_run", "give --no_stdin for a run that reads no data"),
    ("--expectile_q", "xclass has only the losses of --loss_function; see --quantile_tau"),
    ("--logistic_min --logistic_max", "labels of --loss_function logistic are -1 and 1"),
    ("--no_bias_regularization", "--l1 and --l2 act on all weights; see --noconstant"),
    ("--ignore_features_dsjson_experimental", f"{JSON}; see --ignore"),
    ("--redefine", "rename namespaces when writing the data"),
    ("--feature_limit", "there is no limit of features; see --ignore and --keep"),
    ("--affix --spelling --dictionary --dictionary_path", FEATURE_SOURCES),
    ("--experimental_full_name_interactions", "namespaces are crossed by their first letters: -q, --interactions"),
    (
        "--daemon --foreground --port --num_children --pid_file --port_file --no_daemon",
        "`xclass serve` starts a server, and so does a command line with --daemon",
    ),
    ("--json --dsjson --chain_hash", JSON),
    ("--flatbuffer", "convert the data to VW text, or to another format of --format"),
    (
        "--csv --csv_separator --csv_no_file_header --csv_header --csv_ns_value",
        "--format csv reads CSV files whose first line names the columns, and --label_column chooses the label; VW's "
        "names of columns with namespaces have no meaning",
    ),
    (
        "--driver_output --log_level --log_output --limit_output",
        "results go to standard output or a file, messages to standard error; use --quiet, or redirect them (2>FILE)",
    ),
    (
        "--hexfloat_weights --dump_json_weights_experimental --dump_json_weights_include_feature_names_experimental "
        "--dump_json_weights_include_extra_online_state_experimental",
        "models are written as text by --readable_model and --invert_hash",
    ),
    ("--per_model_save_load", "leave it out: models hold the sums of all classes, see --resume"),
    (
        "--output_feature_regularizer_binary --output_feature_regularizer_text --input_feature_regularizer",
        "regularisation is the same for all weights: --l1, --l2",
    ),
    ("--l1_state --l2_state", "a model holds the state of --l1 and --l2; it cannot be set"),
    ("--id", "use the name of the model file instead"),
    (
        "--span_server --unique_id --total --node --span_server_port",
        "to learn on several machines, give --workers, with which xclass runs on a Ray cluster",
    ),
    ("--ring_size --example_queue_limit", "leave it out: xclass chooses the size of batches"),
    ("--feature_mask", "every weight can be learned; see --ignore and --keep"),
    ("--random_weights --normal_weights --truncated_normal_weights", "weights start at --initial_weight"),
    (
        "--sparse_weights",
        "leave it out: memory is used only for weights that are learned, and models are saved sparsely",
    ),
    ("--classweight", "give examples of a class a weight: `label weight |...`"),
    (
        "--active --simulation --direct --mellowness --active_cover --alpha --beta_scale --cover --oracular "
        "--cs_active --domination --range_c --max_labels --min_labels --cost_max --cost_min --csa_debug",
        "xclass does not support active learning",
    ),
    ("--audit_regressor", "use --audit, or --invert_hash for the names of all weights"),
    (
        "--autolink --stage_poly --sched_exponent --batch_sz --batch_sz_no_doubling --interact",
        "cross features with -q, --cubic",
    ),
    (
        "--automl --default_lease --priority_type --priority_challengers --verbose_metrics --csv_trace "
        "--interaction_type --oracle_type --debug_reversed_learn --automl_significance_level "
        "--fixed_significance_level --reward_as_cost --tol_x --opt_func --baseline_challenger_cb --cb_c_alpha "
        "--cb_c_tau --cats_tree --tree_bandwidth --cb_dro --cb_dro_alpha --cb_dro_tau --cb_dro_wmax --cb_sample "
        "--cbify --cbify_cs --cbify_reg --cats --cb_discrete --min_value --max_value --loss_option --loss_report "
        "--loss_01_ratio --loss0 --loss1 --flip_loss_sign --cbify_ldf --ccb_explore_adf --all_slots_loss --no_predict "
        "--ccb_no_slot_index --cb_type --cb_explore --first --epsilon --bag --nounif --psi --cb_explore_adf --regcb "
        "--regcbopt --cb_min_cost --cb_max_cost --first_only --squarecb --gamma_scale --gamma_exponent --elim "
        "--greedify --rnd --rnd_alpha --rnd_invlambda --softmax --synthcover --synthcoverpsi --synthcoversize --cb "
        "--eval --cb_force_legacy --cb_adf --rank_all --clip_p --cb_to_cbadf --cbzo --policy --radius --cats_pdf "
        "--bandwidth --get_pmf --sample_pdf --cb_explore_pdf --pmf_to_pdf --epsilon_decay --model_count --min_scope "
        "--epsilon_decay_significance_level --epsilon_decay_audit --constant_epsilon --bonferroni_denominator "
        "--min_champ_examples --initial_epsilon --shift_model_bounds --challenger_epsilon --graph_feedback "
        "--experimental_igl --large_action_space --max_actions --spanner_c --thread_pool_size --block_size "
        "--las_hint_explicit_simd --two_pass_svd --action_cache_slack --explore_eval --multiplier --target_rate "
        "--multiworld_test --learn --exclude_eval --ot --slates --warm_cb --warm_cb_cs --warm_start --interaction "
        "--warm_start_update --interaction_update --corrupt_type_warm_start --corrupt_prob_warm_start "
        "--choices_lambda --lambda_scheme --overwrite_label --sim_bandit",
        "xclass does not support contextual bandits; it learns from labelled classes",
    ),
    ("--baseline --lr_multiplier --global_only --check_enabled", "xclass does not support a baseline; see --constant"),
    (
        "--boosting --gamma --alg --bootstrap --bs_type",
        "xclass does not resample examples; --multiclass and --cpt combine several trees, as many as --trees says",
    ),
    (
        "--confidence --confidence_after_training",
        "xclass does not compute confidences of predictions; see --oaa K --probabilities",
    ),
    (
        "--lambda",
        "VW's --lambda is for its contextual bandits, which xclass does not have; to regularise, see --l1 and --l2",
    ),
    ("--csoaa --cs_absolute_loss --csoaa_ldf --ldf_override --csoaa_rank --wap_ldf", COSTS),
    ("--extra_metrics", "--summary FILE writes all metrics, as JSON; --per_class FILE those of each class"),
    (
        "--emt --emt_tree --emt_leaf --emt_scorer --emt_initial --emt_router --memory_tree --max_number_of_labels "
        "--leaf_example_multiplier --dream_repeats --top_K --learn_at_leaf --oas --dream_at_update --online",
        "the nearest is --recall_tree K, a tree that proposes classes",
    ),
    ("--no_progress", "it has no effect in VW; leave it out"),
    (
        "--replay_b --replay_b_count --replay_c --replay_c_count --replay_m --replay_m_count",
        "xclass does not replay examples; read the data several times with --passes",
    ),
    (
        "--coin --ftrl_alpha --ftrl_beta --ftrl --pistol --freegrad --restart --project --fepsilon --flipschitz_const "
        "--conjugate_gradient --bfgs --hessian_on --mem --termination --svrg --stage_size --OjaNewton --sketch_size "
        "--epoch_size --alpha_inverse --learning_rate_cnt --normalize --random_init",
        ONLINE,
    ),
    ("--adax --sparse_l2", f"{ONLINE}; to regularise, see --l2"),
    (
        "--rank --new_mf --lrq --lrqdropout --lrqfa --ksvm --reprocess --pool_greedy --para_active --pool_size "
        "--subsample --kernel --degree",
        "xclass supports no matrix factorisation and no kernel methods; cross features with -q",
    ),
    (
        "--nn --inpass --multitask --dropout --meanfield",
        "xclass does not support neural networks; cross features with -q",
    ),
    (
        "--lda --lda_alpha --lda_rho --lda_D --lda_epsilon --minibatch --math --metrics",
        "xclass does not support topic models",
    ),
    (
        "--marginal --initial_denominator --initial_numerator --compete --update_before_learn --unweighted_marginals "
        "--decay",
        f"xclass does not support marginal features; {FEATURE_SOURCES}",
    ),
    ("--kary_tree", "a node of --plt has up to eight children; see --plt_tree and --plt_alpha"),
    ("--plt_force_load_legacy_model", "models of VW cannot be loaded; learn the model again"),
    ("--sendto --print", "xclass does not send or print examples; see --audit"),
    ("--noop", "use -t, which learns nothing"),
    (
        "--search --search_task --search_metatask --search_interpolation --search_rollout --search_rollin "
        "--search_passes_per_policy --search_beta --search_alpha --search_total_nb_policies "
        "--search_trained_nb_policies --search_allowed_transitions --search_subsample_time --search_neighbor_features "
        "--search_rollout_num_steps --search_history_length --search_no_caching --search_xv --search_perturb_oracle "
        "--search_linear_ordering --search_active_verify --search_save_every_k_runs",
        "xclass does not support structured prediction",
    ),
    ("--top", "see --top_k, or use --oaa K --scores, and sort"),
)

ELSEWHERE: tuple[tuple[str, str], ...] = (  # options of older versions and of other programs
    ("--method --share", "xclass tune searches by successive halving alone; leave it out"),
    ("--wap", COSTS),
    (
        "--progressive_validation",
        "the table always shows the loss of examples before they are learned from; see --holdout_period for passes",
    ),
    (
        "--num_threads --learner_threads --nthreads",
        "--threads N limits the threads of xclass, which uses every processor that the system allows",
    ),
)

ACCEPTED: dict[str, str] = {  # flag -> its effect, for the note; empty if no note is needed
    "--save_resume": "has no effect, because models always hold what is needed to continue learning",
    "--compressed": "has no effect; files whose names end in .gz or .zst are decompressed anyway, and a cache is never "
    "compressed",
    "--strict_parse": "stands for --on_bad_line stop",
    "--sort_features": "features are learned in the order of the line, and the values of a feature that is repeated "
    "in a namespace are added; VW would sort the features and leave the repeated one out",
    "--driver_output_off": "",
    "--onethread": "has no effect; xclass uses every processor that the system allows, and learns the same model with "
    "one; put `taskset -c 0` before the command to use one processor",
}


LISTS = (*ADVICE, *ELSEWHERE)
OPTIONS = {flag: Option("", (flag,), kind=bool) for flag in ACCEPTED}


def take(given: dict[str, object]) -> list[str]:
    """Replace the options of `ACCEPTED` in `given`, field -> value, by those that they stand for.

    Return the notes about them for the user.
    """
    accepted = [flag for flag in ACCEPTED if given.pop(flag, False)]
    if "--save_resume" in accepted and "predict_only_model" in given:
        raise UsageError(
            "--save_resume and --predict_only_model exclude each other: one keeps what is needed to continue learning, "
            "the other leaves it out"
        )
    if "--sort_features" in accepted and "vw_exact" in given:
        raise UsageError(
            "--vw_exact and --sort_features exclude each other: VW would leave out repeated features, and xclass adds "
            "their values; leave one of the two options out"
        )
    if "--strict_parse" in accepted and given.setdefault("on_bad_line", "stop") != "stop":
        raise UsageError(
            f"--strict_parse stands for --on_bad_line stop, and --on_bad_line {given['on_bad_line']} is given"
        )
    if "--driver_output_off" in accepted:
        given["quiet"] = True
    return [f"{flag}: {ACCEPTED[flag]}" for flag in accepted if ACCEPTED[flag]]
