//! What an analysis reads of a timeline, so that whoever opens the file reads no more.

use crate::{Category, ColumnId};

/// Some members of a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection<T: 'static> {
    /// Every member.
    All,
    /// These; none where the list is empty.
    Only(&'static [T]),
}

impl<T: PartialEq> Selection<T> {
    /// Whether `member` is one of them.
    pub fn contains(self, member: &T) -> bool {
        match self {
            Self::All => true,
            Self::Only(members) => members.contains(member),
        }
    }
}

/// Parts of a timeline. A part that was not asked for is empty in the [`crate::Timeline`] that an analysis is given: the vectors of a
/// column, the names of a category, the list of rows.
///
/// Always there: the identifier, source, window, drops and captured categories; of each selected category start, length, and (where
/// [`Needs::rows`] or [`Needs::names`] ask for them) the indices that refer to rows and names.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a part of its own that is read or not"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Categories whose events are read.
    pub categories: Selection<Category>,
    /// Columns that only some categories have.
    pub columns: Selection<ColumnId>,
    /// Names of the events.
    pub names: bool,
    /// What is known of names beside themselves.
    pub name_details: bool,
    /// Rows, and the events' index into them.
    pub rows: bool,
    /// Lanes of the events.
    pub lanes: bool,
    /// Correlation ids of the events.
    pub correlations: bool,
    /// Sampled series.
    pub counters: bool,
    /// What allocators of memory did.
    pub allocations: bool,
    /// Compiled programs.
    pub programs: bool,
    /// Counters per profiled kernel launch.
    pub profiles: bool,
    /// Samples by stack.
    pub stacks: bool,
    /// Stacks of calls that samples of the CPU refer to.
    pub call_stacks: bool,
}

impl Needs {
    /// What is in every timeline, and no events.
    pub const NOTHING: Self = Self {
        categories: Selection::Only(&[]),
        columns: Selection::Only(&[]),
        names: false,
        name_details: false,
        rows: false,
        lanes: false,
        correlations: false,
        counters: false,
        allocations: false,
        programs: false,
        profiles: false,
        stacks: false,
        call_stacks: false,
    };

    /// All that a timeline holds, but its levels of detail and figures, which no analysis reads.
    pub const EVERYTHING: Self = Self {
        categories: Selection::All,
        columns: Selection::All,
        names: true,
        name_details: true,
        rows: true,
        lanes: true,
        correlations: true,
        counters: true,
        allocations: true,
        programs: true,
        profiles: true,
        stacks: true,
        call_stacks: true,
    };
}
