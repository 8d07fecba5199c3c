//! The captures that an analysis is made of.

use flopwatch_model::{Timeline, Totals};

/// One capture.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What was read of it: at least the analysis's [`flopwatch_model::Needs`].
    pub timeline: &'a Timeline,
    /// Counts of the whole capture, read or not.
    pub totals: Totals,
}

impl<'a> Input<'a> {
    /// A timeline that was read whole.
    pub fn whole(timeline: &'a Timeline) -> Self {
        let totals = Totals::of(timeline);
        Self { timeline, totals }
    }
}

/// The captures of one run, in the order in which they were named. Their number was checked against
/// [`crate::InputCount`].
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    first: Input<'a>,
    all: &'a [Input<'a>],
}

impl<'a> Inputs<'a> {
    /// These; `None` of none.
    pub(crate) fn new(all: &'a [Input<'a>]) -> Option<Self> {
        let first = *all.first()?;
        Some(Self { first, all })
    }

    /// The first, or only, capture.
    pub fn first(&self) -> &'a Timeline {
        self.first.timeline
    }

    /// The second capture of an analysis of two; the first where there is no other.
    pub fn second(&self) -> &'a Timeline {
        self.all.get(1).unwrap_or(&self.first).timeline
    }

    /// All of them.
    pub fn all(&self) -> &'a [Input<'a>] {
        self.all
    }

    pub(crate) fn first_input(&self) -> Input<'a> {
        self.first
    }
}
