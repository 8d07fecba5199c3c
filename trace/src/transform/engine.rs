//! The interface between the transform and the device that runs its heavy steps.
//!
//! # What an engine does
//!
//! For every category, from its columns `start_ns`, `duration_ns`, `row` and `name` (all of one
//! length N < 2^32, rows and names already in their published numbering):
//!
//! 1. **Order.** The permutation that sorts by start, then by length with the longest first, then
//!    by row; events that are equal in all three stay in the order of the input, which is that of
//!    the source: of operators of one time the outer one comes first there, and nothing else tells
//!    it from the inner one. The four columns come back sorted.
//! 2. **Lanes.** All events of a row, of whichever category, take lanes together, in the order of
//!    start, then length with the longest first, then category, then position in the sorted
//!    category. Each takes the lowest lane of its row that is free at its start; a lane is free at
//!    `t` when no event in it ends after `t`. Ends saturate at `u64::MAX`. Where no earlier event
//!    of the row ends after an event's start, all lanes are free and the count starts afresh, so
//!    that the stretches between such events can be done independently of each other.
//! 3. **Levels of detail**, per category, from the lanes too; see [`super::lod`] for the rule and
//!    [`flopwatch_model::LodLevel`] for the columns.
//! 4. **Figures**, per category and name: [`flopwatch_model::Figures`] of the lengths.
//!
//! All of it is integer arithmetic with one right answer, so that any engine gives the same bytes
//! as [`super::Cpu`], which is the definition where this text leaves doubt.

use std::collections::BTreeMap;

use flopwatch_model::{Category, Figures, Lod};

/// The columns that the heavy steps need, of one category. Ids are plain numbers here, the words
/// that devices sort and gather.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Starts in ns.
    pub start_ns: Vec<u64>,
    /// Lengths in ns.
    pub duration_ns: Vec<u64>,
    /// Rows, each below [`Input::rows`].
    pub row: Vec<u32>,
    /// Names, each below `names`.
    pub name: Vec<u32>,
    /// How many names there are.
    pub names: u32,
}

/// What an engine is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    /// The categories that hold events, each at least one.
    pub categories: BTreeMap<Category, Columns>,
    /// How many rows there are.
    pub rows: u32,
}

/// What an engine makes of one category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CategoryOutput {
    /// The columns, sorted.
    pub columns: Columns,
    /// Where each event was before; `None` when the input was sorted already.
    pub order: Option<Vec<u32>>,
    /// The lane of each event.
    pub lane: Vec<u32>,
    /// Levels of detail.
    pub lod: Lod,
    /// Figures of the lengths, one per name.
    pub figures: Vec<Figures>,
}

/// What an engine gives back: every category of the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Sorted events by category.
    pub categories: BTreeMap<Category, CategoryOutput>,
}

/// A machine that does the heavy steps. One that cannot (no device, no memory) does them with
/// [`super::Cpu`] and says so through an interface of its own: the result is the same.
pub trait Engine: Sync {
    /// Does all four steps.
    fn run(&self, input: Input) -> Output;
}
