//! What an open window has recorded so far, for one line of a terminal.

use std::cmp::Reverse;

use flopwatch_api::capture::{CategoryCount, LiveFigures};
use flopwatch_report::page::figure::shown;
use flopwatch_report::page::names::apart;
use flopwatch_report::page::{Cell, Unit};

use crate::print::line;

/// Categories that are told: those with the most events.
const MAX_CATEGORIES: usize = 3;
/// Kernels that are told.
const MAX_KERNELS: usize = 2;
/// Longest name of a kernel, in characters.
const MAX_NAME_CHARS: usize = 40;

/// What a window has recorded so far; empty where that is nothing.
pub(crate) fn words(live: &LiveFigures) -> String {
    let mut categories: Vec<&CategoryCount> = live.categories.iter().filter(|one| one.events > 0).collect();
    categories.sort_by_key(|one| Reverse(one.events));
    let counts = categories.iter().take(MAX_CATEGORIES).map(|one| {
        let events = shown(&Cell::Integer(one.events), Unit::Count);
        format!("{} {events}", line(&one.category))
    });
    let kernels = || live.latest_kernels.iter().take(MAX_KERNELS);
    let names: Vec<&str> = kernels().map(|kernel| kernel.name.as_str()).collect();
    let latest = apart(&names, MAX_NAME_CHARS).into_iter().zip(kernels());
    let latest = latest.map(|(name, kernel)| {
        let time = shown(&Cell::Integer(kernel.total_nanoseconds), Unit::Ns);
        format!("{name} {time}")
    });
    let (counts, latest): (Vec<String>, Vec<String>) = (counts.collect(), latest.collect());
    match (counts.is_empty(), latest.is_empty()) {
        (true, _) => String::new(),
        (false, true) => counts.join(", "),
        (false, false) => format!("{}; latest {}", counts.join(", "), latest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::capture::KernelTime;

    use super::*;

    fn live(categories: &[(&str, i64)], kernels: &[(&str, i64)]) -> LiveFigures {
        let count = |(category, events): &(&str, i64)| CategoryCount {
            category: (*category).to_owned(),
            events: *events,
        };
        let kernel = |(name, total_nanoseconds): &(&str, i64)| KernelTime {
            name: (*name).to_owned(),
            total_nanoseconds: *total_nanoseconds,
            calls: 1,
        };
        LiveFigures {
            categories: categories.iter().map(count).collect(),
            latest_kernels: kernels.iter().map(kernel).collect(),
        }
    }

    #[test]
    fn the_most_events_and_the_longest_kernels_fit_into_a_line() {
        let categories = [
            ("cuda_api", 4_500),
            ("cuda_graph", 0),
            ("cuda_kernel", 12_340_000),
            ("cuda_memset", 1),
            ("cuda_sync", 362),
        ];
        let kernels = [("at::native::gemm", 612_000_000), ("relu", 1_500), ("softmax", 9)];
        assert_eq!(
            words(&live(&categories, &kernels)),
            "cuda_kernel 12.34 M, cuda_api 4.50 k, cuda_sync 362; latest at::native::gemm 612.00 ms, relu 1.50 µs"
        );
    }

    #[test]
    fn a_window_without_an_event_says_nothing_and_one_without_a_kernel_counts() {
        assert_eq!(words(&LiveFigures::default()), "");
        assert_eq!(words(&live(&[("cuda_api", 0)], &[])), "");
        assert_eq!(words(&live(&[("cuda_api", 2)], &[])), "cuda_api 2");
    }

    #[test]
    fn whatever_a_program_calls_its_kernels_the_line_stays_one_and_short() {
        let long = "k".repeat(256);
        let told = words(&live(&[("cuda_kernel", 2)], &[("a\u{1b}[2J\nb", 5), (&long, 4)]));
        assert!(!told.chars().any(char::is_control), "{told:?}");
        assert!(told.chars().count() < 120, "{told}");
    }
}
