//! What a window has recorded while it is open: events of each category since it began, and the
//! kernels that took the longest of late.
//!
//! Records and names come of the programs of a container, and are counted in the process that
//! drains, not in a child of it: a record takes constant time, kernels that are told apart and the
//! text of a name are bounded, and no name is demangled. A timeline has the whole names.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flopwatch_model::Category;
use flopwatch_tracer_file::Name;
use flopwatch_tracer_file::record::{KernelRun, Record};
use hashbrown::HashMap;

use super::Failure;
use super::fill::kind_of_copy;
use crate::demangle;
use crate::redact::redact;

/// Kernels that are told apart between two tallies; events of others are counted, and these are
/// never among the longest.
const MAX_KERNELS: usize = 4096;
/// Kernels that a tally names.
const TOP_KERNELS: usize = 5;
/// Longest name of one, in characters.
const MAX_NAME_CHARS: usize = 256;
/// What a kernel is called whose name the file does not have.
const UNNAMED: &str = "[unnamed kernel]";

/// What a window has recorded so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Events of each category since the window began.
    pub events: BTreeMap<Category, u64>,
    /// The five kernels with the longest total time, that one first, of those that came between
    /// the last two tallies between which any came.
    pub latest_kernels: Vec<LatestKernel>,
}

/// A kernel that ran of late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatestKernel {
    /// Its name as a line of text has room for it: of a symbol of C++ the path of the function.
    pub name: String,
    /// Launches.
    pub calls: u64,
    /// Time of these together, in ns.
    pub total_ns: u64,
}

/// What is counted as records come.
#[derive(Debug, Default)]
pub(super) struct Counting {
    events: BTreeMap<Category, u64>,
    /// Kernels since the last tally, by the number of their name.
    kernels: HashMap<u32, Sum>,
    latest_kernels: Vec<LatestKernel>,
}

/// Launches of one kernel.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    calls: u64,
    total_ns: u64,
}

impl Counting {
    /// Counts a record.
    pub(super) fn add(&mut self, record: &Record) {
        let Some(category) = category(record) else { return };
        let events = self.events.entry(category).or_default();
        *events = events.saturating_add(1);
        if let Record::Kernel(kernel) = record {
            self.add_kernel(&kernel.run);
        }
    }

    fn add_kernel(&mut self, run: &KernelRun) {
        if self.kernels.len() >= MAX_KERNELS && !self.kernels.contains_key(&run.name) {
            return;
        }
        let sum = self.kernels.entry(run.name).or_default();
        sum.calls = sum.calls.saturating_add(1);
        sum.total_ns = sum.total_ns.saturating_add(run.end_ns.saturating_sub(run.start_ns));
    }

    /// What is counted, with the kernels since the last tally. `name_of` gives the name of a
    /// number, fit to be published.
    ///
    /// # Errors
    ///
    /// When a name cannot be read.
    pub(super) fn tally(&mut self, mut name_of: impl FnMut(u32) -> Result<String, Failure>) -> Result<Tally, Failure> {
        let mut kernels: Vec<(u32, Sum)> = self.kernels.drain().collect();
        kernels.sort_unstable_by_key(|(number, sum)| (Reverse(sum.total_ns), *number));
        kernels.truncate(TOP_KERNELS);
        if !kernels.is_empty() {
            let named = kernels
                .into_iter()
                .map(|(number, sum)| -> Result<LatestKernel, Failure> {
                    Ok(LatestKernel {
                        name: name_of(number)?,
                        calls: sum.calls,
                        total_ns: sum.total_ns,
                    })
                });
            self.latest_kernels = named.collect::<Result<_, _>>()?;
        }
        Ok(Tally {
            events: self.events.clone(),
            latest_kernels: self.latest_kernels.clone(),
        })
    }
}

/// The category of the event that a record is; none for one that describes something.
fn category(record: &Record) -> Option<Category> {
    Some(match record {
        Record::Kernel(_) => Category::CudaKernel,
        Record::Copy(copy) => kind_of_copy(copy.kind).0,
        Record::Peer(peer) => kind_of_copy(peer.kind).0,
        Record::Set(_) => Category::CudaMemset,
        Record::Call(_) => Category::CudaApi,
        Record::Sync(_) => Category::CudaSync,
        Record::Graph(_) => Category::CudaGraph,
        Record::Overhead(_) => Category::Overhead,
        Record::Correlation(_)
        | Record::Context(_)
        | Record::Stream(_)
        | Record::Device(_)
        | Record::Partition(_)
        | Record::CallName(_) => return None,
    })
}

