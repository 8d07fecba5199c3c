//! What a file is, told by its first bytes: names and endings of files say nothing.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::gzip::{self, Members};
use crate::{hlo, kineto, ncu, nsys_report, pprof, recorder, tracer, xplane};

/// Bytes of the begin of a file, inflated where it is gzip, that tell its format.
const DETECTION_BYTES: u64 = 64 << 10;

/// Makes [`Format`] of the table: an entry is a format with what people call a file of it.
macro_rules! formats {
    ($($(#[$attribute:meta])* $format:ident: $about:literal,)+) => {
        /// What a file is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format {
            $($(#[$attribute])* $format,)+
        }

        impl Format {
            /// Every format, in the order of the table.
            pub const ALL: [Self; [$($about),+].len()] = [$(Self::$format),+];

            /// What people call a file of it.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$format => $about,)+
                }
            }
        }
    };
}

formats! {
    /// HDF5: a timeline file of ours, or what `nsys export --type hdf` writes.
    Hdf5: "timeline file or HDF5 export of Nsight Systems",
    /// SQLite: what `nsys export --type sqlite` writes.
    Sqlite: "SQLite export of Nsight Systems",
    /// A report of Nsight Systems (`.nsys-rep`, `.qdrep`).
    NsysReport: "report of Nsight Systems",
    /// A raw capture of Nsight Systems (`.qdstrm`), of which only its importer makes a report.
    NsysStream: "raw capture of Nsight Systems",
    /// A Chrome trace, e.g. of PyTorch's Kineto, plain or gzip.
    Kineto: "Chrome trace of PyTorch or another program",
    /// An archive (tar) of such traces, one for each process.
    KinetoArchive: "archive of Chrome traces",
    /// An `XSpace` message of JAX, XLA or TensorFlow.
    XPlane: "XPlane profile of JAX or XLA",
    /// A compiled program of XLA, of a dump: an `HloProto` message (`.hlo.pb`), or a module's text.
    Hlo: "compiled program of XLA",
    /// A report of Nsight Compute (`.ncu-rep`), which only ncu opens.
    NcuReport: "report of Nsight Compute",
    /// A page of such a report as CSV.
    NcuCsv: "CSV page of Nsight Compute",
    /// A profile in the format of pprof, plain or gzip.
    Pprof: "pprof profile",
    /// The file of a flight recorder.
    Recorder: "file of a flight recorder",
    /// The file of a CUDA tracer, or what was drained of one.
    Tracer: "file of a CUDA tracer",
}

/// The formats that are read, for people.
pub const FORMATS: &str = "\
Formats, told by content: exports of Nsight Systems of 2020 and later (HDF5, SQLite); its reports (.nsys-rep, .qdrep); its raw \
captures (.qdstrm), through an installed nsys of their version; PyTorch Kineto and other Chrome traces (.json, \
.json.gz), and a tar of them; JAX and XLA profiles (.xplane.pb); programs that XLA dumped (.hlo.pb, *_optimizations.txt); reports of \
Nsight Compute (.ncu-rep) and CSV pages of them; profiles of memory and others in the format of pprof; files of a flight recorder and \
of a CUDA tracer; timeline files.";

/// First bytes of the formats that have some of their own.
const MAGIC: [(&[u8], Format); 9] = [
    (b"\x89HDF\r\n\x1a\n", Format::Hdf5),
    (b"SQLite format 3\0", Format::Sqlite),
    (nsys_report::MAGIC, Format::NsysReport),
    (nsys_report::STREAM_MAGIC, Format::NsysStream),
    (ncu::REPORT, Format::NcuReport),
    (hlo::TEXT, Format::Hlo),
    (recorder::RING_MAGIC, Format::Recorder),
    (tracer::TRACE_MAGIC, Format::Tracer),
    (tracer::DRAINED_MAGIC, Format::Tracer),
];

/// The format of the file at `path`; `None` for one that is of none of them. Looks at the first
/// bytes alone, so that it may be asked of foreign files outside of a child process.
pub fn detect(path: &Path) -> io::Result<Option<Format>> {
    let mut begin = Vec::new();
    File::open(path)?.take(DETECTION_BYTES).read_to_end(&mut begin)?;
    Ok(of(&begin))
}

fn of(begin: &[u8]) -> Option<Format> {
    let own = MAGIC.into_iter().find(|(magic, _)| begin.starts_with(magic));
    if let Some((_, format)) = own {
        return Some(format);
    }
    if begin.starts_with(gzip::MAGIC) {
        let text = inflated(begin)?;
        let is_profile = || pprof::begins_like_a_profile(&text).then_some(Format::Pprof);
        return is_json(&text).then_some(Format::Kineto).or_else(is_profile);
    }
    [
        (kineto::begins_like_an_archive(begin), Format::KinetoArchive),
        (is_json(begin), Format::Kineto),
        (xplane::begins_like_a_space(begin), Format::XPlane),
        (flopwatch_model::hlo::begins_like_a_program(begin), Format::Hlo),
        (ncu::header(begin).is_some(), Format::NcuCsv),
        (pprof::begins_like_a_profile(begin), Format::Pprof),
    ]
    .into_iter()
    .find_map(|(is, format)| is.then_some(format))
}

/// As much of gzip as there is.
fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    // The begin of a file is no whole stream, so that reading it ends in an error behind the text
    // that is there.
    match Members::new(bytes).take(DETECTION_BYTES).read_to_end(&mut text) {
        Err(_) if text.is_empty() => None,
        _ => Some(text),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text.split_first() {
        Some((b'{', rest)) => rest.is_empty() || matches!(rest.trim_ascii_start().first(), None | Some(b'"' | b'}')),
        Some((b'[', rest)) => matches!(rest.trim_ascii_start().first(), None | Some(b'{' | b']')),
        _ => false,
    }
}
