//! The GPU's engine run over the host's memory: its own orchestration and its own per-event device
//! functions, compiled for the host, with the standard library's sort and scans in the place of
//! CUB. No GPU takes part, and nothing here is a result of one; `cargo xtask gpu-check` makes the
//! bundle that repeats the comparison on a real one.

#![allow(
    unsafe_code,
    reason = "vouches for the vectors that the host build of the calls works on"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use flopwatch_cuda::{CudaError, DeviceArray, Element, Kernels, Memory, kernels};
use flopwatch_model::Category;
use flopwatch_trace::transform::engine::{Columns, Engine, Input};
use flopwatch_trace::transform::{Cpu, cuda, device};
use proptest::prelude::*;

use crate::random::Random;

struct Array<T>(Vec<T>);

impl<T> DeviceArray for Array<T> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn address(&self) -> u64 {
        u64::try_from(self.0.as_ptr().expose_provenance()).unwrap()
    }
}

struct Host;

// SAFETY: the arrays are vectors that own as many values as they count; the host build of the calls
// is done when it returns.
unsafe impl Memory for Host {
    type Array<T: Element> = Array<T>;

    fn zeroed<T: Element>(&self, count: usize) -> Result<Array<T>, CudaError> {
        Ok(Array(vec![T::default(); count]))
    }

    fn upload<T: Element>(&self, values: &[T]) -> Result<Array<T>, CudaError> {
        Ok(Array(values.to_vec()))
    }

    fn download<T: Element>(&self, array: &Array<T>, count: usize) -> Result<Vec<T>, CudaError> {
        Ok(array.0[..count].to_vec())
    }

    fn concatenate<T: Element>(&self, arrays: &[&Array<T>]) -> Result<Array<T>, CudaError> {
        Ok(Array(arrays.iter().flat_map(|array| array.0.iter().copied()).collect()))
    }

    fn stream(&self) -> usize {
        0
    }
}

/// The host build of the calls; `None` where there is no C++ compiler.
fn host_kernels() -> Option<&'static Kernels> {
    static BUILT: OnceLock<Option<(Kernels, tempfile::TempDir)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libhost.so");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
        let message = Command::new("c++")
            .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"])
            .arg(format!("-DFLOPWATCH_SOURCE={}", kernels::source_hash()))
            .arg("-I")
            .arg(sources.join("device"))
            .arg("-o")
            .args([&library, &sources.join("tests/host/kernels.cpp")])
            .output();
        let Ok(message) = message else {
            eprintln!("skipped: c++ is not installed");
            return None;
        };
        assert!(message.status.success(), "{}", String::from_utf8_lossy(&message.stderr));
        Some((Kernels::load(&library).unwrap(), folder))
    });
    built.as_ref().map(|(kernels, _)| kernels)
}

fn agrees(input: &Input) {
    let Some(kernels) = host_kernels() else { return };
    let made = cuda::run(&Host, kernels, input).unwrap();
    let expected = Cpu.run(input.clone());
    assert_eq!(made.categories.len(), expected.categories.len());
    for (category, expected) in &expected.categories {
        let made = &made.categories[category];
        assert_eq!(made.order, expected.order, "{category:?}: order");
        assert_eq!(made.columns, expected.columns, "{category:?}: columns");
        assert_eq!(made.lane, expected.lane, "{category:?}: lanes");
        assert_eq!(made.figures, expected.figures, "{category:?}: figures");
        assert_eq!(made.lod, expected.lod, "{category:?}: levels of detail");
    }
}

fn columns(events: &[(u64, u64, u32, u32)], names: u32) -> Columns {
    Columns {
        start_ns: events.iter().map(|event| event.0).collect(),
        duration_ns: events.iter().map(|event| event.1).collect(),
        row: events.iter().map(|event| event.2).collect(),
        name: events.iter().map(|event| event.3).collect(),
        names,
    }
}

/// Small numbers, so that ties, overlaps and gaps all happen, with the extremes between them.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0_u64..200, 4 => 0_u64..1_000_000, 1 => (u64::MAX - 100)..=u64::MAX]
}

fn events() -> impl Strategy<Value = Vec<(u64, u64, u32, u32)>> {
    prop::collection::vec((time(), time(), 0_u32..4, 0_u32..6), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_gpus_engine_over_host_memory_gives_what_the_processor_gives(
        kernels in events(), copies in events(), calls in events(),
    ) {
        let categories = [
            (Category::CudaKernel, columns(&kernels, 6)),
            (Category::CudaMemcpyH2d, columns(&copies, 7)),
            (Category::CudaApi, columns(&calls, 6)),
        ];
        agrees(&Input { categories: categories.into(), rows: 5 });
    }
}

#[test]
fn captures_large_enough_for_levels_of_detail_agree_too() {
    for (count, rows, seed) in [(4096, 1, 1), (5000, 3, 2), (20_000, 40, 3), (6000, 3000, 4)] {
        let mut random = Random(seed);
        let mut time = 0;
        let events = (0..count).map(|at| {
            time += if at % 100 == 0 { 1_000_000 } else { random.below(900) };
            let duration = match random.below(50) {
                0 => random.below(3_000_000),
                1 => 0,
                _ => random.below(1000),
            };
            let wide = |value: usize| u64::try_from(value).unwrap();
            let narrow = |value: usize| u32::try_from(value).unwrap();
            (
                wide(time),
                wide(duration),
                narrow(random.below(rows)),
                narrow(random.below(9)),
            )
        });
        let mut events: Vec<_> = events.collect();
        let in_order = columns(&events, 9);
        events.reverse();
        let backwards = columns(&events, 9);
        let categories = [(Category::CudaKernel, backwards), (Category::NvtxRange, in_order)];
        agrees(&Input {
            categories: categories.into(),
            rows: u32::try_from(rows).unwrap(),
        });
    }
}

#[test]
fn the_sample_that_devices_are_measured_with_agrees_and_has_overlaps() {
    let input = device::sample(30_000);
    let lanes = &Cpu.run(input.clone()).categories[&Category::CudaKernel].lane;
    let aside = lanes.iter().filter(|lane| **lane > 0).count();
    assert!(aside > 100 && aside < lanes.len() / 2, "{aside} of {}", lanes.len());
    agrees(&input);
}

#[test]
fn sums_that_pass_64_bits_are_exact_and_squares_stop_at_the_largest_number() {
    let events: Vec<_> = (0..1000)
        .map(|at| (at, u64::MAX - at % 3, 0, u32::try_from(at % 2).unwrap()))
        .collect();
    agrees(&Input {
        categories: [(Category::CudaKernel, columns(&events, 2))].into(),
        rows: 1,
    });
}

#[test]
fn a_library_built_from_other_sources_is_refused_before_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("libother.so");
    std::fs::write(&path, b"\x7fELF flopwatch-kernels 1 0123456789abcdef cuda 13.0\0").unwrap();
    let error = Kernels::load(&path).unwrap_err().to_string();
    assert!(
        error.contains("built from other sources") && error.contains("libother.so"),
        "{error}"
    );
    std::fs::write(&path, b"something else").unwrap();
    let error = Kernels::load(&path).unwrap_err().to_string();
    assert!(error.contains("does not say what it is"), "{error}");
}
