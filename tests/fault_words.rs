//! Every word of a scenario is in `tests/faults/WORDS.md` with its meaning, default and unit, and with the tests that
//! prove it. Words and meanings are those of the parser; a word without a test, or a test that is gone, fails here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use roce_user::fault::scenario::keys::{self, Word};
use roce_user::fault::words::CLASSES;

/// Section, word (or several), tests.
const PROOFS: &[(&str, &str, &str)] = &[
    ("file", "name description rule", "every_ready_scenario_reads_and_explains_itself"),
    ("file", "seed", "chances_are_about_right_and_depend_on_the_seed"),
    ("file", "port", "another_port_is_roce_if_the_scenario_says_so"),
    ("file", "run expect", "every_ready_scenario_runs_and_the_application_is_judged"),
    ("run", "command limit", "the_scenario_s_own_command_and_limit"),
    (
        "expect",
        "injections",
        "the_sentence_is_true_of_an_application_that_tries_long_enough nothing_injected_is_a_failure",
    ),
    ("expect", "exit", "exit_statuses and_false_of_one_that_gives_up_or_takes_too_long_or_never_gets_there"),
    ("expect", "finish_within", "and_false_of_one_that_gives_up_or_takes_too_long_or_never_gets_there"),
    (
        "expect",
        "retransmission_within",
        "a_stack_that_recovers_is_told_from_one_that_does_not the_hole_in_a_read_response_is_filled_or_not \
         reactions_on_the_wire_are_judged",
    ),
    (
        "expect",
        "nak_within",
        "a_stack_that_recovers_is_told_from_one_that_does_not a_receiver_asks_once_for_all_that_follows",
    ),
    ("expect", "cnp_within", "a_mark_that_nobody_answers_is_told_from_one_that_is_answered"),
    (
        "expect",
        "no_message_lost",
        "a_stack_that_recovers_is_told_from_one_that_does_not a_datagram_and_an_unreliable_message_do_not_come_back \
         the_last_packet_of_all_is_missed_too",
    ),
    (
        "expect",
        "go_back_n",
        "a_stack_that_recovers_is_told_from_one_that_does_not going_back_at_a_box_in_the_path_and_with_many_connections",
    ),
    ("rule", "name", "junit_and_pcapng_say_the_same"),
    ("rule", "type", "a_dry_run_counts_and_changes_nothing errors_say_where_and_what_was_meant"),
    ("rule", "interface", "a_rule_keeps_to_its_interface"),
    ("rule", "direction", "the_other_direction_is_left_alone ce_on_the_way_out_is_right_at_the_other_end"),
    ("rule", "src dst qpn transport opcode dscp size", "matches_agree_with_the_dissector"),
    ("rule", "flow", "flows_are_numbered_among_those_that_the_rule_cares_for the_issues_own_sentence"),
    ("rule", "psn", "matches_agree_with_the_dissector relative_psns another_life_of_a_queue_pair_counts_anew"),
    (
        "rule",
        "iter",
        "occurrences_of_a_psn faults_on_answers_atomics_notifications_and_datagrams \
         another_life_of_a_queue_pair_counts_anew",
    ),
    ("rule", "message", "the_issues_own_sentence another_life_of_a_queue_pair_counts_anew"),
    ("rule", "after for period down", "windows_open_and_close_when_they_should time_windows"),
    ("rule", "armed_by", "rules_in_order_and_arming rules_that_wait_for_rules_that_wait"),
    ("rule", "nth", "nth_every_and_count_go_by_flow_or_by_rule the_nth_is_the_nth_across_cpus"),
    ("rule", "every count per", "nth_every_and_count_go_by_flow_or_by_rule"),
    (
        "rule",
        "probability",
        "chances_are_about_right_and_depend_on_the_seed \
         ten_runs_on_two_cpus_in_any_order_of_flows_hit_the_same_packets",
    ),
    ("rule", "burst", "bursts_are_gilbert_elliotts burst_defaults_are_netems"),
    ("rule", "rate", "a_rate_limit_lets_no_more_through"),
    (
        "rule",
        "offset xor",
        "corrupt_changes_one_payload_byte_and_the_udp_checksum_with_it \
         jumbo_frames_are_changed_where_they_lie_in_fragments",
    ),
    ("rule", "value", "clear_ect_and_dscp"),
    ("rule", "length", "truncate_cuts_the_frame large_frames_are_broken_in_their_far_end_on_the_way_out_and_in"),
    ("rule", "any_ecn", "ce_marks_ect_keeps_checksum_and_icrc"),
    ("rule", "queue", "a_phantom_queue_marks_more_the_faster_the_packets_come"),
    ("burst", "p r 1-h 1-k", "bursts_are_gilbert_elliotts"),
    ("queue", "rate kmin kmax pmax", "a_phantom_queue_marks_more_the_faster_the_packets_come"),
    (
        "type",
        "drop",
        "drop_takes_every_roce_packet_and_nothing_else the_receivers_own_socket_misses_exactly_what_was_hit",
    ),
    ("type", "ce", "ce_marks_ect_keeps_checksum_and_icrc ce_on_the_way_out_is_right_at_the_other_end"),
    ("type", "icrc", "icrc_alone_fails jumbo_frames_are_changed_where_they_lie_in_fragments"),
    (
        "type",
        "corrupt",
        "corrupt_changes_one_payload_byte_and_the_udp_checksum_with_it \
         jumbo_frames_are_changed_where_they_lie_in_fragments",
    ),
    ("type", "clear-ect dscp", "clear_ect_and_dscp"),
    ("type", "truncate", "truncate_cuts_the_frame large_frames_are_broken_in_their_far_end_on_the_way_out_and_in"),
    (
        "type",
        "duplicate",
        "twice_on_the_way_out_and_on_the_way_in filters_of_older_kernels_do_the_same_and_leave_with_us",
    ),
    (
        "type",
        "blackhole flap",
        "every_ready_scenario_runs_and_the_application_is_judged windows_open_and_close_when_they_should",
    ),
    (
        "class",
        "first middle last only starts ends data request response send write read-request read-response atomic \
         atomic-ack flush ack nak rnr cnp mad",
        "matches_agree_with_the_dissector",
    ),
];

