//! What a recipe tells its caller: progress on standard error, results on standard output.

use crate::meter::Measured;
use std::fmt::Display;
use std::time::Duration;

/// Prints one line of progress.
pub fn say(line: impl Display) {
    eprintln!("xtask: {line}");
}

/// Prints a result, the only thing a recipe writes to standard output.
pub fn result(line: impl Display) {
    use std::io::Write as _;
    // Whoever closed the pipe wants no more of it.
    writeln!(std::io::stdout(), "{line}").ok();
}

/// Runs one named step and prints how long it took; [`steps`](crate::meter::steps) has its figures
/// then.
pub fn step<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let measured = Measured::begin();
    say(format_args!("{name} ..."));
    let outcome = work();
    let verdict = if outcome.is_ok() { "done" } else { "FAILED" };
    say(format_args!("{name}: {verdict} in {}", human(measured.end(name))));
    outcome
}

/// A duration as people read it: `0.4 s`, `12.3 s`, `4 min 05 s`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (milliseconds, text) in [
            (0, "0.0 s"),
            (1_250, "1.2 s"),
            (59_000, "59.0 s"),
            (245_000, "4 min 05 s"),
        ] {
            assert_eq!(human(Duration::from_millis(milliseconds)), text);
        }
    }
}
