//! Every rule, a line each.

mod allocations;
mod batch_size;
mod buffer_reuse;
mod capture_too_short;
mod collectives_unbalanced;
mod communication_exposed;
mod copies_not_overlapped;
mod cuda_graphs;
mod device_copies;
mod device_waits;
mod dominant_kernel;
mod events_lost;
mod failed_calls;
mod garbage_collection;
mod gemm_shapes;
mod gpu_idle;
mod gpus_unbalanced;
mod graph_breaks;
mod host_synchronisation;
mod idle_between_iterations;
mod input_bound;
mod iterations_unbalanced;
mod launch_bound;
mod launches_unmatched;
mod low_occupancy;
mod memory_full;
mod mfu_low;
mod module_loading;
mod no_gpu_work;
mod nsight_compute_rules;
mod pageable_copies;
mod profiler_overhead;
mod recompilation;
mod small_copies;
mod small_grids;
mod small_kernels;
mod synchronous_copies;
mod synchronous_sets;
mod tensor_cores;
mod unified_memory;

use super::rule::Rule;

pub(super) use events_lost::ID as EVENTS_LOST;

/// Every rule, in published order.
pub(super) static ALL: &[&Rule] = &[
    &no_gpu_work::RULE,
    &events_lost::RULE,
    &capture_too_short::RULE,
    &profiler_overhead::RULE,
    &launches_unmatched::RULE,
    &failed_calls::RULE,
    &gpu_idle::RULE,
    &launch_bound::RULE,
    &host_synchronisation::RULE,
    &input_bound::RULE,
    &garbage_collection::RULE,
    &small_kernels::RULE,
    &cuda_graphs::RULE,
    &allocations::RULE,
    &buffer_reuse::RULE,
    &module_loading::RULE,
    &recompilation::RULE,
    &graph_breaks::RULE,
    &idle_between_iterations::RULE,
    &iterations_unbalanced::RULE,
    &dominant_kernel::RULE,
    &mfu_low::RULE,
    &batch_size::RULE,
    &small_grids::RULE,
    &low_occupancy::RULE,
    &nsight_compute_rules::RULE,
    &tensor_cores::RULE,
    &gemm_shapes::RULE,
    &copies_not_overlapped::RULE,
    &pageable_copies::RULE,
    &synchronous_copies::RULE,
    &small_copies::RULE,
    &device_copies::RULE,
    &device_waits::RULE,
    &unified_memory::RULE,
    &synchronous_sets::RULE,
    &communication_exposed::RULE,
    &gpus_unbalanced::RULE,
    &collectives_unbalanced::RULE,
    &memory_full::RULE,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use flopwatch_model::{Loss, LossReason, Timeline};

    use crate::advice::rule::{Verdict, judge};
    use crate::advice::{self, Area, Confidence, Facts, Limits, Severity, rules};

    fn verdict(rule: &rules::Rule, timeline: &Timeline) -> Verdict {
        judge(rule, &Facts::of(timeline, 5))
    }

    #[test]
    fn every_rule_fires_on_the_capture_made_for_it_and_is_quiet_on_the_other() {
        for rule in rules::ALL {
            let id = rule.id;
            let [fires, quiet] = rule.captures.map(|capture| capture());
            let loud = verdict(rule, &fires);
            let Verdict::Fires(found) = loud else {
                panic!("{id} must fire and does not: {loud:?}");
            };
            assert!(
                !found.sentence.is_empty() && !found.actions.is_empty(),
                "{id}: {found:?}"
            );
            assert!(!found.evidence.is_empty(), "{id} has no evidence");
            assert!(found.evidence.len() <= 16, "{id} has evidence without a bound");
            if let Some((gain_ns, assumption)) = &found.gain {
                assert!(!assumption.is_empty(), "{id} estimates without an assumption");
                let window = Facts::of(&fires, 5).window.len();
                assert!(*gain_ns > 0 && *gain_ns <= window, "{id}: {gain_ns} of {window}");
            }
            let quiet = verdict(rule, &quiet);
            assert!(
                matches!(quiet, Verdict::Quiet | Verdict::Near(_)),
                "{id} must look and find nothing: {quiet:?}"
            );
        }
    }

    #[test]
    fn a_rule_abstains_where_nothing_of_what_it_needs_was_recorded() {
        let nothing = Timeline::default();
        for rule in rules::ALL {
            let verdict = verdict(rule, &nothing);
            if rule.needs.is_empty() && !rule.of_gpu_work {
                assert_ne!(verdict, Verdict::abstain(""), "{}", rule.id);
            } else {
                assert!(
                    matches!(&verdict, Verdict::Abstains(reason) if !reason.is_empty()),
                    "{} must abstain: {verdict:?}",
                    rule.id
                );
            }
        }
    }

    #[test]
    fn no_rule_advises_on_gpu_work_whose_times_cannot_be() {
        for rule in rules::ALL.iter().filter(|rule| rule.of_gpu_work) {
            let mut timeline = rule.captures[0]();
            let what = format!("cuda_kernel: {}", Loss::RUNS_ON);
            timeline.capture.losses.add(LossReason::Truncated, &what, 1000);
            let verdict = verdict(rule, &timeline);
            assert!(
                matches!(&verdict, Verdict::Abstains(reason) if reason.contains("times that cannot be")),
                "{} must abstain: {verdict:?}",
                rule.id
            );
        }
    }

    #[test]
    fn of_a_file_that_was_cut_that_is_said_first_and_nothing_else_with_confidence() {
        for rule in rules::ALL {
            let mut timeline = rule.captures[0]();
            timeline.capture.losses.add(LossReason::Truncated, Loss::EVENTS_CUT, 1);
            let limits = Limits {
                findings: 50,
                evidence: 5,
            };
            let advice = advice::of(&timeline, limits);
            let first = &advice.findings[0];
            assert_eq!(
                (first.title.as_str(), first.severity),
                ("The file was cut", Severity::High)
            );
            for found in &advice.findings {
                let may_be_sure = found.area == Area::Capture || found.confidence == Confidence::Low;
                assert!(may_be_sure, "{}: {found:?}", rule.id);
            }
        }
    }

    #[test]
    fn no_rule_speaks_of_what_stands_above_or_below_its_finding() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/advice/rules");
        let files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert_eq!(files.len(), rules::ALL.len());
        for file in files {
            let source = std::fs::read_to_string(&file).unwrap();
            // A sentence goes on behind the backslash at the end of its line.
            let words: Vec<&str> = source.split_whitespace().filter(|word| *word != "\\").collect();
            let text = words.join(" ").to_lowercase();
            for place in [
                "findings below",
                "finding below",
                "below it",
                "findings above",
                "finding above",
                "above it",
                "next finding",
                "see the findings",
            ] {
                assert!(!text.contains(place), "{}: {place}", file.display());
            }
        }
    }

    #[test]
    fn rules_have_names_of_their_own_and_sources_for_their_thresholds() {
        let mut known = BTreeSet::new();
        for rule in rules::ALL {
            assert!(known.insert(rule.id), "{} is there twice", rule.id);
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
            for threshold in rule.thresholds {
                assert!(
                    !threshold.source.is_empty() && !threshold.what.is_empty(),
                    "{}",
                    rule.id
                );
            }
        }
    }
}
