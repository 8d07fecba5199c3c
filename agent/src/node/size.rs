//! Numbers of bytes on the command line.

/// Reads a number of bytes: digits, with an optional unit of KiB, MiB, GiB or TiB.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.strip_prefix(digits) {
        Some("") => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        Some("TiB") => 1 << 40,
        _ => return Err("the unit must be one of KiB, MiB, GiB, TiB, or none for bytes".to_owned()),
    };
    let number: u64 = digits
        .trim()
        .parse()
        .map_err(|_not_a_number| "must be a whole number, such as 2GiB".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("2147483648", Some(1 << 31)),
            ("2GiB", Some(1 << 31)),
            ("512 MiB", Some(1 << 29)),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
        for text in ["", "GiB", "2GB", "-1", "1.5GiB", "99999999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
