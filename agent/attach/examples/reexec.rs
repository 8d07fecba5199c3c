//! The smallest program that keeps the contract of `flopwatch_attach::reexec`: the tests start it
//! in the agent's place. With `work` before the rest it does the work of its sandboxes itself.
#![allow(clippy::print_stdout, reason = "the tests read what it says")]

use std::process::ExitCode;

use flopwatch_attach::reexec;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "work" => reexec::child_main_with(rest, inspect),
        _ => reexec::child_main(&arguments),
    }
}

/// Says what it can read of the files whose names it is given, and what it can write to.
fn inspect(words: &[String]) -> u8 {
    for word in words {
        if word == "abort" {
            std::process::abort();
        }
        match std::fs::read_to_string(word) {
            Ok(text) => println!("reads {word}: {}", text.trim()),
            Err(error) => println!("cannot read {word}: {:?}", error.kind()),
        }
        if std::fs::OpenOptions::new().append(true).open(word).is_ok() {
            println!("writes {word}");
        }
    }
    7
}
