//! The parts of a timeline that an analysis reads, so that a caller need not read the rest of the
//! file.

use crate::{Category, ColumnId};

/// A subset of a closed set, such as of all categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection<T: 'static> {
    /// Every member.
    All,
    /// The listed members; none where the list is empty.
    Only(&'static [T]),
}

impl<T: PartialEq> Selection<T> {
    /// Whether `member` is in the subset.
    pub fn contains(self, member: &T) -> bool {
        match self {
            Self::All => true,
            Self::Only(members) => members.contains(member),
        }
    }
}

/// Parts of a timeline. A part that was not asked for is empty in the [`crate::Timeline`] that an
/// analysis is given: the vectors of a column, the names of a category, the list of rows.
///
/// Always there: the identifier, source, window, losses and captured categories; of each selected
/// category start, length, and (where [`Needs::rows`] or [`Needs::names`] ask for them) the indices
/// that refer to rows and names.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a part of its own that is read or not"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Categories whose events are read.
    pub categories: Selection<Category>,
    /// Columns beside those of every category that are read.
    pub columns: Selection<ColumnId>,
    /// Whether names of events are read.
    pub names: bool,
    /// Whether details of names are read: short forms and mangled symbols.
    pub name_details: bool,
    /// Whether rows (threads and streams) are read, and each event's index into them.
    pub rows: bool,
    /// Whether lanes of events are read.
    pub lanes: bool,
    /// Whether correlation ids of events are read.
    pub correlations: bool,
    /// Whether sampled series are read.
    pub counters: bool,
    /// Whether allocations and releases of memory are read.
    pub allocations: bool,
    /// Whether compiled programs (HLO modules) are read.
    pub programs: bool,
    /// Whether a kernel profiler's metrics per launch are read.
    pub profiles: bool,
    /// Whether profiles of samples by stack (pprof) are read.
    pub stacks: bool,
    /// Whether call stacks are read to which samples of the CPU refer.
    pub call_stacks: bool,
}

impl Needs {
    /// No part beyond those that are always there, and no events.
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

    /// Every part of a timeline, except levels of detail and figures, which no analysis reads.
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

    /// Events of these categories, with what is always there of them.
    pub const fn of(categories: &'static [Category]) -> Self {
        Self::NOTHING.only(categories)
    }

    /// Events of these categories in place of the others.
    #[must_use]
    pub const fn only(self, categories: &'static [Category]) -> Self {
        Self {
            categories: Selection::Only(categories),
            ..self
        }
    }

    /// These columns beside those of every category.
    #[must_use]
    pub const fn columns(self, columns: &'static [ColumnId]) -> Self {
        Self {
            columns: Selection::Only(columns),
            ..self
        }
    }

    /// Names of events too.
    #[must_use]
    pub const fn names(self) -> Self {
        Self { names: true, ..self }
    }

    /// Details of names too: short forms and mangled symbols.
    #[must_use]
    pub const fn name_details(self) -> Self {
        Self {
            name_details: true,
            ..self
        }
    }

    /// Rows too, and each event's index into them.
    #[must_use]
    pub const fn rows(self) -> Self {
        Self { rows: true, ..self }
    }

    /// Correlation ids of events too.
    #[must_use]
    pub const fn correlations(self) -> Self {
        Self {
            correlations: true,
            ..self
        }
    }

    /// Sampled series too.
    #[must_use]
    pub const fn counters(self) -> Self {
        Self { counters: true, ..self }
    }

    /// Allocations and releases of memory too.
    #[must_use]
    pub const fn allocations(self) -> Self {
        Self {
            allocations: true,
            ..self
        }
    }

    /// Compiled programs (HLO modules) too.
    #[must_use]
    pub const fn programs(self) -> Self {
        Self { programs: true, ..self }
    }

    /// A kernel profiler's metrics per launch too.
    #[must_use]
    pub const fn profiles(self) -> Self {
        Self { profiles: true, ..self }
    }

    /// Profiles of samples by stack (pprof) too.
    #[must_use]
    pub const fn stacks(self) -> Self {
        Self { stacks: true, ..self }
    }

    /// Call stacks too, to which samples of the CPU refer.
    #[must_use]
    pub const fn call_stacks(self) -> Self {
        Self {
            call_stacks: true,
            ..self
        }
    }
}
