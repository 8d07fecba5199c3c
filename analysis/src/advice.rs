//! Advice: what makes a capture slow, why, and what to do about it.
//!
//! A `Rule` looks at `Facts`, which are computed once, and either fires with a `FindingDraft`,
//! keeps quiet, or abstains with the reason where the capture lacks what it needs. What fires is
//! ranked by the time that it is worth. Every threshold has its source beside it, and every
//! estimate its assumption.

mod facts;
mod finding;
mod rule;
mod rules;
#[cfg(test)]
mod scene;
mod topic;
mod wording;

use flopwatch_model::{Timeline, approximate, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Unit;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use facts::Facts;
use finding::FindingDraft;
use rule::{Rule, Shortfall, Threshold, Verdict};
use topic::topic_of;
use wording::{capitalized, share, time};

pub use finding::{Area, Confidence, Evidence, Finding, Gain, Severity};
pub(crate) use wording::count;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most findings.
    pub findings: usize,
    /// Most rows of evidence per finding.
    pub evidence: usize,
}

/// The findings of a capture, the one that is worth most first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// Start of the window that shares are of, in ns since the session's start: the start of the
    /// first GPU work.
    pub window_start_ns: u64,
    /// Length of that window in ns, up to the end of the last GPU work; 0 where there is none.
    pub window_ns: u64,
    /// GPUs that worked. Times of several are means over them.
    pub gpus: u64,
    /// What was found. Gains overlap where findings have one cause: they are no sum.
    pub findings: Vec<Finding>,
    /// Findings that were left out behind these.
    pub findings_left_out: u64,
    /// Parts of the window that are below the thresholds of rules that found nothing, but half of
    /// them or more; the longest first.
    pub near_misses: Vec<NearMiss>,
    /// Every rule, in the order of the catalogue, with what came of it and its thresholds.
    pub rules: Vec<RuleOutcome>,
    /// Topics that were not looked at, because the capture lacks what it takes.
    pub not_captured: Vec<NotCaptured>,
}

/// A part of the window that is below the threshold of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NearMiss {
    /// The rule that measured it.
    pub rule: String,
    /// What was measured and from where on the rule fires, as a sentence.
    pub sentence: String,
    /// Length of the part in ns; with several GPUs the mean over them.
    pub time_ns: u64,
    /// Its share of the window, from 0 to 1.
    pub window_share_ratio: f64,
    /// From which share on the rule fires, in percent.
    pub threshold_percent: u64,
}

/// What came of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RuleOutcome {
    /// The rule.
    pub rule: String,
    /// What it is about.
    pub title: String,
    /// Which part of the work it is about.
    pub area: Area,
    /// Whether it fired.
    pub outcome: Outcome,
    /// Why it abstained; empty otherwise.
    pub reason: String,
    /// From where on it fires.
    pub thresholds: Vec<RuleThreshold>,
}

/// Whether a rule fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did: there is a finding.
    Fired,
    /// It looked and found nothing.
    Quiet,
    /// It could not look.
    Abstained,
}

/// A threshold of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RuleThreshold {
    /// What is compared.
    pub what: String,
    /// With what, in `unit`.
    pub value: u64,
    /// The unit of the value.
    pub unit: Unit,
    /// Where the threshold comes from.
    pub source: String,
}

