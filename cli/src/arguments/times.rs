//! Times in whole seconds.

use std::fmt;
use std::str::FromStr;

use flopwatch_api::session::MAX_DURATION_SECONDS;

/// A time in whole seconds: a number, or one with `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub u32);

/// How a time is written.
const SPAN: &str = "write whole seconds, minutes, hours or days: 10s, 2m, 1h, 7d";

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit) = match text.find(|letter: char| !letter.is_ascii_digit()) {
            Some(at) => text.split_at(at),
            None => (text, "s"),
        };
        let factor = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Err(SPAN.to_owned()),
        };
        let number: u32 = digits.parse().map_err(|_not_one| SPAN.to_owned())?;
        number
            .checked_mul(factor)
            .map(Self)
            .ok_or_else(|| "that is too long".to_owned())
    }
}

/// Length of a window in seconds, within what a session may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window(pub i32);

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}s", self.0)
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Span(seconds) = text.parse()?;
        match i32::try_from(seconds) {
            Ok(seconds) if (1..=MAX_DURATION_SECONDS).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(format!("a window is 1 to {MAX_DURATION_SECONDS} seconds long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_within_the_bounds() {
        let window = |text: &str| text.parse::<Window>().map(|Window(seconds)| seconds).ok();
        let rows = [
            ("10", Some(10)),
            ("10s", Some(10)),
            ("5m", Some(300)),
            ("301", None),
            ("0", None),
            ("1h", None),
            ("1.5s", None),
            ("s", None),
            ("-1", None),
            ("9999999999", None),
        ];
        for (text, expected) in rows {
            assert_eq!(window(text), expected, "{text}");
        }
        assert_eq!("1h".parse(), Ok(Span(3600)));
        assert_eq!("7d".parse(), Ok(Span(604_800)));
        assert!("1193047h".parse::<Span>().is_err(), "more than fits");
    }
}