fn proof(section: &str, word: &str) -> &'static str {
    let found: Vec<_> =
        PROOFS.iter().filter(|(s, words, _)| *s == section && words.split_whitespace().any(|w| w == word)).collect();
    assert_eq!(found.len(), 1, "`{word}` of {section} is proved in one line of this file");
    found[0].2
}

fn cell(s: &str) -> String {
    s.replace('|', "\\|")
}

fn tests_of(section: &str, word: &str) -> String {
    proof(section, word).split_whitespace().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", ")
}

fn keys(out: &mut String, title: &str, section: &str, words: &[Word]) {
    let _ = writeln!(out, "\n## {title}\n\n| word | meaning | without it | value | proved by |\n|---|---|---|---|---|");
    for w in words {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            w.word,
            cell(w.meaning),
            cell(w.default),
            cell(w.unit),
            tests_of(section, w.word)
        );
    }
}

fn values(out: &mut String, title: &str, section: &str, words: &[(&str, &str)]) {
    let _ = writeln!(out, "\n## {title}\n\n| word | meaning | proved by |\n|---|---|---|");
    for (word, meaning) in words {
        let _ = writeln!(out, "| `{word}` | {} | {} |", cell(meaning), tests_of(section, word));
    }
}

fn document() -> String {
    let mut out = String::from(
        "# The words of a scenario\n\n\
         Made of the tables that the parser itself reads (`roce-user/src/fault/scenario/keys.rs`) and held to them by\n\
         `tests/fault_words.rs`, which also knows the tests that prove each word.\n",
    );
    keys(&mut out, "The file", "file", keys::TOP);
    keys(&mut out, "[[rule]]: match, choose, act", "rule", keys::RULE);
    values(&mut out, "`type`: act", "type", keys::TYPES);
    values(&mut out, "`opcode`: classes beside the names of the opcode table", "class", CLASSES);
    keys(&mut out, "`burst`", "burst", keys::BURST);
    keys(&mut out, "`queue`", "queue", keys::QUEUE);
    keys(&mut out, "[run]", "run", keys::RUN);
    keys(&mut out, "[expect]", "expect", keys::EXPECT);
    out
}

#[test]
fn every_word_is_explained_and_proved() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fault = tests.join("../roce-user/src/fault");
    let mut there = BTreeSet::new();
    let mut files: Vec<_> =
        ["fault", "fault_live", "fault_app", "fault_verdicts"].map(|f| tests.join(f).with_extension("rs")).into();
    for f in [fault.clone(), fault.join("scenario")] {
        files.extend(std::fs::read_dir(f).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()));
    }
    for f in files {
        let text = std::fs::read_to_string(&f).unwrap();
        let mut lines = text.lines().map(str::trim);
        while let Some(l) = lines.next() {
            if l == "#[test]"
                && let Some(name) = lines.next().and_then(|l| l.strip_prefix("fn ")).and_then(|l| l.split('(').next())
            {
                there.insert(name.to_owned());
            }
        }
    }
    for (section, words, proved) in PROOFS {
        for t in proved.split_whitespace() {
            assert!(there.contains(t), "{section}: {words}: there is no test {t}");
        }
    }
    let path = tests.join("faults/WORDS.md");
    let made = document();
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if made != kept {
        let new = std::env::temp_dir().join("WORDS.md");
        std::fs::write(&new, made).unwrap();
        panic!("{} is not what the tables say now: look at {} and copy it", path.display(), new.display());
    }
}
