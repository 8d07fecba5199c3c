//! The timeline file in the hands of its readers: h5py and h5dump.
//!
//! `FLOPWATCH_PYTHON` names a Python that has h5py; without it the one on the PATH is asked.

use std::path::PathBuf;
use std::process::Command;

use flopwatch_trace::timeline_file;

use crate::export::Schema;
use crate::sample::sample;

/// Reads every dataset and attribute and prints what the test compares.
const SCRIPT: &str = r#"
import json, sys, h5py
with h5py.File(sys.argv[1], "r") as file:
    read = []
    file.visititems(lambda name, item: read.append((name, len(item[()]) if item.shape else 1)) if hasattr(item, "shape") else None)
    meta = file["meta"].attrs
    kernels = file["cuda_kernel"]
    print(json.dumps({
        "datasets": len(read),
        "session_id": meta["session_id"],
        "total_events": int(meta["total_events"]),
        "categories": [name.decode() for name in file["meta/categories"][()]],
        "start_ns": kernels["start_ns"][()].tolist(),
        "grid_x": kernels["grid_x"][()].tolist(),
        "filters": [kernels["start_ns"].compression, kernels["start_ns"].shuffle],
        "names": [file["names/cuda_kernel"][()][at].decode() for at in kernels["name_idx"][()]],
        "tiles": file["tiles/cuda_kernel/count"][()].tolist(),
        "summary": json.loads(file["summary"][()].tobytes())["total_events"],
    }))
"#;

/// A Python with h5py, or a printed reason to skip.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("FLOPWATCH_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let works = Command::new(&python).args(["-c", "import h5py"]).output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: no Python with h5py on this machine (set FLOPWATCH_PYTHON to one)");
    None
}

#[test]
fn h5py_reads_every_dataset() {
    let Some(python) = python() else { return };
    let export = sample(Schema::V2023, false);
    let timeline = export.timeline();
    let path = export.beside("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let output = Command::new(python).args(["-c", SCRIPT]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = &timeline.capture.events[&flopwatch_model::Category::CudaKernel];
    let names: Vec<&str> = (0..kernels.len()).map(|at| kernels.name_of(at)).collect();
    let categories: Vec<&str> = timeline
        .capture
        .captured
        .iter()
        .map(|category| category.name())
        .collect();
    let expected = serde_json::json!({
        "datasets": read["datasets"],
        "session_id": "c0ffee00",
        "total_events": timeline.total_events(),
        "categories": categories,
        "start_ns": kernels.start_ns,
        "grid_x": [70_000, 70_000, 70_000, 70_000],
        "filters": ["gzip", true],
        "names": names,
        "tiles": [4],
        "summary": timeline.total_events(),
    });
    assert_eq!(read, expected);
    assert!(read["datasets"].as_u64().unwrap() > 100);
}

#[test]
fn h5dump_reads_the_file() {
    let export = sample(Schema::V2022, false);
    let path = export.beside("timeline.h5");
    timeline_file::write(&export.timeline(), &path).unwrap();
    let Ok(output) = Command::new("h5dump")
        .args(["-d", "/cuda_kernel/start_ns"])
        .arg(&path)
        .output()
    else {
        println!("skipped: no h5dump on this machine (Debian's hdf5-tools)");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("H5T_STD_U64LE") && text.contains("(0): 1100, 1100, 2000, 2600"),
        "{text}"
    );
}
