//! Reading foreign SQLite files with bounds: plain tables by column name, strings within a budget,
//! all within a deadline.

mod database;
mod slabs;
mod table;
mod texts;

pub(crate) use database::{Database, OpenError};
pub(crate) use table::{Cell, Table};
pub(crate) use texts::Texts;
