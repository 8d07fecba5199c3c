//! The advice on a capture as an analysis: [`crate::advice`] does the work.

mod text;

use flopwatch_model::{Needs, Selection};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Cell, Page, Table, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{self, Advice, Finding, Limits, Outcome};
use crate::definition::{Analysis, AnalysisError, InputCount};
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
    const VERSION: u32 = 4;
    const ABOUT: &'static str = "What makes the capture slow, why, what mending it is worth, and what to do.";
    const GROUP: Group = Group::Advice;
    const INPUTS: InputCount = InputCount::One;
    const NEEDS: Needs = Needs {
        categories: Selection::All,
        columns: Selection::All,
        names: true,
        rows: true,
        correlations: true,
        counters: true,
        allocations: true,
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

    fn text(output: &Advice) -> Result<String, AnalysisError> {
        Ok(text::render(output))
    }

    fn page(output: &Advice) -> Result<Page, AnalysisError> {
        let mut page = Page::new("Advice", Self::ABOUT);
        page.not_captured = by_reason(&output.not_captured);
        let high = output
            .findings
            .iter()
            .filter(|finding| finding.severity == advice::Severity::High);
        let quiet = output.rules.iter().filter(|rule| rule.outcome == Outcome::Quiet);
        page.tiles([
            ("Findings", Cell::from(output.findings.len()), Unit::None),
            ("Of high severity", Cell::from(high.count()), Unit::None),
            ("Rules that found nothing", Cell::from(quiet.count()), Unit::None),
            (
                "Rules that could not look",
                Cell::from(output.not_captured.len()),
                Unit::None,
            ),
            ("GPUs", Cell::from(output.gpus), Unit::None),
            (
                "Window",
                Cell::from((output.gpus > 0).then_some(output.window_ns)),
                Unit::Ns,
            ),
        ]);
        page.table(overview(output));
        for finding in &output.findings {
            detail(&mut page, finding);
        }
        page.table(rules(output));
        Ok(page)
    }
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
fn overview(output: &Advice) -> Table {
    let mut table = Table::new(
        "Findings",
        &[
            ("Finding", Unit::None),
            ("Severity", Unit::None),
            ("Confidence", Unit::None),
            ("Estimated gain", Unit::Ns),
            ("Of the window", Unit::Ratio),
            ("What was found", Unit::None),
            ("Do this first", Unit::None),
        ],
    );
    "Gains overlap where findings have one cause: they are no sum.".clone_into(&mut table.about);
    table.left_out = output.findings_left_out;
    for finding in &output.findings {
        let gain = finding.gain.as_ref();
        let cells = [
            Cell::from(finding.title.as_str()),
            Cell::from(finding.severity.as_str()),
            Cell::from(finding.confidence.as_str()),
            Cell::from(gain.map(|gain| gain.gain_ns)),
            Cell::from(gain.map(|gain| gain.window_share_ratio)),
            Cell::from(finding.sentence.as_str()),
            Cell::from(finding.actions.first().map(String::as_str)),
        ];
        match finding.evidence.iter().find_map(|evidence| evidence.place) {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    table
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
        let mut table = Table::new("", &[("Evidence", Unit::None), ("Value", unit)]);
        for evidence in finding.evidence.iter().filter(|evidence| evidence.unit == unit) {
            let cells = [Cell::from(evidence.what.as_str()), evidence.value.clone()];
            match evidence.place {
                Some(place) => table.push_at(place, cells),
                None => table.push(cells),
            }
        }
        page.table(table);
    }
}

/// What came of each rule, and from where on it fires.
fn rules(output: &Advice) -> Table {
    let mut table = Table::new(
        "Rules",
        &[
            ("Rule", Unit::None),
            ("About", Unit::None),
            ("Outcome", Unit::None),
            ("Reason", Unit::None),
            ("Thresholds", Unit::None),
        ],
    );
    for rule in &output.rules {
        let outcome = match rule.outcome {
            Outcome::Fired => "fired",
            Outcome::Quiet => "found nothing",
            Outcome::Abstained => "could not look",
        };
        let thresholds = rule.thresholds.iter().map(|threshold| {
            let unit = match threshold.unit {
                Unit::Percent => " %",
                Unit::Ns | Unit::Instant => " ns",
                Unit::Bytes => " bytes",
                _ => "",
            };
            format!("{}: {}{unit} ({})", threshold.what, threshold.value, threshold.source)
        });
        let thresholds: Vec<String> = thresholds.collect();
        table.push([
            Cell::from(rule.rule.as_str()),
            Cell::from(rule.area.as_str()),
            Cell::from(outcome),
            Cell::from(rule.reason.as_str()),
            Cell::from(thresholds.join("; ")),
        ]);
    }
    table
}
