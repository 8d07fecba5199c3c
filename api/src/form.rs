//! Forms of a capture's timeline for other programs, made on demand. The names are an agreement of agent, gateway and clients.

/// Name of the timeline file among a capture's artifacts: every form is made of it.
pub const TIMELINE: &str = "timeline.h5";

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// A line per event (RFC 4180).
    EventsCsv,
    /// The same table in columns.
    EventsParquet,
    /// A line per sample of a series.
    SamplesCsv,
    /// The same table in columns.
    SamplesParquet,
    /// JSON of chrome://tracing, compressed.
    Chrome,
    /// Protobuf of Perfetto.
    Perfetto,
    /// The earliest events as JSON.
    EventsJson,
    /// Counters of launches that a kernel profiler measured, as JSON.
    Kernels,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 8] = [
        Self::EventsCsv,
        Self::EventsParquet,
        Self::SamplesCsv,
        Self::SamplesParquet,
        Self::Chrome,
        Self::Perfetto,
        Self::EventsJson,
        Self::Kernels,
    ];

    /// Its name beside the names of artifacts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventsCsv => "timeline.csv",
            Self::EventsParquet => "timeline.parquet",
            Self::SamplesCsv => "samples.csv",
            Self::SamplesParquet => "samples.parquet",
            Self::Chrome => "timeline.json.gz",
            Self::Perfetto => "timeline.pftrace",
            Self::EventsJson => "events.json",
            Self::Kernels => "kernels.json",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Media type for HTTP. The Chrome trace is a compressed file and no compressed transfer: a client gets what it stores.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::EventsCsv | Self::SamplesCsv => "text/csv; charset=utf-8",
            Self::EventsParquet | Self::SamplesParquet => "application/vnd.apache.parquet",
            Self::Chrome => "application/gzip",
            Self::Perfetto => "application/vnd.perfetto.trace",
            Self::EventsJson | Self::Kernels => "application/json",
        }
    }

    /// What it is, in a sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Self::EventsCsv => "Every event of the timeline, a line each (RFC 4180).",
            Self::EventsParquet => "Every event of the timeline, in columns.",
            Self::SamplesCsv => "Every sample of the timeline's series, a line each (RFC 4180).",
            Self::SamplesParquet => "Every sample of the timeline's series, in columns.",
            Self::Chrome => "The timeline as JSON of chrome://tracing, compressed with gzip.",
            Self::Perfetto => "The timeline as protobuf of Perfetto.",
            Self::EventsJson => "The earliest 100,000 events as JSON.",
            Self::Kernels => {
                "Counters of launches that a kernel profiler measured, as JSON, where the capture has any."
            }
        }
    }

    /// Whether a form of so many bytes says that the capture holds nothing that it would show. Other forms of nothing are whole files.
    pub const fn is_absent(self, bytes: i64) -> bool {
        matches!(self, Self::Kernels) && bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_found_by_its_name_and_none_is_named_like_an_artifact() {
        for form in Form::ALL {
            assert_eq!(Form::from_name(form.name()), Some(form));
            assert!(!["timeline.h5", "summary.json", "capture.nsys-rep"].contains(&form.name()));
        }
        assert_eq!(Form::from_name("timeline.xml"), None);
    }
}
