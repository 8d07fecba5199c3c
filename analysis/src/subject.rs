//! What a capture has to hold so that an analysis has something to tell of it.
//!
//! It follows from what the analysis reads: one thing of that is enough. Only where the subject is
//! beside the events, as compiled programs are, events alone do not count.

use flopwatch_model::{Capture, Category, Needs, Selection, gpu_work_and};
use flopwatch_report::page::category::label;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::definition::Definition;
use crate::group::Group;

/// A part of a timeline beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Allocations and releases of memory.
    Allocations,
    /// Sampled series.
    Counters,
    /// Compiled programs.
    Programs,
    /// Launches that a kernel profiler measured.
    Profiles,
    /// Samples by stack.
    Stacks,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 5] = [
        Self::Allocations,
        Self::Counters,
        Self::Programs,
        Self::Profiles,
        Self::Stacks,
    ];

    /// Name of the part's group in a timeline file.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The part for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Allocations => "allocations of memory",
            Self::Counters => "sampled series",
            Self::Programs => "compiled programs (JAX, XLA)",
            Self::Profiles => "launches that Nsight Compute measured",
            Self::Stacks => "a profile of pprof",
        }
    }

    /// Whether a capture that was read whole holds something of the part.
    pub fn is_held(self, capture: &Capture) -> bool {
        match self {
            Self::Allocations => !capture.allocations.is_empty(),
            Self::Counters => !capture.counters.is_empty(),
            Self::Programs => !capture.programs.is_empty(),
            Self::Profiles => !capture.profiles.is_empty(),
            Self::Stacks => capture.stacks.is_some(),
        }
    }

    const fn is_read(self, needs: &Needs) -> bool {
        match self {
            Self::Allocations => needs.allocations,
            Self::Counters => needs.counters,
            Self::Programs => needs.programs,
            Self::Profiles => needs.profiles,
            Self::Stacks => needs.stacks,
        }
    }
}

/// Most kinds that words name.
const MAX_WORDS: usize = 3;

/// What an analysis is about: it has nothing to tell of a capture that holds none of this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Categories of events; `None` are all, and so every capture has something.
    pub categories: Option<Vec<Category>>,
    /// Parts beside the events.
    pub parts: Vec<Part>,
}

impl Subject {
    /// The subject of `definition`.
    pub fn of(definition: &Definition) -> Self {
        let needs = &definition.needs;
        let parts: Vec<Part> = Part::ALL.into_iter().filter(|part| part.is_read(needs)).collect();
        let is_beside_events =
            matches!(definition.group, Group::Memory | Group::Programs | Group::Kernels) && !parts.is_empty();
        let counts = |category: &Category| !is_beside_events || *category == Category::DeviceOp;
        let categories = match needs.categories {
            Selection::All => None,
            Selection::Only(read) => Some(read.iter().copied().filter(counts).collect()),
        };
        Self { categories, parts }
    }

    /// Whether a capture with these categories of events and these parts has something of it.
    pub fn is_in(&self, categories: &[Category], parts: &[Part]) -> bool {
        let has_events = |wanted: &Vec<Category>| wanted.iter().any(|category| categories.contains(category));
        self.categories.as_ref().is_none_or(has_events) || self.parts.iter().any(|part| parts.contains(part))
    }

    /// The subject in words: `GPU work, CUDA API calls or NVTX ranges`, of more the first two and
    /// that there are others; empty where every capture has something of it.
    pub fn words(&self) -> String {
        let Some(categories) = &self.categories else {
            return String::new();
        };
        let gpu_work: &[Category] = gpu_work_and![];
        let is_gpu_work = gpu_work.iter().all(|work| categories.contains(work));
        let others = categories
            .iter()
            .filter(|category| !is_gpu_work || !category.is_gpu_work());
        let mut words: Vec<&str> = self
            .parts
            .iter()
            .map(|part| part.label())
            .chain(is_gpu_work.then_some("GPU work"))
            .chain(others.map(|category| kind(*category)))
            .collect();
        words.dedup();
        if words.len() > MAX_WORDS {
            words.truncate(MAX_WORDS - 1);
            words.push("other events");
        }
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            Some((last, _)) => (*last).to_owned(),
            None => String::new(),
        }
    }
}

/// The kind of events of a category; all copies are one.
fn kind(category: Category) -> &'static str {
    if Category::MEMCPY.contains(&category) {
        "copies"
    } else {
        label(category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{CATALOGUE, find};

    fn subject(name: &str) -> Subject {
        Subject::of(find(name).unwrap())
    }

    #[test]
    fn words_name_gpu_work_as_one_and_parts_first() {
        assert_eq!(subject("gpu-time").words(), "GPU work");
        assert_eq!(subject("osrt_sum").words(), "operating system calls");
        assert_eq!(subject("utilization").words(), "sampled series or GPU work");
        assert_eq!(subject("kernels-per-stream").words(), "kernels or whole CUDA graphs");
        assert_eq!(
            subject("cuda_gpu_mem_time_sum").words(),
            "copies, memsets or migrations of unified memory"
        );
        assert_eq!(subject("host-sync").words(), "GPU work, CUDA API calls or other events");
    }

    #[test]
    fn events_do_not_stand_for_what_is_beside_them() {
        assert_eq!(subject("roofline").words(), "launches that Nsight Compute measured");
        assert_eq!(subject("hlo-graph").words(), "compiled programs (JAX, XLA)");
        assert_eq!(subject("memory").categories, Some(Vec::new()));
        assert_eq!(subject("memory-profile").parts, [Part::Stacks]);
        let profiled = subject("profiled-in-timeline");
        assert_eq!(
            (profiled.categories, profiled.parts),
            (Some(Vec::new()), vec![Part::Profiles])
        );
    }

    #[test]
    fn every_capture_has_something_for_what_reads_all_events() {
        for name in ["advice", "summary", "events"] {
            assert_eq!(
                (subject(name).categories, subject(name).words().as_str()),
                (None, ""),
                "{name}"
            );
        }
    }

    #[test]
    fn one_category_or_one_part_is_enough() {
        let utilization = subject("utilization");
        assert!(utilization.is_in(&[], &[Part::Counters]) && utilization.is_in(&[Category::CudaKernel], &[]));
        assert!(!utilization.is_in(&[Category::NvtxRange], &[Part::Stacks]));
        assert!(subject("summary").is_in(&[], &[]));
        let mut capture = Capture::default();
        assert!(!Part::ALL.iter().any(|part| part.is_held(&capture)));
        capture.stacks = Some(flopwatch_model::StackProfile::default());
        assert!(Part::Stacks.is_held(&capture));
    }

    #[test]
    fn every_analysis_has_a_subject() {
        for definition in CATALOGUE {
            let Subject { categories, parts } = Subject::of(definition);
            let has_events = categories.is_none_or(|categories| !categories.is_empty());
            assert!(has_events || !parts.is_empty(), "{}", definition.name);
        }
    }
}
