"""Which test stands for which attack or rule, and how it was seen to fail.

Numbers are those of the attack list and of the privacy rules that the project was designed against. Below each test
stands what was taken out of a copy of the package, and that the test failed then ("seen: ..."), or, where a test
brings a broken implementation along and shows that it is caught, "in the test: ...".
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NOISE, MEMO, BUDGET = "attacks/test_attack_noise.py", "attacks/test_attack_memo.py", "attacks/test_attack_budget.py"
FUNCTIONS, LEAKS, AUDIT = "attacks/test_attack_functions.py", "attacks/test_leaks.py", "attacks/test_audit.py"
RARE, LAW, WORDS = "noise/test_noise_rare.py", "noise/test_noise_distribution.py", "noise/test_noise_words.py"
LEDGER, DAMAGE, TOGETHER = "ledger/test_ledger.py", "ledger/test_damage.py", "ledger/test_together.py"
SCRIPTS, PROCESSES = "distributed/test_scripts.py", "distributed/test_processes.py"
SHUFFLE = "engines/test_shuffle.py"
MEASUREMENT = "measurements/test_measurement.py"
LIVE, WINDOWS, RECOVERY = "streaming/test_live.py", "streaming/test_windows.py", "streaming/test_recovery.py"
CONTINUAL, KEYS = "measurements/test_continual.py", "measurements/test_continual_keys.py"
DIGITS, COST, DISK = "noise/test_noise_digits.py", "ledger/test_cost.py", "ledger/test_disk.py"

ATTACKS = [1, *range(2, 22), 25, 35, 36, 37, *range(40, 46)]
RULES = [*range(2, 17), 22, 23, 24, 25, 28, *range(32, 40), *range(44, 47), 48]

INDEX = """
attack 1   {NOISE}::test_attack_01_both_truths_reach_all_points
    seen: noise in even steps only
attack 2   {NOISE}::test_attack_02_the_grid_of_laplace_does_not_depend_on_the_truth
    seen: numpy's Laplace in floats
attack 2   {NOISE}::test_attack_02_last_digits_do_not_tell_whether_there_are_weights
    seen: exact sums divided as they are
attack 2   {AUDIT}::test_noise_in_floats_is_caught
    in the test: numpy's Laplace in floats
attack 3   {RARE}::test_constant_words_neither_crash_nor_hang
    seen: hits of the tail without an end (hangs)
attack 3   {RARE}::test_the_far_tail_follows_the_law
    in the test: words chosen to reach the tail
attack 4   {LAW}::test_a_million_draws_follow_the_law
    seen: a digit with another probability
attack 4   {LAW}::test_the_checkers_refuse_broken_samplers_and_pass_the_right_one
    in the test: broken samplers
attack 5   {NOISE}::test_attack_05_no_seed_and_no_switch
    seen: a constant secret
attack 5   {NOISE}::test_attack_05_forked_processes_do_not_repeat_each_other
    seen: a constant secret and a constant version
attack 6   {RARE}::test_the_work_does_not_depend_on_the_values
    seen: one more word for some values
attack 7   {BUDGET}::test_attack_07_amounts_are_exact_end_to_end
    seen: floats read as their binary fractions
attack 7   {LEDGER}::test_attack_07_a_tiny_charge_is_not_lost
    seen: amounts rounded to billionths
attack 8   {MEMO}::test_attack_08_averaging_gains_nothing
    seen: a release key from os.urandom
attack 8   {MEMO}::test_attack_08_a_million_answers_have_the_variance_of_the_noise
    seen: a fresh key for each question
attack 9   {NOISE}::test_attack_09_two_measurements_have_independent_noise
    seen: without the name, without the mechanism
attack 10  {NOISE}::test_attack_10_equal_bins_have_one_noise
    seen: 1.0 not encoded as 1
attack 10  {NOISE}::test_attack_10_different_bins_have_different_noise
    seen: text in NFC
attack 11  {NOISE}::test_attack_11_changed_data_never_meets_old_noise
    seen: no digest in the key
attack 11  {LEDGER}::test_attack_11_a_second_digest_closes_the_version_for_every_question
    seen: digests not compared
attack 11  {AUDIT}::test_noise_reused_on_changed_data_is_caught
    seen: no digest in the key
attack 12  {MEMO}::test_attack_12_nothing_tells_which_bins_there_are
    seen: repr of a data set with its version
attack 12  {MEMO}::test_attack_12_present_and_absent_bins_take_the_same_path
    seen: a branch on an absent bin
