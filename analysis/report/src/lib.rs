//! What a result is as people read it: a [`Page`] of figures, tables, charts and sentences, and
//! the [`Format`]s it is written in.
//!
//! An analysis makes a page of its result, or has one made of its type's schema ([`Tabular`]); the
//! terminal, HTML, CSV and the viewer show that page. The crate depends on the event model alone
//! and knows no analysis and no measure.

mod format;
mod not_captured;
pub mod page;
mod tabular;

pub use format::Format;
pub use not_captured::{NotCaptured, looks_inside};
pub use page::Page;
pub use tabular::{CellType, Column, Tabular, page_of};
