//! How a result is written: as the artifact that programs read, or as a page that people read.

use std::fmt::{self, Display};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// How a result is written. [`Format::Json`] is every result's own form; the others are made of its
/// [`crate::Page`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The artifact: JSON of the result's type, or the file for another program as it is.
    #[default]
    Json,
    /// JSON of [`crate::page::Document`]: the page, what it was made by and of what.
    Page,
    /// The same as one HTML file, which opens from a disk and asks for nothing.
    Html,
    /// The page's tables as CSV (RFC 4180), with exact numbers.
    Csv,
    /// The page for a terminal.
    Text,
}

impl Format {
    /// Raised whenever a page may be written in another way; kept results of others are never
    /// served.
    pub const VERSION: u32 = 3;
    /// Name of the parameter that a query names it by; no analysis has a parameter of this name.
    pub const PARAMETER: &'static str = "format";
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Json, Self::Page, Self::Html, Self::Csv, Self::Text];

    /// Name of the format in queries and on command lines.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Media type of a page that is written so; `None` of the result itself, whose definition knows
    /// it.
    pub const fn media_type(self) -> Option<&'static str> {
        match self {
            Self::Json => None,
            Self::Page => Some("application/vnd.flopwatch.page+json"),
            Self::Html => Some("text/html; charset=utf-8"),
            Self::Csv => Some("text/csv; charset=utf-8"),
            Self::Text => Some("text/plain; charset=utf-8"),
        }
    }

    /// Ending of a file of it.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Page => "page.json",
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Text => "txt",
        }
    }
}

impl Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
