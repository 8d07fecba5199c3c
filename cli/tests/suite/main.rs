//! The program as a user runs it, against a cluster and a gateway of the tests' own on loopback;
//! and its manifest for krew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod cluster;
mod compare;
mod doctor;
mod fetching;
mod gateway;
mod krew;
mod mcp;
mod parts;
mod pipe;
mod schedules;
mod sessions;
mod top;

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

/// What came of running the program.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// Runs the program with these words and this kubeconfig, in a folder of its own. `hear` is told
/// each line that it writes to standard error, as it comes.
async fn run(kubeconfig: &Path, folder: &Path, words: &str, mut hear: impl FnMut(&str)) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-flopwatch"))
        .args(words.split(' ').filter(|word| !word.is_empty()))
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let read = async {
        stdout.read_to_string(&mut out).await.unwrap();
    };
    let heard = async {
        let mut line = String::new();
        while stderr.read_line(&mut line).await.unwrap() > 0 {
            hear(line.trim());
            err.push_str(&line);
            line.clear();
        }
    };
    let ended = async { tokio::join!(read, heard, child.wait()) };
    let ended = tokio::time::timeout(std::time::Duration::from_mins(1), ended).await;
    let ((), (), status) = ended.expect("the program ends in time");
    let code = status.unwrap().code().unwrap_or(-1);
    Ran { code, out, err }
}
