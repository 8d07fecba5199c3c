//! The count, as a program publishes it for Prometheus.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;

use anyhow::Context as _;

use super::{RANGES, RANGES_PER_STEP};

/// Most lines of a request.
const MAX_LINES: usize = 100;

/// Answers each request at a port with the steps so far, until the process ends.
pub(crate) fn serve(port: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port)).context("listen for readers of the count")?;
    std::thread::Builder::new()
        .name("exposition".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // One reader after the other; one that ends early is no harm.
                drop(answer(&stream));
            }
        })
        .context("start a thread for readers of the count")?;
    Ok(())
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    let mut requests = BufReader::new(stream).lines();
    let mut writer = stream;
    loop {
        let mut lines = 0;
        loop {
            let Some(line) = requests.next().transpose()? else {
                return Ok(());
            };
            lines += 1;
            if lines > MAX_LINES {
                return Ok(());
            }
            if line.is_empty() {
                break;
            }
        }
        let steps = RANGES.load(Ordering::Relaxed) / RANGES_PER_STEP;
        let page = format!("# TYPE sample_steps_total counter\nsample_steps_total{{worker=\"all\"}} {steps}\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: ";
        writer.write_all(format!("{head}{}\r\n\r\n{page}", page.len()).as_bytes())?;
    }
}