attack 13  {MEMO}::test_attack_13_killed_between_charge_and_answer
    seen: charged after the run; a key from os.urandom
attack 13  {MEMO}::test_attack_13_a_restored_ledger_is_refused
    seen: a head ahead of the rows accepted
attack 13  {TOGETHER}::test_attack_13_killed_at_random_moments_every_grant_is_in_the_ledger
    seen: rows not committed
attack 13  {TOGETHER}::test_attack_13_killed_at_any_line
    seen: rows not committed
attack 14  {MEMO}::test_attack_14_no_memory_of_bins_to_exhaust
    seen: answers remembered
attack 15  {TOGETHER}::test_attack_15_eight_threads_never_spend_more_than_there_is
    seen: no lock
attack 15  {TOGETHER}::test_attack_15_eight_processes_never_spend_more_than_there_is
    seen: no lock
attack 16  {BUDGET}::test_attack_16_a_failure_refunds_nothing_and_can_be_tried_again
    seen: charged after the run
attack 16  {BUDGET}::test_attack_16_nothing_is_computed_before_it_is_charged
    seen: a run before the charge
attack 17  {BUDGET}::test_attack_17_functions_cannot_spend_the_budget
    seen: refuse_inside does nothing (locks up)
attack 17  {BUDGET}::test_attack_17_functions_cannot_ask_anything
    seen: refuse_inside does nothing
attack 18  {BUDGET}::test_attack_18_every_use_of_a_source_is_paid
    seen: one path for all in stability.paths
attack 18  {AUDIT}::test_a_pair_of_uses_costs_no_more_than_was_charged
    seen: one path for all in stability.paths
attack 19  {BUDGET}::test_attack_19_overlapping_filters_are_summed
    seen: filter claims to be a part
attack 19  operators/test_partition.py::test_the_largest_part_is_charged
    seen: a group for each part
attack 20  {BUDGET}::test_attack_20_what_shares_a_ledger_is_charged_in_it
    seen: names not compared
attack 20  {DAMAGE}::test_attack_20_every_edit_is_refused_at_the_next_charge_and_the_next_open
    seen: codes of rows not compared
attack 20  {DISK}::test_attack_20_a_full_disk_refuses_and_loses_nothing
    in the test: a full disk
attack 21  {BUDGET}::test_attack_21_adaptively_chosen_amounts_never_pass_the_budget
    seen: sums in rounded floats
attack 25  {SCRIPTS}::test_attack_25_the_answers_are_bit_for_bit_those_of_one_process
    seen: shards that differ from process to process
attack 25  {SHUFFLE}::test_tasks_twice_in_any_order_and_parts_give_the_same_histogram
    see attack 25
attack 25  {PROCESSES}::test_a_file_that_changes_meanwhile_is_refused
    seen: plans not compared
attack 25  {LIVE}::test_attack_25_epochs_and_batches_do_not_show_in_what_is_counted
    seen: shave forgets what was there before
attack 35  {FUNCTIONS}::test_attack_35_a_function_that_raises_drops_its_record
    seen: only Exception is caught
attack 35  {FUNCTIONS}::test_attack_35_recursion_drops_its_record
    seen: only ValueError is caught
attack 36  {FUNCTIONS}::test_attack_36_whatever_a_function_returns_for_one_record
    seen: text with lone surrogates let through
attack 36  {FUNCTIONS}::test_attack_36_a_duration_beyond_64_bits_drops_its_record
    seen: durations not checked
attack 36  {FUNCTIONS}::test_attack_36_a_step_that_fails_fails_without_alice_too
    seen: as found in shave
attack 36  {FUNCTIONS}::test_attack_36_thin_slices_need_no_more_where_alice_is
    seen: as found in shave
attack 35  {FUNCTIONS}::test_attack_35_a_function_that_runs_out_of_memory_drops_its_record
    seen: as found in isolate
rule 2     {FUNCTIONS}::test_rule_02_how_a_file_is_read_is_part_of_the_question
    seen: as found in plan.Source
attack 37  {FUNCTIONS}::test_attack_37_no_answer_before_the_run_is_over_and_no_function_runs_after_it
    seen: run anew for each answer
attack 40  {FUNCTIONS}::test_attack_40_what_is_stopped_halfway_answers_nothing
    seen: failures forgotten
attack 40  {FUNCTIONS}::test_attack_40_a_stray_stop_iteration_is_not_the_end_of_the_data
    seen: failures forgotten
