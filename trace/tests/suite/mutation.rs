//! Damage of every kind to files of every text or message format: a result or an error that names the file, never a panic,
//! within bounds of time. By hand for longer: `FLOPWATCH_MUTATION_SECONDS=120 cargo test -p flopwatch-trace mutated`.

use std::path::Path;
use std::time::{Duration, Instant};

use flopwatch_trace::{ReadLimits, kineto as kineto_reader, ncu, read, xplane as xplane_reader};

use crate::nsys::corpus;
use crate::random::Random;
use crate::{formats, kineto, xplane};

/// What a reader says of a file: its error, if it has one.
type Read = fn(&Path) -> Result<(), String>;

fn limits() -> ReadLimits {
    ReadLimits {
        max_text_bytes: 64 << 20,
        max_chunk_bytes: 1 << 20,
        max_events: 1_000_000,
        max_string_bytes: 16 << 20,
        ..ReadLimits::default()
    }
}

fn seeds() -> Vec<(&'static str, Vec<u8>, Read)> {
    let trace: Read = |path| {
        kineto_reader::read(path, &limits())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let profile: Read = |path| {
        xplane_reader::read(path, &limits())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let page: Read = |path| ncu::read(path, &limits()).map(drop).map_err(|error| error.to_string());
    let any: Read = |path| read(path, &limits()).map(drop).map_err(|error| error.to_string());
    let document = kineto::document(kineto::EVENTS);
    let mut seeds = vec![
        ("trace", document.clone().into_bytes(), trace),
        ("gzip", kineto::gzip_of(&document), trace),
        ("profile", xplane::space("forward"), profile),
        ("page", formats::details("gemm").into_bytes(), page),
        ("any", document.into_bytes(), any),
        ("any profile", xplane::space("forward"), any),
    ];
    for (file, reader) in [
        ("hta/triton_example-triton_example.json.gz", trace),
        ("hta/trace_compare-base-base.json.gz", any),
        ("tracelens-jax/jax_conv_minimal_08.xplane.pb", profile),
        ("llm-perf-opt-ncu/kernel_0003.details.csv", page),
    ] {
        if let Some(path) = corpus(file) {
            seeds.push((file, std::fs::read(path).unwrap(), reader));
        }
    }
    seeds
}

/// Bytes that mean something in one of the formats.
const TELLING: &[u8] = b"\"\\{}[],:\n\0\x0a\x12\x1a\x22\x7f\x80\xff0e-.";

fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(5) {
        if damaged.is_empty() {
            break;
        }
        let at = random.below(damaged.len());
        let length = random.below(64).min(damaged.len() - at);
        match random.below(8) {
            0 => damaged[at] ^= 1 << random.below(8),
            1 => damaged[at] = TELLING[random.below(TELLING.len())],
            2 => damaged.truncate(at),
            3 => drop(damaged.drain(at..at + length)),
            4 => damaged.insert(at, TELLING[random.below(TELLING.len())]),
            5 => {
                let copy = damaged[at..at + length].to_vec();
                let to = random.below(damaged.len());
                damaged.splice(to..to, copy);
            }
            6 => damaged[at..at + length].fill(0xff),
            _ => {
                let noise: Vec<u8> = (0..length).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
                damaged[at..at + length].copy_from_slice(&noise);
            }
        }
    }
    damaged
}

#[test]
fn mutated_files_never_panic_and_errors_name_them() {
    let seconds = std::env::var("FLOPWATCH_MUTATION_SECONDS").map_or(6, |seconds| seconds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.bin");
    let seeds = seeds();
    let share = Duration::from_secs(seconds) / u32::try_from(seeds.len()).unwrap();
    let mut random = Random(11);
    for (format, bytes, read) in seeds {
        let begin = Instant::now();
        let (mut rounds, mut errors, mut slowest) = (0_u64, 0_u64, Duration::ZERO);
        while begin.elapsed() < share {
            std::fs::write(&path, mutate(&bytes, &mut random)).unwrap();
            let once = Instant::now();
            if let Err(error) = read(&path) {
                assert!(error.contains("damaged.bin"), "{format}: {error}");
                errors += 1;
            }
            slowest = slowest.max(once.elapsed());
            rounds += 1;
        }
        println!("{format}: {rounds} mutations, {errors} errors, slowest {slowest:?}");
        assert!(slowest < Duration::from_secs(10), "{format}: {slowest:?}");
        assert!(rounds > 0);
    }
}
