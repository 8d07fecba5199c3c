//! The catalogue from outside: what its clients find, results of captures made by hand, and pages.

mod analyses;
mod catalogue;
mod page;
