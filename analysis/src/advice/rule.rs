//! What a rule of advice is.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;
use flopwatch_report::{NotCaptured, looks_inside};

use super::facts::Facts;
use super::finding::{Area, FindingDraft};

/// A rule of advice. Each is in a file of `rules/` and a line of [`super::rules::ALL`].
#[derive(Debug)]
pub(crate) struct Rule {
    /// Name of the rule, in kebab case.
    pub(crate) id: &'static str,
    /// Subject of the rule, in a few words.
    pub(crate) title: &'static str,
    /// Part of the work that the rule is about.
    pub(crate) area: Area,
    /// Of each list at least one category must have been recorded; otherwise the rule abstains. One
    /// that names kernels and no whole graphs looks at what kernels do: its rule abstains too where
    /// graphs hide many.
    pub(crate) needs: &'static [&'static [Category]],
    /// Whether it looks at GPU work, and so abstains where there is none, and where the times of
    /// much of it cannot be.
    pub(crate) of_gpu_work: bool,
    /// Numbers from which on the rule fires.
    pub(crate) thresholds: &'static [Threshold],
    /// Looks at a capture that has what [`Rule::needs`] names.
    pub(crate) evaluate: fn(&Facts<'_>) -> Verdict,
    /// A capture on which it must fire, and one on which it must look and find nothing.
    #[cfg(test)]
    pub(crate) captures: [fn() -> flopwatch_model::Timeline; 2],
}

/// A number from which on a rule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threshold {
    /// What is compared with it.
    pub(crate) what: &'static str,
    /// The number, in `unit`.
    pub(crate) value: u64,
    /// Unit of the threshold.
    pub(crate) unit: Unit,
    /// Source of the number, or the reason for it, in words.
    pub(crate) source: &'static str,
}

impl Threshold {
    /// A share in percent.
    pub(crate) const fn percent(what: &'static str, value: u64, source: &'static str) -> Self {
        Self::new(what, value, Unit::Percent, source)
    }

    /// A length of time in ns.
    pub(crate) const fn ns(what: &'static str, value: u64, source: &'static str) -> Self {
        Self::new(what, value, Unit::Ns, source)
    }

    /// A number of things.
    pub(crate) const fn count(what: &'static str, value: u64, source: &'static str) -> Self {
        Self::new(what, value, Unit::None, source)
    }

    /// A number in any unit.
    pub(crate) const fn new(what: &'static str, value: u64, unit: Unit, source: &'static str) -> Self {
        Self {
            what,
            value,
            unit,
            source,
        }
    }

    /// Whether `part` is at least this many percent of `whole`; never of nothing.
    pub(crate) fn reached(self, part: u64, whole: u64) -> bool {
        part > 0 && u128::from(part) * 100 >= u128::from(self.value) * u128::from(whole)
    }

    /// Whether `part` is at least half as much as [`Threshold::reached`] asks for.
    fn half_reached(self, part: u64, whole: u64) -> bool {
        self.reached(part.saturating_mul(2), whole)
    }
}

/// What a rule says of a capture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// The rule found something.
    Fires(Box<FindingDraft>),
    /// The rule found nothing.
    Quiet,
    /// The rule found less than it fires on, but half of that or more.
    Near(Shortfall),
    /// The rule could not look, for the reason that is given.
    Abstains(String),
}

/// A part of the window that is below a rule's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shortfall {
    /// The threshold, a share of the window.
    pub(crate) threshold: Threshold,
    /// The part of the window, in ns.
    pub(crate) part_ns: u64,
}

impl Verdict {
    /// Of `part_ns` of a window of `window_ns`, which do not reach `threshold`: near to it, or
    /// nothing.
    pub(crate) fn below(threshold: Threshold, part_ns: u64, window_ns: u64) -> Self {
        if threshold.half_reached(part_ns, window_ns) {
            Self::Near(Shortfall { threshold, part_ns })
        } else {
            Self::Quiet
        }
    }

    /// What a rule found that must fire.
    #[cfg(test)]
    pub(crate) fn found(self) -> FindingDraft {
        match self {
            Self::Fires(found) => *found,
            verdict => panic!("it must fire: {verdict:?}"),
        }
    }

    /// Abstains for that reason.
    pub(crate) fn abstain(reason: impl Into<String>) -> Self {
        Self::Abstains(reason.into())
    }
}

impl From<FindingDraft> for Verdict {
    fn from(found: FindingDraft) -> Self {
        Self::Fires(Box::new(found))
    }
}

/// What `rule` says of a capture that may lack what it needs.
pub(super) fn judge(rule: &Rule, facts: &Facts<'_>) -> Verdict {
    let capture = &facts.timeline.capture;
    let is_recorded = |category: &Category| capture.captured.contains(category);
    for categories in rule.needs {
        let lacks = !categories.iter().any(is_recorded) || (facts.kernels_are_hidden && looks_inside(categories));
        let reason = NotCaptured::unless_any(capture, categories, rule.title);
        if let Some(lacking) = reason.filter(|_| lacks) {
            return Verdict::Abstains(lacking.reason);
        }
    }
    if rule.of_gpu_work && facts.gpus.is_empty() {
        return Verdict::abstain("the capture holds no work of a GPU with streams");
    }
    if rule.of_gpu_work
        && let Some(reason) = facts.impossible_times()
    {
        return Verdict::Abstains(reason);
    }
    (rule.evaluate)(facts)
}