/// The advice on `timeline`. Needs what [`crate::analyses::advice::AdviceAnalysis`] names.
pub fn of(timeline: &Timeline, limits: Limits) -> Advice {
    let facts = Facts::of(timeline, limits.evidence);
    let mut advice = Advice {
        window_start_ns: facts.window.start,
        window_ns: facts.window.len(),
        gpus: u64::try_from(facts.gpus.len()).unwrap_or(u64::MAX),
        findings: Vec::new(),
        findings_left_out: 0,
        near_misses: Vec::new(),
        rules: Vec::new(),
        not_captured: Vec::new(),
    };
    let verdicts: Vec<Verdict> = rules::ALL.par_iter().map(|rule| rule::judge(rule, &facts)).collect();
    for (rule, verdict) in rules::ALL.iter().zip(verdicts) {
        let (outcome, reason) = match verdict {
            Verdict::Fires(found) => {
                advice.findings.push(finding(rule, *found, &facts));
                (Outcome::Fired, String::new())
            }
            Verdict::Quiet => (Outcome::Quiet, String::new()),
            Verdict::Near(shortfall) => {
                advice.near_misses.push(near_miss(rule, shortfall, &facts));
                (Outcome::Quiet, String::new())
            }
            Verdict::Abstains(reason) => {
                let lacking = NotCaptured::new(topic_of(rule), reason.clone());
                advice.not_captured.push(lacking);
                (Outcome::Abstained, reason)
            }
        };
        advice.rules.push(RuleOutcome {
            rule: rule.id.to_owned(),
            title: rule.title.to_owned(),
            area: rule.area,
            outcome,
            reason,
            thresholds: rule.thresholds.iter().map(threshold).collect(),
        });
    }
    // What makes other figures doubtful comes first, before all that the file was cut, then what is
    // worth most. The sort is stable: equals keep the catalogue's order.
    let is_cut = facts.ends_early();
    advice.findings.sort_by_key(|finding| {
        let says_cut = is_cut && finding.rule == rules::EVENTS_LOST;
        let doubt = finding.area == Area::Capture && finding.severity == Severity::High;
        let gain = finding.gain.as_ref().map_or(0, |gain| gain.gain_ns);
        std::cmp::Reverse((says_cut, doubt, gain, finding.severity))
    });
    advice.near_misses.sort_by_key(|near| std::cmp::Reverse(near.time_ns));
    let left_out = advice.findings.len().saturating_sub(limits.findings);
    advice.findings_left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
    advice.findings.truncate(limits.findings);
    advice
}

fn finding(rule: &Rule, found: FindingDraft, facts: &Facts<'_>) -> Finding {
    let share = |gain_ns: u64| match facts.window.len() {
        0 => 0.0,
        window => approximate(gain_ns.into()) / approximate(window.into()),
    };
    let gain = found.gain.map(|(gain_ns, assumption)| Gain {
        gain_ns,
        window_share_ratio: share(gain_ns),
        assumption,
    });
    let worth = gain.as_ref().map(|gain| Severity::of_share(gain.window_share_ratio));
    // Of a file that was cut nobody knows what would stand in its gaps.
    let is_doubtful = rule.area != Area::Capture && facts.ends_early();
    Finding {
        rule: rule.id.to_owned(),
        title: found.title.unwrap_or_else(|| rule.title.to_owned()),
        area: rule.area,
        severity: found.severity.or(worth).unwrap_or(Severity::Low),
        confidence: if is_doubtful { Confidence::Low } else { found.confidence },
        sentence: found.sentence,
        gain,
        actions: found.actions,
        evidence: found.evidence,
    }
}

fn near_miss(rule: &Rule, shortfall: Shortfall, facts: &Facts<'_>) -> NearMiss {
    let Shortfall { threshold, part_ns } = shortfall;
    let window_ns = facts.window.len();
    NearMiss {
        rule: rule.id.to_owned(),
        sentence: format!(
            "{}: {} ({}), below the rule's {} %.",
            capitalized(threshold.what),
            share(part_ns, window_ns),
            time(part_ns),
            threshold.value
        ),
        time_ns: part_ns,
        window_share_ratio: ratio(part_ns, window_ns).unwrap_or(0.0),
        threshold_percent: threshold.value,
    }
}

fn threshold(threshold: &Threshold) -> RuleThreshold {
    RuleThreshold {
        what: threshold.what.to_owned(),
        value: threshold.value,
        unit: threshold.unit,
        source: threshold.source.to_owned(),
    }
}
