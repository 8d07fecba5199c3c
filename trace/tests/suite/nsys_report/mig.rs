//! MIG instances: of reports by their numbers, of exports by their names. No report of one was at
//! hand: these are made.

use flopwatch_model::{Capture, Device, MigInstance};
use flopwatch_summary::summarise;
use flopwatch_trace::ReadLimits;

use super::writer::Report;
use super::{STRINGS, capture, kernel, read_bytes};
use crate::capture::timeline_of;
use crate::columns::through_a_file;
use crate::export::{Export, Gpu, Kernel, Schema, text};
use crate::message::{Message, new};

const NAME: &str = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
const UUID: &str = "MIG-5c3789d7-7545-9896-08a7-c636a52b7894";

/// A report of a kernel on GPU 0, of which this says which instance it is.
fn report(name: &str, mig: Option<&Message>) -> Report {
    let gpu = new()
        .number(1, 0)
        .text(2, name)
        .text(5, UUID)
        .number(12, 3_352_000_000_000)
        .number(13, 1_980_000_000)
        .number(14, 16)
        .number(41, 9);
    let gpu = mig.into_iter().fold(gpu, |gpu, mig| gpu.message(46, mig));
    let mut report = Report::new(&STRINGS).work(101, (100, 300), &kernel());
    report.system = new().message(1, &new().message(2, &new().message(7, &gpu)));
    report
}

fn device(capture: &Capture) -> &Device {
    let [device] = capture.devices.as_slice() else {
        panic!("one device")
    };
    device
}

fn instance(gpu_instance: Option<u32>, compute_instance: Option<u32>) -> MigInstance {
    MigInstance {
        gpu_instance,
        compute_instance,
        uuid: UUID.to_owned(),
    }
}

#[test]
fn an_instance_has_its_numbers_and_its_uuid_and_no_peak_of_a_whole_gpu() {
    let numbers = new().number(1, 3).number(2, 1);
    let capture = capture(&report(NAME, Some(&numbers)));
    let device = device(&capture);
    assert_eq!(device.mig, Some(instance(Some(3), Some(1))));
    assert_eq!((device.multiprocessors, device.peak_bandwidth), (Some(16), None));
    assert!(device.peak_flops.is_empty());
    // Shares are told of the instance.
    let busy = summarise(&timeline_of(capture)).gpus;
    assert_eq!(busy[0].name, format!("{NAME} (GPU instance 3, compute instance 1)"));
}

#[test]
fn numbers_that_are_absent_are_0_and_those_that_cannot_be_are_not_known() {
    let of = |numbers: &Message| device(&capture(&report(NAME, Some(numbers)))).mig.clone();
    assert_eq!(of(&new()), Some(instance(Some(0), Some(0))));
    assert_eq!(of(&new().number(1, 7)), Some(instance(Some(7), Some(0))));
    let none = u64::from(u32::MAX);
    assert_eq!(of(&new().number(1, none).number(2, none)), Some(instance(None, None)));
    let too_large = new().number(1, u64::MAX).number(2, 1 << 40);
    assert_eq!(of(&too_large), Some(instance(None, None)));
}

#[test]
fn a_gpu_that_is_no_instance_is_as_before() {
    let whole = capture(&report("NVIDIA H100 80GB HBM3", None));
    assert_eq!(device(&whole).mig, None);
    assert!(device(&whole).peak_bandwidth.is_some() && !device(&whole).peak_flops.is_empty());
    // What NVML says of a GPU without MIG.
    let none = u64::from(u32::MAX);
    let numbers = new().number(1, none).number(2, none);
    assert_eq!(capture(&report("NVIDIA H100 80GB HBM3", Some(&numbers))), whole);
}

#[test]
fn an_export_tells_an_instance_by_its_name() {
    let gpu = Gpu {
        name: text(NAME),
        uuid: text(UUID),
        ..Gpu::default()
    };
    let kernel = Kernel {
        start: 1,
        end: 2,
        ..Kernel::default()
    };
    let export = Export::new(Schema::V2023, &[(0, "gemm")])
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &[kernel])
        .table("TARGET_INFO_GPU", &[gpu])
        .finish();
    for capture in [export.read().unwrap(), export.read_sqlite().unwrap()] {
        assert_eq!(device(&capture).mig, Some(instance(None, None)));
    }
}

#[test]
fn an_instance_is_read_back_from_the_timeline_file() {
    let numbers = new().number(1, 3);
    let read = through_a_file(&timeline_of(capture(&report(NAME, Some(&numbers)))));
    assert_eq!(device(&read.capture).mig, Some(instance(Some(3), Some(0))));
}

#[test]
fn a_uuid_without_end_and_a_secret_in_it_are_not_kept() {
    let mut long = report(NAME, None);
    let gpu = new().text(2, NAME).text(5, &"x".repeat(1 << 20));
    long.system = new().message(1, &new().message(2, &new().message(7, &gpu)));
    let capture = read_bytes(&long.bytes(), &ReadLimits::default()).unwrap();
    assert_eq!(device(&capture).mig.as_ref().unwrap().uuid, "x".repeat(64));
    let gpu = new().text(2, NAME).text(5, "DB_TOKEN=planted-secret");
    long.system = new().message(1, &new().message(2, &new().message(7, &gpu)));
    let capture = read_bytes(&long.bytes(), &ReadLimits::default()).unwrap();
    assert_eq!(device(&capture).mig.as_ref().unwrap().uuid, "DB_TOKEN=[redacted]");
    assert_eq!(capture.redactions, 1);
}
