//! A large table of kernels into columns.

use super::{Bench, Rival, Source, speed};
use flopwatch_toolchain::wheel::Requirements;

pub(super) fn bench() -> Bench {
    Bench {
        name: "ingest",
        what: "2 M kernel rows: nsys HDF5 to columns",
        input: Source::Made("export.h5", &["make-export", "--kernels", "2000000"]),
        ours: &["ingest"],
        writes: false,
        python: Requirements::BenchH5py,
        rivals: &[
            Rival {
                what: "h5py, the needed fields",
                script: "ingest.py",
                args: &["fields"],
            },
            Rival {
                what: "h5py, whole rows",
                script: "ingest.py",
                args: &["rows"],
            },
        ],
        judge: |ours, rival| Vec::from(speed(ours, rival, "10", 10.0)),
    }
}
