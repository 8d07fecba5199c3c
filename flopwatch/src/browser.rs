//! The user's browser: an address is shown there by the program that desktops have for it.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Program that opens an address in the browser that the user chose.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Variables one of which says that there is a browser to show something in.
const DISPLAYS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"];

/// Longest wait for the opener. One that still runs then has become the browser.
const OPENER_TIMEOUT: Duration = Duration::from_secs(10);

/// Why no browser was opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no display, as over SSH.
    #[error(
        "no browser was opened, for there is no display: open the address where your browser is \
         (over SSH, after `ssh -L PORT:127.0.0.1:PORT` with the port of the address)"
    )]
    NoDisplay,
    /// The opener is not installed.
    #[error("no browser was opened, for {OPENER} is not installed: open the address yourself")]
    NotInstalled,
    /// The opener cannot be started.
    #[error("no browser was opened, for {OPENER} cannot be started: {0}: open the address yourself")]
    Start(#[source] io::Error),
    /// The opener failed.
    #[error("no browser was opened, for {OPENER} failed ({0}): open the address yourself")]
    Failed(ExitStatus),
}

/// Shows the address `url` in the user's browser.
pub async fn open(url: &str) -> Result<(), Error> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(not(target_os = "macos")) && !DISPLAYS.into_iter().any(is_set) {
        return Err(Error::NoDisplay);
    }
    let mut opener = Command::new(OPENER);
    opener
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A Ctrl-C that ends the service does not end the browser.
        .process_group(0);
    let mut child = opener.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotInstalled,
        _ => Error::Start(error),
    })?;
    match timeout(OPENER_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(Error::Failed(status)),
        Ok(Err(error)) => Err(Error::Start(error)),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}
