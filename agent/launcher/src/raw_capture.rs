//! Names of raw captures: a collection of several ranges of a program leaves one for each, with its
//! number.

use std::ffi::OsStr;
use std::path::Path;

/// What follows the last dot of every raw capture's name.
const EXTENSION: &str = "qdstrm";
/// Digits of the largest number.
const DIGITS: usize = 4;

/// Splits the name of a raw capture into that of its collection and its number, 0 where it has
/// none: `x.qdstrm` and `x.2.qdstrm` are of `x`. None for another file.
pub fn split(file: &OsStr) -> Option<(&str, u32)> {
    let stem = Path::new(file.to_str()?).file_stem()?.to_str()?;
    if Path::new(file).extension()? != EXTENSION {
        return None;
    }
    Some(split_stem(stem))
}

/// Splits a raw capture's name without its extension into that of its collection and its number, 0
/// where it has none.
pub fn split_stem(stem: &str) -> (&str, u32) {
    let number = |digits: &str| {
        let is_number = (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    stem.rsplit_once('.')
        .and_then(|(name, digits)| Some((name, number(digits)?)))
        .unwrap_or((stem, 0))
}

/// Whether `file` is a raw capture of the collection that writes to `output`, a name that ends on
/// `.qdstrm`.
pub fn is_of(file: &OsStr, output: &OsStr) -> bool {
    file == output
        || split(output).is_some_and(|(_, number)| number == 0)
            && split(file).map(|(name, _)| name) == split(output).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_into_its_collection_and_its_number() {
        for (file, found) in [
            ("x.qdstrm", Some(("x", 0))),
            ("x.2.qdstrm", Some(("x", 2))),
            ("capture-0-1.12.qdstrm", Some(("capture-0-1", 12))),
            ("x.y.qdstrm", Some(("x.y", 0))),
            ("x.-2.qdstrm", Some(("x.-2", 0))),
            ("x.99999.qdstrm", Some(("x.99999", 0))),
            ("x.nsys-rep", None),
            ("x", None),
        ] {
            assert_eq!(split(OsStr::new(file)), found, "{file}");
        }
    }

    #[test]
    fn a_collection_has_what_has_its_name_and_nothing_else() {
        let is_of = |file: &str, output: &str| is_of(OsStr::new(file), OsStr::new(output));
        assert!(is_of("x.qdstrm", "x.qdstrm") && is_of("x.7.qdstrm", "x.qdstrm"));
        assert!(!is_of("xy.qdstrm", "x.qdstrm") && !is_of("x.7.log", "x.qdstrm"));
        assert!(is_of("x.7.qdstrm", "x.7.qdstrm") && !is_of("x.qdstrm", "x.7.qdstrm"));
    }
}
