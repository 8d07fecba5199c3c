//! A report of Nsight Compute of launches that nobody made, in the layout of real ones.

use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes a report of so many launches with so many metrics each.
pub(crate) fn make(out: &Path, launches: u32, metrics: u32) -> Result<()> {
    let mut names = Message::default();
    for metric in 0..metrics {
        let name = match metric {
            0 => "gpu__time_duration.sum".to_owned(),
            _ => format!("smsp__made_{metric}.avg.pct_of_peak_sustained_elapsed"),
        };
        names = names.bytes(1, name.as_bytes());
    }
    let mut payload = Vec::new();
    for launch in 0..launches {
        payload.extend(self::launch(launch, metrics).sized()?);
    }
    let header = Message::default()
        .number(1, 0)
        .number(2, launches.into())
        .message(4, &names)
        .number(5, u64::try_from(payload.len())?)
        .message(6, &Message::default().number(1, 77));
    let file_header = Message::default().number(1, 7);
    let report = [b"NVR\0".to_vec(), file_header.sized()?, header.sized()?, payload].concat();
    std::fs::write(out, report).with_context(|| format!("{} cannot be written", out.display()))
}

/// A launch with all that NVIDIA's definition says is there.
fn launch(id: u32, metrics: u32) -> Message {
    let sizes = |x: u64| Message::default().number(1, x).number(2, 1).number(3, 1);
    let mut launch = Message::default()
        .number(1, 7)
        .number(2, id.into())
        .number(3, 1)
        .number(4, id.into())
        .bytes(5, b"_Z4gemmPf")
        .bytes(6, b"gemm")
        .bytes(7, b"gemm(float *)")
        .number(8, 3)
        .message(9, &sizes(0))
        .message(10, &sizes(1024))
        .message(11, &sizes(256));
    for metric in 0..metrics {
        let value = f64::from(id) + f64::from(metric) / 8.0;
        let value = Message::default().double(3, value);
        launch = launch.message(13, &Message::default().number(1, metric.into()).message(2, &value));
    }
    let source = Message::default().number(1, 1);
    launch
        .number(14, 1_700_000_000)
        .message(15, &source)
        .number(22, 1)
        .number(23, 7)
}

/// A message of protocol buffers that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or(0));
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(u64::try_from(value.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(value);
        self
    }

    fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    fn sized(&self) -> Result<Vec<u8>> {
        let size = u32::try_from(self.0.len())?;
        Ok([&size.to_le_bytes()[..], &self.0].concat())
    }
}
