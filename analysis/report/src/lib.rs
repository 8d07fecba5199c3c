//! Results as people read them: a [`Page`] of figures, tables, charts and sentences, and the
//! formats in which a page is written.
//!
//! An analysis makes a [`Page`] of its result, or has one made from the schema of the result's type
//! ([`Tabular`], [`page_of`]). The page is written in one of the [`Format`]s: the terminal, the
//! self-contained HTML file, CSV and the viewer all show the same page, so that a figure is the
//! same wherever it is read. [`NotCaptured`] says which part of a result is missing, and why.
//!
//! Invariants:
//!
//! - Names in a capture are untrusted: HTML is escaped, and a terminal gets no control characters.
//! - A text fits the [`Layout`] that it is written on; on a pipe or to a file nothing is shortened.
//! - Cells hold exact values; only what people read is rounded.
//! - The crate depends on the event model alone; it knows no analysis and no measure.
//!
//! ```
//! use flopwatch_report::page::{Cell, Page, Table, Unit};
//!
//! let mut table = Table::new("Kernels", &[("Kernel", Unit::None), ("Time", Unit::Ns)]);
//! table.push([Cell::from("gemm"), Cell::from(1_500_u64)]);
//! let mut page = Page::new("Time of kernels", "Time per name of a kernel.");
//! page.table(table);
//! ```

mod format;
mod layout;
mod not_captured;
pub mod page;
mod tabular;

pub use format::Format;
pub use layout::{Layout, Tone};
pub use not_captured::{NotCaptured, looks_inside};
pub use page::Page;
pub use tabular::{CellType, Column, Tabular, page_of};
