//! Whose turn it is with a browser. Chromium takes both processors of a small machine, and a test
//! that holds an answer to a time fails beside several of them.

use std::fs::File;

/// The file that whoever has the turn holds locked, in the folder for temporary files.
const LOCK: &str = "flopwatch-tests-browser.lock";

/// A turn with a browser, of all test programs of the machine; it ends when this is dropped.
#[derive(Debug)]
pub struct BrowserTurn {
    _locked: File,
}

impl BrowserTurn {
    /// Waits until nobody has it. An asynchronous test waits on a thread of its own.
    pub fn take() -> Self {
        let path = std::env::temp_dir().join(LOCK);
        let file = File::options().create(true).append(true).open(path).unwrap();
        file.lock().unwrap();
        Self { _locked: file }
    }
}
