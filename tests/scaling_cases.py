"""Tests that show the cases and goals of docs/scaling-cases.md, by number.

M1 and M2 are the model that goes wrong in all these ways at once, and the removal of its rules.
"""

from collections.abc import Mapping

SHOWN_BY: Mapping[str, tuple[str, ...]] = {
    "M1": ("test_no_job_and_no_drain_of_others_is_lost_whatever_goes_wrong",),
    "M2": ("test_without_a_rule_a_trace_goes_wrong_that_goes_well_with_it",),
    "1": (
        "test_a_slurmctld_that_never_answers_is_given_five_minutes_and_nothing_is_drained",
        "test_scaling_down_waits_for_a_slurmctld_that_restarts",
    ),
    "2": (
        "test_a_node_that_registers_when_it_was_looked_for_the_last_time_takes_no_job_before_its_pod_goes",
        "test_a_node_that_slurmctld_does_not_know_is_neither_drained_nor_free",
        "test_a_pod_in_which_slurmd_never_ran_is_free_unless_slurmctld_knows_the_node",
    ),
    "3": ("test_scaling_up_needs_no_slurmctld_and_says_that_it_is_down",),
    "4": (
        "test_abort_stops_and_touches_no_job",
        "test_of_nodes_that_left_no_trace_is_in_slurm",
        "test_the_error_names_jobs_users_and_end_times_and_what_to_do",
    ),
    "5": (
        "test_wait_continues_to_its_limit_and_stops_then",
        "test_a_job_without_a_time_limit_ends_no_one_knows_when",
    ),
    "6": (
        "test_a_job_that_completes_is_not_treated_and_may_not_take_for_ever",
        "test_the_error_says_what_can_be_done_about_a_job_that_does_not_end",
    ),
    "7": ("test_a_job_in_any_active_state_holds_its_node",),
    "8": ("test_a_job_in_any_active_state_holds_its_node",),
    "9": ("test_a_node_that_is_down_and_drained_is_free",),
    "10": ("test_a_node_that_says_itself_that_it_is_busy_is_not_free_even_when_no_job_is_listed",),
    "11": (
        "test_a_node_that_is_down_and_drained_is_free",
        "test_a_node_without_a_pod_is_shown_and_cleaned_up",
    ),
    "12": (
        "test_a_drain_of_someone_else_is_left_alone_and_counts",
        "test_drains_are_untouched_by_an_aborted_scale_down_a_done_one_and_a_scale_up",
    ),
    "12b": (
        "test_deleted_pods_wait_for_their_jobs_and_only_an_admins_drain_outlives_them",
        "test_a_drain_of_someone_else_is_still_there_afterwards_and_stops_nothing",
    ),
    "13": ("test_a_drain_of_someone_else_is_left_alone_and_counts",),
    "14": (
        "test_only_what_we_drained_for_the_operation_is_put_back",
        "test_a_drain_of_another_cluster_s_run_is_someone_elses",
    ),
    "15": ("test_the_preview_says_how_many_nodes_of_lower_ordinals_are_idle",),
    "16": (
        "test_a_job_on_several_nodes_is_treated_once",
        "test_a_job_on_many_nodes_is_reported_once",
    ),
    "17": ("test_what_is_drained_once_is_not_drained_again",),
    "18": (
        "test_a_drain_of_an_earlier_run_is_marked_again_and_keeps_the_reason_of_before",
        "test_killed_half_way_it_is_seen_by_the_next_preview_and_continues_as_fewer_replicas_are_wanted",
    ),
    "19": ("test_killed_half_way_it_is_seen_by_the_next_preview_and_continues_as_fewer_replicas_are_wanted",),
    "20": (
        "test_a_failing_template_takes_no_further_nodes_however_often_it_is_tried",
        "test_an_update_that_is_killed_at_any_call_goes_on_and_loses_no_job_of_a_steady_stream",
        "test_never_more_nodes_are_out_of_service_than_may_be",
        "test_every_node_is_recreated_once_and_no_job_is_lost_wherever_a_run_is_stopped",
        "test_no_job_of_a_steady_stream_fails_and_one_worker_at_a_time_is_out_of_service",
    ),
    "21": (
        "test_reservations_and_pending_jobs_that_name_a_node_are_reported",
        "test_it_is_shown_and_the_record_stays_as_long_as_the_node_is_named",
        "test_where_it_is_to_be_refused_nothing_is_drained",
    ),
    "23": (
        "test_nothing_is_drained_for_files_that_slurm_would_be_refused_afterwards",
        "test_node_sets_with_a_shared_partition_with_one_of_their_own_and_renamed_wait_for_their_jobs",
        "test_a_job_stops_it_before_anything_is_deleted_and_so_does_a_namespace_deleted_by_hand",
    ),
    "24": ("test_deleted_pods_wait_for_their_jobs_and_only_an_admins_drain_outlives_them",),
    "25": ("test_a_pod_that_stops_asks_again_while_slurmctld_does_not_answer",),
    "26": ("test_every_eviction_of_workers_and_the_controller_is_refused",),
    "27": (
        "test_a_node_that_slurm_has_known_is_not_free_when_slurm_has_lost_it",
        "test_a_pod_without_a_node_is_shown_until_it_is_replaced",
    ),
    "28": (
        "test_only_what_we_drained_for_the_operation_is_put_back",
        "test_a_node_that_an_admin_has_failed_is_as_good_as_drained",
    ),
    "30": ("test_drains_are_untouched_by_an_aborted_scale_down_a_done_one_and_a_scale_up",),
    "31": (
        "test_a_node_that_someone_has_put_in_service_meanwhile_is_drained_again",
        "test_someone_who_resumes_nodes_again_and_again_does_not_make_it_endless",
    ),
    "32": ("test_putting_back_finds_exactly_what_was_drained_and_the_reason_of_before",),
    "33": ("test_a_scale_down_to_nothing_leaves_no_record",),
    "34": ("test_after_ctrl_c_the_drains_stay_until_it_is_run_again_or_replicas_are_taken_back",),
    "35": (
        "test_the_policy_of_a_node_set_that_keeps_its_nodes_protects_a_job_as_well",
        "test_nodes_of_several_node_sets_are_drained_in_one_call",
        "test_what_stops_one_node_set_stops_all",
    ),
    "36": (
        "test_a_drain_of_this_cluster_counts_only_when_this_run_has_set_it",
        "test_an_answer_that_is_older_than_one_before_is_dropped",
    ),
    "G1": (
        "test_a_free_node_is_drained_and_holds_no_job",
        "test_what_one_rule_speaks_against_would_be_free_without_it",
    ),
    "G2": (
        "test_a_drain_that_is_taken_back_leaves_state_and_reason_as_they_were",
        "test_putting_back_finds_exactly_what_was_drained_and_the_reason_of_before",
        "test_drains_are_untouched_by_an_aborted_scale_down_a_done_one_and_a_scale_up",
    ),
    "G3": ("test_whatever_jobs_do_there_is_an_end",),
    "G4": (
        "test_leaving_nodes_are_drained_in_one_call",
        "test_a_thousand_idle_nodes_are_drained_and_deleted_in_a_handful_of_calls",
    ),
    "G5": ("test_idle_nodes_come_first_and_then_those_whose_jobs_end_first",),
    "G6": ("test_what_is_drained_once_is_not_drained_again",),
    "G7": (
        "test_destroying_two_node_sets_waits_for_the_jobs_of_both",
        "test_the_preview_lists_the_nodes_that_leave_with_their_jobs",
        "test_a_cluster_that_is_deleted_shows_its_nodes_and_jobs_and_is_left_alone",
        "test_a_gate_that_is_replaced_with_its_stateful_set_shows_the_jobs_that_this_drains",
        "test_what_transforms_in_the_engine_make_of_the_pods_reaches_the_preview_of_their_recreation",
    ),
    "G8": (
        "test_nodes_that_someone_counts_on_stay_and_are_named",
        "test_a_scale_down_leaves_no_record",
        "test_a_record_that_is_kept_for_someone_is_reported_and_no_change",
    ),
    "G9": ("test_scaling_up_needs_no_slurmctld_and_says_that_it_is_down",),
    "G10": (
        "test_killed_at_any_moment_and_run_again_it_converges_and_no_job_is_lost",
        "test_no_job_of_a_steady_stream_fails_and_one_worker_at_a_time_is_out_of_service",
    ),
    "G11": ("test_a_drain_of_another_cluster_s_run_is_someone_elses",),
    "G12": (
        "test_the_page_shows_what_is_printed",
        "test_every_policy_for_one_run_is_one",
    ),
}
