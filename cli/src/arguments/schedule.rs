//! Schedules on the command line.

use std::str::FromStr;

use clap::Args;

use crate::arguments::FormatArguments;
use crate::arguments::names::named;

/// Which schedules to list, or what to do about one.
#[derive(Debug, Args)]
pub struct ScheduleArguments {
    /// The schedule: NAME or profilingschedule/NAME; default: a list of them
    #[arg(value_name = "SCHEDULE")]
    pub schedule: Option<ScheduleName>,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with = "schedule")]
    pub all_namespaces: bool,
    /// With these labels, such as team=infra
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "schedule")]
    pub selector: Option<String>,
    /// Make no more sessions; those that were made go on
    #[arg(long, requires = "schedule", conflicts_with = "resume")]
    pub suspend: bool,
    /// Make sessions again; what passed meanwhile is not caught up
    #[arg(long, requires = "schedule")]
    pub resume: bool,
    /// How many of the next runs to tell
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub runs: u16,
    /// How they are printed.
    #[command(flatten)]
    pub format: FormatArguments,
}

/// Name of a schedule, as `NAME` or `profilingschedule/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleName(pub String);

impl FromStr for ScheduleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = [
            "profilingschedule",
            "profilingschedules",
            "psched",
            "schedule",
            "profilingschedule.flopwatch.dev",
            "profilingschedules.flopwatch.dev",
        ];
        named(text, &kinds).map(Self)
    }
}
