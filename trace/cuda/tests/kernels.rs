//! The library of kernels as it is built, on whatever machine this is.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says on its output why it skips"
)]

use std::path::PathBuf;

use flopwatch_cuda::{Architecture, CudaError, Gpu, Inventory, Kernels, kernels, neighbours};

/// The library that the recipes built.
fn library() -> Option<PathBuf> {
    let path = std::env::var_os(kernels::ENVIRONMENT).map(PathBuf::from);
    if path.is_none() {
        println!(
            "skipped: {} is not set (cargo xtask kernels builds the library)",
            kernels::ENVIRONMENT
        );
    }
    path
}

#[test]
fn the_library_is_built_from_these_sources_for_every_generation() {
    let Some(path) = library() else { return };
    let inventory = Inventory::read(&path).unwrap();
    assert_eq!(inventory.check(), Ok(()));
    assert_eq!(inventory.builder, "cuda 13.0");
    let machine = [75, 80, 90, 100].map(Architecture::Machine);
    let expected = machine.into_iter().chain([Architecture::Ptx(100)]);
    assert_eq!(inventory.architectures, expected.collect::<Vec<_>>());
    // Turing to Blackwell, the professional and the consumer lines.
    for capability in [75, 80, 86, 89, 90, 100, 103, 120] {
        assert!(inventory.runs_on(capability), "sm_{capability}");
    }
    assert!(inventory.bytes < 8 << 20, "{} bytes", inventory.bytes);
}

#[test]
fn every_call_is_in_the_library_and_it_needs_no_library_of_cuda() {
    let Some(path) = library() else { return };
    // Loading finds every symbol, and would fail on a library that is not there.
    let kernels = Kernels::load(&path).unwrap();
    assert!(
        kernels.version().contains(&kernels::source_hash()),
        "{}",
        kernels.version()
    );
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("libcudart") && !maps.contains("libcub"), "{maps}");
}

#[test]
fn without_a_driver_the_reason_is_that() {
    match Gpu::driver_version() {
        Err(error) => {
            assert_eq!(error, CudaError::NoDriver);
            assert_eq!(Gpu::check().unwrap_err().to_string(), "no NVIDIA driver");
            assert_eq!(Gpu::open(0).unwrap_err(), CudaError::NoDriver);
            assert!(neighbours().is_err());
        }
        Ok(version) => println!("skipped (gpu): there is a driver, for CUDA {version}"),
    }
}
