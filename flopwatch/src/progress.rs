//! One line on the terminal that says what is being done; plain lines where standard error is no
//! terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Says what is being done.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    quiet: bool,
    shown: bool,
}

impl Progress {
    /// On standard error; a quiet one says nothing.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            quiet,
            shown: false,
        }
    }

    /// A stage began.
    pub(crate) fn stage(&mut self, text: &str) {
        if self.terminal {
            self.line(text);
        } else if !self.quiet {
            say(&format!("flopwatch: {text}\n"));
        }
    }

    /// Something that stays on the screen; a quiet one says it too.
    pub(crate) fn tell(&mut self, text: &str) {
        self.clear();
        say(&format!("flopwatch: {text}\n"));
    }

    /// The window is open, which is so long where that is known; only a terminal sees the seconds.
    pub(crate) fn window(&mut self, elapsed: Duration, length: Option<Duration>) {
        if !self.terminal {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        self.line(&match length {
            Some(length) => format!(
                "recording {:.1} of {} s",
                seconds.min(length.as_secs_f64()),
                length.as_secs()
            ),
            None => format!("recording {seconds:.1} s"),
        });
    }

    /// Takes the line away, so that other text can follow.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            say("\r\x1b[2K");
            self.shown = false;
        }
    }

    fn line(&mut self, text: &str) {
        if !self.quiet {
            say(&format!("\r\x1b[2Kflopwatch: {text}"));
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// With standard error closed there is nobody to tell.
fn say(text: &str) {
    let mut out = std::io::stderr().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
