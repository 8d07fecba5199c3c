//! Arguments of `kubectl flopwatch` that choose the profiler of a session, and the options of
//! Nsight Compute.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use flopwatch_api::profiler::{MAX_LAUNCHES, NcuOptions, NcuSet, ProfilerType};

/// Parser of the argument `--profiler`: one of the words of [`ProfilerType::ALL`].
pub(super) fn profiler() -> impl TypedValueParser<Value = ProfilerType> {
    let values = ProfilerType::ALL.map(|profiler| PossibleValue::new(profiler.word()).help(profiler.about()));
    PossibleValuesParser::new(values).try_map(|word| ProfilerType::from_word(&word).ok_or("there is no such profiler"))
}

/// The sets of Nsight Compute by their words, with what each collects of a launch.
const SETS: [(&str, NcuSet, &str); 4] = [
    ("basic", NcuSet::Basic, "Speed of light, launch statistics, occupancy"),
    (
        "detailed",
        NcuSet::Detailed,
        "Beside it memory and compute workload, and counters per line of source",
    ),
    ("full", NcuSet::Full, "Everything"),
    ("roofline", NcuSet::Roofline, "Speed of light and the rooflines"),
];

/// Parser of the argument `--ncu-set`.
fn ncu_set() -> impl TypedValueParser<Value = NcuSet> {
    let values = SETS.map(|(word, _, about)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values).try_map(|given| {
        let set = SETS.into_iter().find(|(word, ..)| *word == given);
        set.map(|(_, set, _)| set).ok_or("there is no such set")
    })
}

/// Options of Nsight Compute; one that is given needs `--profiler ncu`, which the API server
/// checks.
#[derive(Debug, Default, Args)]
pub struct NcuArguments {
    /// What Nsight Compute collects of each launch; default: basic
    #[arg(long = "ncu-set", value_parser = ncu_set(), value_name = "SET")]
    pub set: Option<NcuSet>,
    /// Kernels that Nsight Compute profiles, by a regular expression of their functions' names
    #[arg(long, value_name = "REGEX", conflicts_with = "top_kernels_of")]
    pub kernel: Option<String>,
    /// Profile the kernels that took the longest in this session, which has ended
    #[arg(long, value_name = "SESSION")]
    pub top_kernels_of: Option<String>,
    /// Launches that Nsight Compute profiles at most; default: 10
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=i64::from(MAX_LAUNCHES)))]
    pub launches: Option<i32>,
}

impl NcuArguments {
    /// The options with their defaults; none where no argument is given.
    pub fn options(&self) -> Option<NcuOptions> {
        let is_any_given =
            self.set.is_some() || self.kernel.is_some() || self.top_kernels_of.is_some() || self.launches.is_some();
        let default = NcuOptions::default();
        is_any_given.then(|| NcuOptions {
            set: self.set.unwrap_or(default.set),
            kernel_regex: self.kernel.clone(),
            top_kernels_of: self.top_kernels_of.clone(),
            launch_count: self.launches.unwrap_or(default.launch_count),
            ..default
        })
    }
}