attack 40  {LIVE}::test_attack_40_rule_9_a_measurement_speaks_of_the_first_epoch_that_closes_after_it
    seen: bound to the epoch that closed last
attack 40  {WINDOWS}::test_attack_40_a_window_is_answered_only_when_it_has_closed
    seen: windows closed when they begin
attack 41  {WINDOWS}::test_attack_41_late_data_cannot_reopen_a_window
    seen: windows read up to the last epoch
attack 42  {RECOVERY}::test_attack_42_parts_are_read_once_and_counted_once
    seen: a kept part is read again
attack 42  {SCRIPTS}::test_attack_42_several_processes_that_are_killed_go_on_where_they_were
    seen: every process takes all kept parts
attack 43  {CONTINUAL}::test_attack_43_rule_36_a_record_costs_epsilon_over_all_answers_for_ever
    in the test: a segment counted twice, a node of two segments, shares above 1, and more
attack 44  {SHUFFLE}::test_attack_44_which_shard_holds_a_record_is_secret_and_even
    seen: a key that all know
attack 45  {FUNCTIONS}::test_attack_45_fits_and_synthesis_need_released_numbers_only
    seen: reconcile runs a flow
attack 45  house/test_layers.py::test_imports_go_down
    in the test: a forbidden import is found
rule 2     {FUNCTIONS}::test_rule_02_functions_that_change_behind_their_back_are_new_questions
    seen: defaults not covered
rule 2     {MEASUREMENT}::test_data_that_changed_behind_a_declared_version_are_refused_for_every_question
    see rule 2
rule 3     {LEDGER}::test_rule_03_equal_digests_are_not_seen_to_be_equal_and_never_kept_in_clear
    seen: the digest itself in the row
rule 3     {NOISE}::test_rule_03_equal_histograms_of_two_data_sets_have_different_noise
    seen: as found (one secret, one name)
rule 4     {NOISE}::test_attack_09_two_measurements_have_independent_noise
    seen: without the mechanism
rule 5     {BUDGET}::test_rules_05_36_a_finite_collection_has_no_continual_release
    seen: not refused
rule 5     {CONTINUAL}::test_attack_08_rule_05_averaging_over_epochs_gains_nothing
    seen: nodes drawn anew in each epoch
rule 6     {WORDS}::test_no_bin_shares_words_with_another_bin_or_number
    seen: two word numbers with one key
rule 7     {NOISE}::test_rule_07_order_batches_and_shards_do_not_change_a_digest
    seen: the first record of a batch counted twice
rule 8     {MEMO}::test_rule_08_the_same_question_is_free_and_numbers_do_not_count
    seen: every question new
rule 9     {MEMO}::test_rule_09_a_release_keeps_the_histogram_of_its_version
    seen: run anew for each answer
rule 9     {LIVE}::test_attack_40_rule_9_a_measurement_speaks_of_the_first_epoch_that_closes_after_it
    see attack 40
rule 10    {NOISE}::test_rule_10_typed_and_untyped_columns_give_a_value_one_identity
    seen: dates hashed as timestamps
rule 11    {CONTINUAL}::test_rule_11_steps_in_which_records_meet_are_refused
    seen: nothing refused
rule 12    {CONTINUAL}::test_rule_12_bounds_that_retract_are_refused
    seen: nothing refused
rule 13    {WINDOWS}::test_rule_13_no_record_closes_a_window_or_moves_another
    seen: the latest record closes windows
rule 14    {FUNCTIONS}::test_rule_14_one_bad_line_changes_no_other_bin_and_raises_nothing
    seen: strict casts; quotes unchecked
rule 14    {FUNCTIONS}::test_rule_14_an_empty_file_answers
    seen: an empty file refused in spite of columns=
rule 15    {FUNCTIONS}::test_rule_15_expressions_that_see_other_records_are_refused
    seen: no allow-list
rule 16    functions/test_functions_trace.py::test_a_record_outside_the_mask_does_not_change_the_way_of_the_others
    in the test
rule 22    functions/test_functions_plain.py::test_the_depth_that_a_function_has_does_not_depend_on_the_caller
    in the test
rule 22    functions/test_functions_plain.py::test_recursion_exits_and_interrupts_of_the_function_drop_its_record
    see attack 35
rule 23    functions/test_functions_trace.py::test_what_columns_do_not_do_runs_plainly
    seen: bytecode not looked at
rule 23    functions/test_functions_trace.py::test_a_wrong_rule_is_found_by_the_probes
    seen: probes not compared
