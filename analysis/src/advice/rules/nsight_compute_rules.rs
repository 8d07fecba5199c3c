//! What the rules of Nsight Compute said when a report was made, relayed as theirs.

use std::collections::BTreeMap;

use flopwatch_model::{KernelProfile, RuleKind, RuleResult, Scope, count};
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::{count as counted, short};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};
use crate::analyses::profiled_kernel::plain;

const SPEEDUP: Threshold = Threshold::percent(
    "speed-up that a rule of Nsight Compute estimates, from which on the severity is medium",
    10,
    "as of findings with a gain: a tenth is much",
);

/// Fires where a rule of Nsight Compute says how a launch could be faster, or warns.
pub(super) static RULE: Rule = Rule {
    id: "nsight-compute-rules",
    title: "Nsight Compute's own rules say how kernels could be faster",
    area: Area::Kernels,
    needs: &[],
    of_gpu_work: false,
    thresholds: &[SPEEDUP],
    evaluate,
    #[cfg(test)]
    captures: [
        || tests::report(&[(RuleKind::Optimization, 25.0)]),
        || tests::report(&[(RuleKind::Information, 0.0)]),
    ],
};

/// Messages of one rule on all launches.
struct Messages<'a> {
    launches: u64,
    /// The largest estimate in percent; 0 where the rule estimates none.
    most_percent: f64,
    /// Whether that is of the launch as a whole.
    is_of_launch: bool,
    /// The launch with that estimate, or the first.
    kernel: &'a str,
    text: &'a str,
}

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let profiles = &facts.timeline.capture.profiles;
    if profiles.is_empty() {
        return Verdict::abstain(
            "the capture holds no launch that Nsight Compute measured; profile the longest kernels with ncu and open its report (.ncu-rep)",
        );
    }
    if profiles.iter().all(|profile| profile.rules.is_empty()) {
        return Verdict::abstain(
            "the report holds no messages of rules; profile with `ncu --set full`, which applies them",
        );
    }
    let told = || {
        let rules = profiles
            .iter()
            .flat_map(|profile| profile.rules.iter().map(move |rule| (profile, rule)));
        rules.filter(|(_, rule)| matches!(rule.kind, RuleKind::Optimization | RuleKind::Warning))
    };
    let of_kind = |kind: RuleKind| count(told().filter(|(_, rule)| rule.kind == kind).count());
    let (optimizations, warnings) = (of_kind(RuleKind::Optimization), of_kind(RuleKind::Warning));
    if optimizations + warnings == 0 {
        return Verdict::Quiet;
    }
    let messages = by_rule(told());
    let most = messages.first().map_or(0.0, |(_, first)| first.most_percent);
    let rows = messages.iter().take(facts.rows).map(|(name, of)| Evidence {
        what: format!(
            "estimate of {name}{}, {} of {}",
            if of.is_of_launch { "" } else { " (of what it looks at)" },
            counted(of.launches, "launch", "launches"),
            short(of.kernel)
        ),
        value: Cell::from((of.most_percent > 0.0).then_some(of.most_percent)),
        unit: Unit::Percent,
        place: None,
    });
    let found = FindingDraft::new(format!(
        "The rules of Nsight Compute left {} and {} on {}. Words and estimates are NVIDIA's; each launch was replayed alone.",
        counted(optimizations, "suggestion", "suggestions"),
        counted(warnings, "warning", "warnings"),
        counted(count(profiles.len()), "launch", "launches"),
    ))
    .severity(if most >= flopwatch_model::approximate(SPEEDUP.value.into()) {
        Severity::Medium
    } else {
        Severity::Low
    })
    .confidence(Confidence::Medium)
    .at(rows);
    let actions = messages.iter().take(facts.rows);
    let found = actions.fold(found, |found, (name, of)| {
        found.do_this(format!("{name} ({}): {}", short(of.kernel), plain(of.text)))
    });
    found.into()
}

/// Messages by the name of their rule, those with the largest estimate for a whole launch first.
fn by_rule<'a>(told: impl Iterator<Item = (&'a KernelProfile, &'a RuleResult)>) -> Vec<(String, Messages<'a>)> {
    let mut found: BTreeMap<String, Messages<'a>> = BTreeMap::new();
    for (profile, rule) in told {
        let name = if rule.title.is_empty() {
            rule.name.clone()
        } else {
            format!("{}: {}", rule.name, rule.title)
        };
        let percent = rule.speedup.map_or(0.0, |speedup| speedup.percent);
        let one = Messages {
            launches: 1,
            most_percent: percent,
            is_of_launch: rule.speedup.is_none_or(|speedup| speedup.scope != Scope::Local),
            kernel: &profile.name,
            text: &rule.text,
        };
        match found.get_mut(&name) {
            Some(known) if percent > known.most_percent => {
                let launches = known.launches + 1;
                *known = Messages { launches, ..one };
            }
            Some(known) => known.launches += 1,
            None => {
                found.insert(name, one);
            }
        }
    }
    let mut messages: Vec<(String, Messages<'a>)> = found.into_iter().collect();
    messages.sort_by(|(_, one), (_, other)| {
        let by_scope = other.is_of_launch.cmp(&one.is_of_launch);
        other.most_percent.total_cmp(&one.most_percent).then(by_scope)
    });
    messages
}

#[cfg(test)]
mod tests {
    use flopwatch_model::Speedup;

    use super::*;

    /// A report with a launch for each message.
    pub(super) fn report(messages: &[(RuleKind, f64)]) -> flopwatch_model::Timeline {
        let mut timeline = flopwatch_model::Timeline::default();
        timeline.capture.profiles = messages
            .iter()
            .map(|(kind, percent)| KernelProfile {
                name: "saxpy(int)".to_owned(),
                rules: vec![RuleResult {
                    name: "Achieved Occupancy".to_owned(),
                    kind: *kind,
                    text: "See the @section:Occupancy:Occupancy@ section.".to_owned(),
                    speedup: (*percent > 0.0).then_some(Speedup {
                        percent: *percent,
                        scope: Scope::Global,
                    }),
                    ..RuleResult::default()
                }],
                ..KernelProfile::default()
            })
            .collect();
        timeline
    }

    #[test]
    fn messages_are_relayed_in_nvidias_words_with_the_largest_estimate() {
        let timeline = report(&[
            (RuleKind::Optimization, 12.0),
            (RuleKind::Optimization, 30.0),
            (RuleKind::Warning, 0.0),
            (RuleKind::Information, 50.0),
        ]);
        let found = evaluate(&Facts::of(&timeline, 5)).found();
        let told = "2 suggestions and 1 warning on 4 launches";
        assert!(found.sentence.contains(told), "{}", found.sentence);
        assert_eq!(found.evidence.len(), 1);
        assert_eq!(
            found.evidence[0].what,
            "estimate of Achieved Occupancy, 3 launches of saxpy"
        );
        assert_eq!(found.evidence[0].value, Cell::from(30.0));
        assert_eq!(
            found.actions,
            ["Achieved Occupancy (saxpy): See the Occupancy section."]
        );
        assert_eq!(found.severity, Some(Severity::Medium));
    }

    #[test]
    fn a_report_without_messages_says_how_to_get_them() {
        let mut timeline = report(&[(RuleKind::Warning, 0.0)]);
        timeline.capture.profiles[0].rules.clear();
        let verdict = evaluate(&Facts::of(&timeline, 5));
        assert!(
            matches!(&verdict, Verdict::Abstains(reason) if reason.contains("--set full")),
            "{verdict:?}"
        );
    }
}
