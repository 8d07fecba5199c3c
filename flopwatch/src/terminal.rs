//! What standard output is: a terminal of some width, or a pipe or file.

use anstream::{AutoStream, ColorChoice};
use flopwatch_report::Layout;
use terminal_size::{Width, terminal_size_of};

/// What is printed on: on a terminal as wide as it is, unless `wide` asks for all. `NO_COLOR` and
/// its like are heard.
pub(crate) fn layout(wide: bool) -> Layout {
    let out = std::io::stdout();
    let size = terminal_size_of(&out).filter(|_| !wide);
    Layout {
        columns: size.map(|(Width(columns), _)| usize::from(columns)),
        colors: AutoStream::choice(&out) != ColorChoice::Never,
    }
}
