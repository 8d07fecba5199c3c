//! Serves a timeline as a person would, and opens what it printed in a browser.
#![allow(
    clippy::print_stdout,
    reason = "a skip is told on standard output, where the recipe counts it"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A timeline of 7000 events, made by `flopwatch-trace-bench`.
const TIMELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/tests/data/synthetic.h5");

/// `flopwatch-agent serve`, and what it printed; it ends with this.
struct Serving {
    child: Child,
    urls: Vec<String>,
}

impl Serving {
    fn of(file: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flopwatch-agent"))
            .arg("serve")
            .arg(file)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let printed = child.stdout.take().expect("its output is ours");
        let mut urls = Vec::new();
        for line in BufReader::new(printed).lines().map_while(Result::ok) {
            if let Some(url) = line.trim().strip_prefix("http://") {
                urls.push(format!("http://{url}"));
            }
            if line.ends_with("timeline.h5") && !line.contains("?file=") {
                break;
            }
        }
        Self { child, urls }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The status and the body of what is at an address.
fn get(url: &str) -> (u16, Vec<u8>) {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer[head + 4..].to_vec())
}

#[test]
fn every_form_of_a_timeline_is_made_by_a_child_and_holds_the_same_events() {
    let serving = Serving::of(Path::new(TIMELINE));
    let base = serving.urls.last().unwrap().strip_suffix("timeline.h5").unwrap();
    let form = |name: &str| {
        let (status, body) = get(&format!("{base}{name}"));
        assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
        body
    };
    let lines = |body: Vec<u8>| String::from_utf8(body).unwrap().lines().count();
    let events = lines(form("timeline.csv")) - 1;
    assert_eq!(events, 7000);
    let samples = lines(form("samples.csv")) - 1;

    let mut trace = String::new();
    flate2::read::GzDecoder::new(form("timeline.json.gz").as_slice())
        .read_to_string(&mut trace)
        .unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    let of_phase = |phase: &str| {
        let entries = trace["traceEvents"].as_array().unwrap().iter();
        entries.filter(|entry| entry["ph"] == phase).count()
    };
    assert_eq!((of_phase("X"), of_phase("C")), (events, samples));

    let document: serde_json::Value = serde_json::from_slice(&form("events.json")).unwrap();
    assert_eq!(document["events"].as_array().unwrap().len(), events);
    assert_eq!(document["total_events"], events);

    for name in ["timeline.parquet", "samples.parquet"] {
        let body = form(name);
        assert!(body.starts_with(b"PAR1") && body.ends_with(b"PAR1"), "{name}");
    }
    // A trace is packets: field 1, length-delimited.
    assert_eq!(form("timeline.pftrace").first(), Some(&0x0a));
    let (status, body) = get(&format!("{base}timeline.xml"));
    assert_eq!(status, 404, "{}", String::from_utf8_lossy(&body));
}

#[test]
fn the_printed_address_shows_the_timeline_in_a_browser() {
    let Some(node) = std::env::var_os("FLOPWATCH_NODE") else {
        println!("skipped: FLOPWATCH_NODE names no Node that would drive a browser");
        return;
    };
    let serving = Serving::of(Path::new(TIMELINE));
    let url = serving.urls.first().unwrap();
    assert!(
        url.contains("/?file=") && url.ends_with("timeline.h5"),
        "the program was built without the viewer: {:?}",
        serving.urls
    );
    let output = Command::new(node)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../web/tests/served.mjs"))
        .arg(url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    for line in [
        "local - Flopwatch, kernels: 6000, drawn: true",
        "dropped file: open",
        "demo, kernels: 6000",
    ] {
        assert!(said.contains(line), "{said}");
    }
}
