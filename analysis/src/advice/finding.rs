//! What a rule found.

use flopwatch_measures::iteration::Iterations;
use flopwatch_report::page::{Cell, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

/// Which part of the work a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// The capture itself: what its figures can say.
    Capture,
    /// When the GPU has nothing to do.
    Idle,
    /// What the host does meanwhile.
    Host,
    /// Kernels.
    Kernels,
    /// Copies and sets of memory.
    Transfers,
    /// Collectives and other exchange between GPUs.
    Communication,
    /// Iterations of the loop.
    Iterations,
    /// Memory of the GPU.
    Memory,
    /// Compilation by the framework.
    Compilation,
}

impl Area {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Idle => "idle GPU",
            Self::Host => "host",
            Self::Kernels => "kernels",
            Self::Transfers => "transfers",
            Self::Communication => "communication",
            Self::Iterations => "iterations",
            Self::Memory => "memory",
            Self::Compilation => "compilation",
        }
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth less than 3 % of the window, or only to know.
    Low,
    /// Worth from 3 % of the window.
    Medium,
    /// Worth from 10 % of the window, or other figures are wrong because of it.
    High,
}

impl Severity {
    /// Every severity, the least first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The severity of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.as_str() == name)
    }

    /// By the share of the window that a finding is worth.
    pub fn of_share(share: f64) -> Self {
        match share {
            share if share >= 0.10 => Self::High,
            share if share >= 0.03 => Self::Medium,
            _ => Self::Low,
        }
    }

    /// Name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How sure it is that the cause is what the finding says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Told by names or by what happens at the same time.
    Low,
    /// Measured, but the cause may be another.
    Medium,
    /// Measured, and the cause is recorded.
    High,
}

impl Confidence {
    /// Name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What is slow, why, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The rule that found it.
    pub rule: String,
    /// What it is, in a few words.
    pub title: String,
    /// Which part of the work it is about.
    pub area: Area,
    /// How much it matters: by the gain where one is estimated.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// What was found, with its figures.
    pub sentence: String,
    /// What mending it is worth; null where nothing honest can be said.
    pub gain: Option<Gain>,
    /// What to do, the likeliest remedy first.
    pub actions: Vec<String>,
    /// The figures that it rests on, some with a place in the timeline.
    pub evidence: Vec<Evidence>,
}

/// What mending something is worth.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gain {
    /// Wall time in ns within the window; with several GPUs the mean over them.
    pub gain_ns: u64,
    /// Its share of the window, from 0 to 1.
    pub window_share_ratio: f64,
    /// What must hold for it.
    pub assumption: String,
}

/// A figure that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// What the figure measures, in a few words.
    pub what: String,
    /// Value of the figure.
    pub value: Cell,
    /// How the value is shown.
    pub unit: Unit,
    /// Where it is in the timeline.
    pub place: Option<TimelineLocation>,
}

/// A finding as a rule returns it: a [`Finding`] without the fields that follow from the rule and
/// from the window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FindingDraft {
    /// What it is in a few words, where that differs from the rule's title.
    pub(super) title: Option<String>,
    pub(super) sentence: String,
    pub(super) gain: Option<(u64, String)>,
    pub(super) severity: Option<Severity>,
    pub(super) confidence: Confidence,
    pub(super) actions: Vec<String>,
    pub(super) evidence: Vec<Evidence>,
}

impl FindingDraft {
    /// Something that is worth knowing, of [`Severity::Low`] and [`Confidence::High`].
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self {
            title: None,
            sentence: sentence.into(),
            gain: None,
            severity: None,
            confidence: Confidence::High,
            actions: Vec::new(),
            evidence: Vec::new(),
        }
    }

    /// What it is, in place of the rule's title.
    #[must_use]
    pub(super) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Mending it is worth so much wall time in ns, if `assumption` holds.
    #[must_use]
    pub(super) fn worth(mut self, gain_ns: u64, assumption: impl Into<String>) -> Self {
        self.gain = Some((gain_ns, assumption.into()));
        self
    }

    /// Where the gain does not say how much it matters.
    #[must_use]
    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// How sure it is.
    #[must_use]
    pub(super) fn confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    /// It is about these iterations: what may be wrong with them goes behind its sentence, and
    /// where they may be parts of an iteration nothing of it is sure.
    #[must_use]
    pub(super) fn on(mut self, iterations: &Iterations) -> Self {
        for caution in &iterations.cautions {
            self.sentence.push(' ');
            self.sentence.push_str(caution);
        }
        if iterations.may_be_parts() {
            self.confidence = Confidence::Low;
        }
        self
    }

    /// What to do.
    #[must_use]
    pub(super) fn do_this(mut self, action: impl Into<String>) -> Self {
        self.actions.push(action.into());
        self
    }

    /// Adds a figure that the finding rests on.
    #[must_use]
    pub(super) fn evidence(mut self, what: impl Into<String>, value: impl Into<Cell>, unit: Unit) -> Self {
        self.evidence.push(Evidence {
            what: what.into(),
            value: value.into(),
            unit,
            place: None,
        });
        self
    }

    /// Adds figures that the finding rests on, each at its place in the timeline.
    #[must_use]
    pub(super) fn at(mut self, rows: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(rows);
        self
    }
}
