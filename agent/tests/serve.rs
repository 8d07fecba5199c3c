//! Serves a timeline as a person would, and opens what it printed in a browser.
#![allow(
    clippy::print_stdout,
    reason = "a skip is told on standard output, where the recipe counts it"
)]

use std::io::{BufRead as _, BufReader};
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
