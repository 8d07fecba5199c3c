//! One counter out of the [text format of
//! Prometheus](https://prometheus.io/docs/instrumenting/exposition_formats/).
//!
//! The parser of crates.io for it (prometheus-parse 0.2) knows no names with a colon, such as
//! vLLM's, and takes labels apart at each comma.

use flopwatch_api::overhead::PrometheusSignal;

/// Most series of the counter that are added up.
const MAX_SERIES: usize = 10_000;

/// Why a text has no such counter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpositionError {
    /// No series has the name and the labels.
    #[error("no series is called {counter} and has the labels of the session")]
    Absent {
        /// Name of the counter.
        counter: String,
    },
    /// A line of it cannot be read.
    #[error("a series of {counter} cannot be read")]
    Broken {
        /// Name of the counter.
        counter: String,
    },
    /// The counter's value is negative, infinite or not a number.
    #[error("{counter} is no counter: it has the value {value}")]
    NoCounter {
        /// Name of the counter.
        counter: String,
        /// Value of the counter.
        value: f64,
    },
}

/// The counter's value: the sum over the series that have the labels, in whole units.
pub(super) fn value(text: &[u8], signal: &PrometheusSignal) -> Result<u64, ExpositionError> {
    let counter = signal.counter.as_str();
    let text = String::from_utf8_lossy(text);
    let own = text.lines().filter_map(|line| line.trim_start().strip_prefix(counter));
    let own = own.filter(|rest| rest.starts_with(['{', ' ', '\t']));
    let mut sum = None;
    for rest in own.take(MAX_SERIES) {
        let series = Series::parse(rest).ok_or_else(|| ExpositionError::Broken {
            counter: counter.to_owned(),
        })?;
        let has = |(name, value): (&String, &String)| {
            let mut labels = series.labels.iter();
            labels.any(|(own, of)| own == name && of == value)
        };
        if !signal.labels.iter().all(has) {
            continue;
        }
        let value = series.value;
        if !value.is_finite() || value < 0.0 {
            let counter = counter.to_owned();
            return Err(ExpositionError::NoCounter { counter, value });
        }
        sum = Some(sum.unwrap_or(0.0) + value);
    }
    sum.map(whole).ok_or_else(|| ExpositionError::Absent {
        counter: counter.to_owned(),
    })
}

/// What stands behind a series' name.
struct Series<'a> {
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Series<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut rest = text.trim_start();
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside.trim_start();
            while !rest.starts_with('}') {
                let (name, value) = rest.split_once('=')?;
                let (value, after) = quoted(value.trim_start())?;
                labels.push((name.trim(), value));
                rest = after.trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            rest = rest.strip_prefix('}')?;
        }
        // A time in ms may follow, and in OpenMetrics an exemplar.
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Self { labels, value })
    }
}

/// A text in quotation marks, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, inside.get(at + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// The whole units of a value that is not negative.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; there is no other conversion from a float"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PAGE: &str = "# HELP steps_total Steps.\n# TYPE steps_total counter\n\
        steps_total{model=\"a\",rank=\"0\"} 10\nsteps_total{model=\"b, \\\"quoted\\\" }\",rank=\"1\",} 32.5 1700000000000\n\
        steps_total_created 1.7e9\nplain 7\nbroken{ 1\nvllm:tokens_total{engine = \"0\"} 1.5e3 # {} 1\nnan_total NaN\n\
        # TYPE latency histogram\nlatency_bucket{le=\"1\"} 3\nlatency_bucket{le=\"+Inf\"} 4\nlatency_sum 9\nlatency_count 4\n";

    fn read(counter: &str, labels: &[(&str, &str)]) -> Result<u64, String> {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let signal = PrometheusSignal {
            port: 80,
            path: "/metrics".to_owned(),
            counter: counter.to_owned(),
            labels,
            baseline_seconds: 10,
        };
        value(PAGE.as_bytes(), &signal).map_err(|error| error.to_string())
    }

    #[test]
    fn series_that_have_the_labels_are_added_up_and_others_are_not() {
        assert_eq!(read("steps_total", &[]), Ok(42));
        assert_eq!(read("steps_total", &[("rank", "0")]), Ok(10));
        assert_eq!(read("steps_total", &[("model", "b, \"quoted\" }")]), Ok(32));
        assert_eq!(read("plain", &[]), Ok(7));
        assert_eq!(read("vllm:tokens_total", &[("engine", "0")]), Ok(1500));
        assert_eq!(read("latency_count", &[]), Ok(4), "what a histogram counted");
    }

    #[test]
    fn what_is_absent_broken_or_no_number_is_told() {
        for (counter, labels, why) in [
            ("steps", &[][..], "no series"),
            ("steps_total", &[("rank", "7")][..], "no series"),
            ("nan_total", &[][..], "NaN"),
            ("broken", &[][..], "cannot be read"),
        ] {
            let error = read(counter, labels).unwrap_err();
            assert!(error.contains(why), "{counter}: {error}");
        }
        let signal = PrometheusSignal {
            port: 80,
            path: "/".to_owned(),
            counter: "x".to_owned(),
            labels: BTreeMap::new(),
            baseline_seconds: 10,
        };
        assert!(value(&[0xff, 0xfe, b'\n', b'x'], &signal).is_err());
    }
}
