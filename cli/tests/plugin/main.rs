//! The program as a user runs it, against an API server and a gateway of the tests' own on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod api_server;
mod doctor;
mod fetching;
mod gateway;
mod sessions;

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// What came of running the program.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// Runs the program with these words and this kubeconfig, in a folder of its own.
async fn run(kubeconfig: &Path, folder: &Path, words: &str) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-flopwatch"))
        .args(words.split(' ').filter(|word| !word.is_empty()))
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_mins(1), output).await;
    let output = output.expect("the program ends in time").unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
