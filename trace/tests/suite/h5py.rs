//! The timeline file in the hands of its readers: h5py and h5dump.

use std::process::Command;

use flopwatch_trace::timeline_file;

use crate::capture::names;
use crate::export::Schema;
use crate::program::{python_with, stdout_of};
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

#[test]
fn h5py_reads_every_dataset() {
    let Some(python) = python_with("h5py") else { return };
    let export = sample(Schema::V2023, false);
    let timeline = export.timeline();
    let path = export.beside("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let read = stdout_of(Command::new(python).args(["-c", SCRIPT]).arg(&path));
    let read: serde_json::Value = serde_json::from_slice(&read).unwrap();
    let kernels = &timeline.capture.events[&flopwatch_model::Category::CudaKernel];
    let captured = timeline.capture.captured.iter();
    let categories: Vec<&str> = captured.map(|category| category.name()).collect();
    let expected = serde_json::json!({
        "datasets": read["datasets"],
        "session_id": "c0ffee00",
        "total_events": timeline.total_events(),
        "categories": categories,
        "start_ns": kernels.start_ns,
        "grid_x": [70_000, 70_000, 70_000, 70_000],
        "filters": ["gzip", true],
        "names": names(kernels),
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
    for part in ["H5T_STD_U64LE", "(0): 1100, 1100, 2000, 2600"] {
        assert!(text.contains(part), "{text}");
    }
}
