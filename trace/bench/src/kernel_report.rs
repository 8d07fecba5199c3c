//! A report of Nsight Compute of launches that nobody made, in the layout of real ones.

use std::path::Path;

use anyhow::{Context as _, Result};
use flopwatch_model::wire::write::Message;

/// Writes a report of so many launches with so many metrics each.
pub(crate) fn make(out: &Path, launches: u32, metrics: u32) -> Result<()> {
    let mut names = Message::new();
    for metric in 0..metrics {
        let name = match metric {
            0 => "gpu__time_duration.sum".to_owned(),
            _ => format!("smsp__made_{metric}.avg.pct_of_peak_sustained_elapsed"),
        };
        names = names.text(1, &name);
    }
    let mut payload = Vec::new();
    for launch in 0..launches {
        payload.extend(sized(&self::launch(launch, metrics))?);
    }
    let header = Message::new()
        .number(1, 0)
        .number(2, launches.into())
        .message(4, &names)
        .number(5, u64::try_from(payload.len())?)
        .message(6, &Message::new().number(1, 77));
    let file_header = Message::new().number(1, 7);
    let report = [b"NVR\0".to_vec(), sized(&file_header)?, sized(&header)?, payload].concat();
    std::fs::write(out, report).with_context(|| format!("{} cannot be written", out.display()))
}

/// A launch with all that NVIDIA's definition says is there.
fn launch(id: u32, metrics: u32) -> Message {
    let sizes = |x: u64| Message::new().number(1, x).number(2, 1).number(3, 1);
    let mut launch = Message::new()
        .number(1, 7)
        .number(2, id.into())
        .number(3, 1)
        .number(4, id.into())
        .text(5, "_Z4gemmPf")
        .text(6, "gemm")
        .text(7, "gemm(float *)")
        .number(8, 3)
        .message(9, &sizes(0))
        .message(10, &sizes(1024))
        .message(11, &sizes(256));
    for metric in 0..metrics {
        let value = f64::from(id) + f64::from(metric) / 8.0;
        let value = Message::new().double(3, value);
        launch = launch.message(13, &Message::new().number(1, metric.into()).message(2, &value));
    }
    let source = Message::new().number(1, 1);
    launch
        .number(14, 1_700_000_000)
        .message(15, &source)
        .number(22, 1)
        .number(23, 7)
}

/// A message with its size before it.
fn sized(message: &Message) -> Result<Vec<u8>> {
    let bytes = message.encoded();
    let size = u32::try_from(bytes.len())?;
    Ok([&size.to_le_bytes()[..], bytes].concat())
}
