//! What a rule of advice is.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;
use flopwatch_report::{NotCaptured, looks_inside};

use super::facts::Facts;
use super::finding::{Area, Found};

/// What a rule says of itself.
#[derive(Debug)]
pub(crate) struct About {
    /// Its name, in kebab case.
    pub(crate) id: &'static str,
    /// What it is about, in a few words.
    pub(crate) title: &'static str,
    /// Which part of the work it is about.
    pub(crate) area: Area,
    /// Of each list at least one category must have been recorded; otherwise the rule abstains. One
    /// that names kernels and no whole graphs looks at what kernels do: its rule abstains too where
    /// graphs hide many.
    pub(crate) needs: &'static [&'static [Category]],
    /// Whether it looks at GPU work, and so abstains where there is none, and where the times of
    /// much of it cannot be.
    pub(crate) of_gpu_work: bool,
    /// From where on it fires.
    pub(crate) thresholds: &'static [Threshold],
}

/// A number from which on a rule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threshold {
    /// What is compared with it.
    pub(crate) what: &'static str,
    /// The number, in `unit`.
    pub(crate) value: u64,
    /// Its unit.
    pub(crate) unit: Unit,
    /// Where it comes from.
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
}

/// What a rule says of a capture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// It found something.
    Fires(Box<Found>),
    /// It found nothing.
    Quiet,
    /// It could not look, and why.
    Abstains(String),
}

impl Verdict {
    /// Abstains for that reason.
    pub(crate) fn abstain(reason: impl Into<String>) -> Self {
        Self::Abstains(reason.into())
    }
}

impl From<Found> for Verdict {
    fn from(found: Found) -> Self {
        Self::Fires(Box::new(found))
    }
}

/// A rule of advice. Each is in a file of `rules/` and a line of [`super::rules::ALL`].
pub(crate) trait Rule: Sync {
    /// What it says of itself.
    fn about(&self) -> &'static About;

    /// Looks at a capture that has what [`About::needs`] names.
    fn evaluate(&self, facts: &Facts<'_>) -> Verdict;

    /// A capture on which it must fire.
    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline;

    /// A capture on which it must look and find nothing.
    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline;
}

/// What `rule` says of a capture that may lack what it needs.
pub(super) fn judge(rule: &dyn Rule, facts: &Facts<'_>) -> Verdict {
    let about = rule.about();
    let capture = &facts.timeline.capture;
    let is_recorded = |category: &Category| capture.captured.contains(category);
    for categories in about.needs {
        let lacks = !categories.iter().any(is_recorded) || (facts.kernels_are_hidden && looks_inside(categories));
        let reason = NotCaptured::unless_any(capture, categories, about.title);
        if let Some(lacking) = reason.filter(|_| lacks) {
            return Verdict::Abstains(lacking.reason);
        }
    }
    if about.of_gpu_work && facts.gpus.is_empty() {
        return Verdict::abstain("the capture holds no work of a GPU with streams");
    }
    if about.of_gpu_work
        && let Some(reason) = facts.impossible_times()
    {
        return Verdict::Abstains(reason);
    }
    rule.evaluate(facts)
}