rule 24    {BUDGET}::test_rule_24_epsilon_is_what_it_costs
    seen: scale 1 / epsilon whatever the uses
rule 25    {BUDGET}::test_rule_25_paths_add_up_in_the_charge
    seen: one path for all
rule 25    {COST}::test_total_is_the_recursion
    seen: parts summed
rule 28    {BUDGET}::test_rule_28_versions_share_one_budget_and_units_do_not_change
    seen: units not compared
rule 32    {BUDGET}::test_rule_32_scales_in_resolution_units_are_drawn_or_refused_before_the_charge
    seen: scale in weight
rule 32    {BUDGET}::test_rule_32_a_scale_beyond_the_sampler_costs_nothing
    seen: charged first
rule 33    {DIGITS}::test_number_of_digits
    seen: digits up to 20 scales only
rule 34    {DIGITS}::test_every_word_of_every_digit
    seen: bounds taken without guard bits
rule 45    measurements/test_gaussian_measurement.py::test_what_is_charged_covers_the_squares_of_all_moves
    seen: B taken for S
rule 45    measurements/test_gaussian_measurement.py::test_several_data_sets_of_a_ledger_pay_for_the_sum_of_their_moves
    seen: rho of each data set by itself
rule 45    measurements/test_residual.py::test_no_unit_loses_more_than_is_charged
    in the test: a value less in a column, a column forgotten, contrasts that are too long, factors rounded up
rule 46    noise/test_gaussian.py::test_the_work_depends_on_the_words_alone
    seen: a rejected bin that takes its words again
rule 46    noise/test_gaussian.py::test_what_a_round_gives_has_exactly_the_law
    seen: twice the exponent
rule 35    {BUDGET}::test_rule_35_fine_and_heavy_weights_do_not_wrap
    seen: 64 bits on every resolution
rule 36    {BUDGET}::test_rules_05_36_a_finite_collection_has_no_continual_release
    seen: not refused
rule 37    {BUDGET}::test_rule_37_a_flow_holds_an_identity_key_and_nothing_else
    seen: an engine imports the noise
rule 36    {CONTINUAL}::test_rule_36_every_segment_there_will_ever_be_spends_epsilon_and_no_more
    seen: shares of all levels but the first
rule 37    {PROCESSES}::test_rule_37_other_processes_are_told_no_secret_and_have_their_part_of_the_machine
    seen: the secret in place of the key of samples
rule 38    {DAMAGE}::test_rule_38_a_charge_without_its_head_is_adopted
    seen: a head one behind refused
rule 38    {MEMO}::test_attack_13_killed_between_charge_and_answer
    seen: charged after the run
rule 39    {MEMO}::test_rule_39_what_no_ledger_can_detect
    seen: a key from os.urandom
rule 39    {DAMAGE}::test_rule_39_a_process_that_runs_notices_even_a_copy_of_everything
    seen: what was read before not compared
rule 48    attacks/test_joint_loss.py::test_no_joint_loss_is_above_the_charge_where_records_are_taken_back
    seen: samples that only grow, and what is below zero not left out
rule 48    streaming/test_retractions.py::test_every_step_is_at_every_epoch_what_its_definition_makes_of_what_is_there
    seen: samples that only grow
rule 44    {KEYS}::test_outside_of_that_event_one_record_more_changes_nothing_but_noise
    in the test: bins are looked at only where they changed
rule 44    {KEYS}::test_who_is_alone_in_a_bin_is_seen_with_probability_delta_over_all_epochs
    in the test: each look costs all of delta
"""


def rows():
    lines = INDEX.strip().splitlines()
    for entry, seen in zip(lines[::2], lines[1::2], strict=True):
        kind, number, test = entry.split()
        yield kind, int(number), re.sub(r"\{(\w+)\}", lambda found: globals()[found[1]], test), seen.strip()


def test_every_number_stands_for_a_test():
    assert {number for kind, number, _, _ in rows() if kind == "attack"} == set(ATTACKS)
    assert {number for kind, number, _, _ in rows() if kind == "rule"} == set(RULES)


@pytest.mark.parametrize("test", sorted({test for _, _, test, _ in rows()}))
def test_the_test_exists(test):
    file, _, name = test.partition("::")
    assert re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.MULTILINE), test


def test_it_is_said_how_each_was_seen_to_fail():
    for _, number, test, seen in rows():
        assert re.match("seen: |in the test|see ", seen), (number, test)