/// A kernel's name, fit to be published.
pub(super) fn published_name(name: Option<Name<'_>>) -> String {
    let raw = name.map_or(b"".as_slice(), |name| name.text);
    let text = String::from_utf8_lossy(raw).replace('\0', "\u{fffd}");
    let (symbol, _hits) = redact(&text);
    let plain = demangle::path(&symbol).unwrap_or_else(|| symbol.into_owned());
    let (clean, _hits) = redact(&plain);
    if clean.is_empty() {
        return UNNAMED.to_owned();
    }
    clean.chars().take(MAX_NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::record::{Call, Context, Kernel, MemoryCopy};

    use super::*;

    fn kernel(name: u32, nanoseconds: u64) -> Record {
        let run = KernelRun {
            start_ns: 1_000,
            end_ns: 1_000 + nanoseconds,
            name,
            ..KernelRun::default()
        };
        Record::Kernel(Kernel {
            run,
            ..Kernel::default()
        })
    }

    fn tally(counting: &mut Counting) -> Tally {
        counting.tally(|number| Ok(number.to_string())).unwrap()
    }

    fn told(tally: &Tally) -> Vec<(&str, u64, u64)> {
        let kernels = tally.latest_kernels.iter();
        kernels
            .map(|kernel| (kernel.name.as_str(), kernel.calls, kernel.total_ns))
            .collect()
    }

    #[test]
    fn events_are_those_since_the_begin_and_kernels_those_since_the_last_tally() {
        let mut counting = Counting::default();
        let host_to_device = MemoryCopy {
            kind: 1,
            ..MemoryCopy::default()
        };
        let records = [
            kernel(7, 300),
            kernel(7, 400),
            kernel(8, 500),
            Record::Copy(host_to_device),
            Record::Call(Call::default()),
            Record::Context(Context::default()),
        ];
        for record in &records {
            counting.add(record);
        }
        let first = tally(&mut counting);
        let copies = kind_of_copy(1).0;
        let expected = [(Category::CudaKernel, 3), (copies, 1), (Category::CudaApi, 1)];
        assert_eq!(first.events, BTreeMap::from(expected));
        assert_eq!(told(&first), [("7", 2, 700), ("8", 1, 500)]);

        counting.add(&kernel(8, 10));
        let second = tally(&mut counting);
        assert_eq!(second.events[&Category::CudaKernel], 4);
        assert_eq!(told(&second), [("8", 1, 10)]);
    }

    #[test]
    fn where_no_kernel_came_the_latest_are_those_that_came_before() {
        let mut counting = Counting::default();
        assert_eq!(tally(&mut counting), Tally::default());
        counting.add(&kernel(3, 5));
        tally(&mut counting);
        counting.add(&Record::Call(Call::default()));
        assert_eq!(told(&tally(&mut counting)), [("3", 1, 5)]);
    }

    #[test]
    fn five_kernels_are_named_of_as_many_as_a_program_may_make_up() {
        let mut counting = Counting::default();
        for number in 0..20_000 {
            counting.add(&kernel(number, u64::from(number)));
        }
        assert_eq!(counting.kernels.len(), MAX_KERNELS);
        let of_all = tally(&mut counting);
        assert_eq!(of_all.events[&Category::CudaKernel], 20_000);
        let names: Vec<&str> = told(&of_all).iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["4095", "4094", "4093", "4092", "4091"]);
        assert!(counting.kernels.is_empty());
    }

    #[test]
    fn a_kernel_that_ends_before_it_began_takes_no_time() {
        let mut counting = Counting::default();
        let run = KernelRun {
            start_ns: 10,
            end_ns: 2,
            ..KernelRun::default()
        };
        let record = Record::Kernel(Kernel {
            run,
            ..Kernel::default()
        });
        counting.add(&record);
        assert_eq!(told(&tally(&mut counting)), [("0", 1, 0)]);
    }

    #[test]
    fn a_name_that_cannot_be_read_fails_the_tally() {
        let mut counting = Counting::default();
        counting.add(&kernel(1, 1));
        assert!(matches!(counting.tally(|_| Err(Failure::Cut)), Err(Failure::Cut)));
    }

    #[test]
    fn a_name_is_published_short_without_its_secrets_and_whatever_its_bytes_are() {
        let name = |text: &'static [u8]| published_name(Some(Name { text, is_cut: false }));
        assert_eq!(name(b"_ZN2at6native4gemmIfEEvPT_"), "at::native::gemm");
        assert_eq!(name(b"triton_poi_fused_add_0"), "triton_poi_fused_add_0");
        assert_eq!(name(b"gemm_\xff\0"), "gemm_\u{fffd}\u{fffd}");
        assert_eq!(published_name(None), UNNAMED);
        let secret = name(b"load MY_TOKEN=t0ps3cret now");
        assert!(!secret.contains("t0ps3cret") && secret.contains("now"), "{secret}");
        let long = "\u{e9}".repeat(1_000);
        let long = published_name(Some(Name {
            text: long.as_bytes(),
            is_cut: true,
        }));
        assert_eq!(long.chars().count(), MAX_NAME_CHARS);
    }
}
