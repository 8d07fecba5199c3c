//! The advice on a capture as an analysis: [`crate::advice`] does the work.

mod text;

use flopwatch_model::{Needs, Selection};
use flopwatch_report::page::{Page, Table, Tile, Unit};
use flopwatch_report::{Layout, NotCaptured};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{self, Advice, Finding, Limits, Outcome, RuleThreshold};
use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// What makes a capture slow, why, and what to do.
#[derive(Debug)]
pub struct AdviceAnalysis;

/// Parameters of [`AdviceAnalysis`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdviceParams {
    /// Most findings, those that are worth most.
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// Most places in the timeline per finding.
    #[schemars(range(min = 1, max = 100))]
    pub places: u32,
}

impl Default for AdviceParams {
    fn default() -> Self {
        Self { limit: 50, places: 5 }
    }
}

impl Analysis for AdviceAnalysis {
    const NAME: &'static str = "advice";
    const VERSION: u32 = 7;
    const ABOUT: &'static str = "What makes the capture slow, why, what mending it is worth, and what to do.";
    const TITLE: &'static str = "Advice";
    const GROUP: Group = Group::Advice;
    const NEEDS: Needs = Needs {
        categories: Selection::All,
        columns: Selection::All,
        names: true,
        rows: true,
        correlations: true,
        counters: true,
        allocations: true,
        profiles: true,
        ..Needs::NOTHING
    };
    type Params = AdviceParams;
    type Output = Advice;

    fn run(inputs: &Inputs<'_>, params: &AdviceParams) -> Result<Advice, AnalysisError> {
        let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let limits = Limits {
            findings: size(params.limit),
            evidence: size(params.places),
        };
        Ok(advice::of(inputs.first(), limits))
    }

    /// The severity of the gravest finding; `none` without any.
    fn verdict(output: &Advice) -> Option<&'static str> {
        let gravest = output.findings.iter().map(|finding| finding.severity).max();
        Some(gravest.map_or("none", advice::Severity::as_str))
    }

    fn text(output: &Advice, layout: Layout) -> Result<String, AnalysisError> {
        Ok(text::render(output, layout))
    }

    fn page(output: &Advice) -> Result<Page, AnalysisError> {
        let mut page = Page::new(Self::TITLE, Self::ABOUT);
        let high = output
            .findings
            .iter()
            .filter(|finding| finding.severity == advice::Severity::High);
        let quiet = output.rules.iter().filter(|rule| rule.outcome == Outcome::Quiet);
        page.tiles([
            Tile::new("Findings", output.findings.len()),
            Tile::new("Of high severity", high.count()),
            Tile::new("Rules that found nothing", quiet.count()),
            Tile::new("Topics that were not checked", output.not_captured.len()),
            Tile::new("GPUs", output.gpus),
            Tile::figure("Window", Unit::Ns, (output.gpus > 0).then_some(output.window_ns)),
        ]);
        page.table(overview(output));
        for finding in &output.findings {
            detail(&mut page, finding);
        }
        page.table_unless_empty(not_checked(output));
        page.table_unless_empty(near_misses(output));
        page.table(rules(output));
        Ok(page)
    }
}

/// A row for each reason why something was not looked at: it stands behind what was found.
fn not_checked(output: &Advice) -> Table {
    let reasons = by_reason(&output.not_captured);
    Table::of("Not checked", &reasons)
        .about("That says nothing about whether there is something to find.")
        .folded()
        .column("Topics", |lacking| lacking.what.as_str())
        .column("Why", |lacking| lacking.reason.as_str())
        .build()
}

/// What was not looked at, a line per reason.
fn by_reason(all: &[NotCaptured]) -> Vec<NotCaptured> {
    let mut reasons: Vec<NotCaptured> = Vec::new();
    for lacking in all {
        match reasons.iter_mut().find(|known| known.reason == lacking.reason) {
            Some(known) => {
                known.what.push_str("; ");
                known.what.push_str(&lacking.what);
            }
            None => reasons.push(lacking.clone()),
        }
    }
    reasons
}

/// A row per finding.
fn overview(output: &Advice) -> impl Into<Table> {
    Table::of("Findings", &output.findings)
        .about("Gains overlap where findings have one cause: they are no sum.")
        .left_out(output.findings_left_out)
        .column("Finding", |finding| finding.title.as_str())
        .column("Severity", |finding| finding.severity.as_str())
        .column("Confidence", |finding| finding.confidence.as_str())
        .figure("Estimated gain", Unit::Ns, |finding| {
            finding.gain.as_ref().map(|gain| gain.gain_ns)
        })
        .figure("Of the window", Unit::Ratio, |finding| {
            finding.gain.as_ref().map(|gain| gain.window_share_ratio)
        })
        .column("What was found", |finding| finding.sentence.as_str())
        .column("Do this first", |finding| finding.actions.first().map(String::as_str))
        .at(|finding| finding.evidence.iter().find_map(|evidence| evidence.place))
}

/// What one finding says in full.
fn detail(page: &mut Page, finding: &Finding) {
    let mut text = finding.sentence.clone();
    if let Some(gain) = &finding.gain {
        text.push_str(" The estimate assumes: ");
        text.push_str(&gain.assumption);
        text.push('.');
    }
    for action in &finding.actions {
        text.push_str("\n• ");
        text.push_str(action);
    }
    page.text(&finding.title, text);
    // Evidence has figures of several units: a table per unit, so that each is shown in its own.
    let mut units: Vec<Unit> = Vec::new();
    for evidence in &finding.evidence {
        if !units.contains(&evidence.unit) {
            units.push(evidence.unit);
        }
    }
    for unit in units {
        let of_unit = finding.evidence.iter().filter(|evidence| evidence.unit == unit);
        page.table(
            Table::of("", of_unit)
                .column("Evidence", |evidence| evidence.what.as_str())
                .figure("Value", unit, |evidence| evidence.value.clone())
                .at(|evidence| evidence.place),
        );
    }
}

/// What is just below the rules' thresholds.
fn near_misses(output: &Advice) -> impl Into<Table> {
    Table::of("Just below the rules' thresholds", &output.near_misses)
        .column("Rule", |near| near.rule.as_str())
        .figure("Time", Unit::Ns, |near| near.time_ns)
        .figure("Of the window", Unit::Ratio, |near| near.window_share_ratio)
        .figure("The rule fires from", Unit::Percent, |near| near.threshold_percent)
        .column("What was measured", |near| near.sentence.as_str())
}

/// What came of each rule, and from where on it fires.
fn rules(output: &Advice) -> impl Into<Table> {
    Table::of("Rules", &output.rules)
        .folded()
        .column("Rule", |rule| rule.rule.as_str())
        .column("About", |rule| rule.area.as_str())
        .column("Outcome", |rule| match rule.outcome {
            Outcome::Fired => "fired",
            Outcome::Quiet => "found nothing",
            Outcome::Abstained => "not checked",
        })
        .column("Reason", |rule| rule.reason.as_str())
        .column("Thresholds", |rule| {
            let thresholds: Vec<String> = rule.thresholds.iter().map(threshold).collect();
            thresholds.join("; ")
        })
}

/// A threshold with its unit and source.
fn threshold(threshold: &RuleThreshold) -> String {
    let unit = match threshold.unit {
        Unit::Percent => " %",
        Unit::Ns | Unit::Instant => " ns",
        Unit::Bytes => " bytes",
        _ => "",
    };
    format!("{}: {}{unit} ({})", threshold.what, threshold.value, threshold.source)
}
