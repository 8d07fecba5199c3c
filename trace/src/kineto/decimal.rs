//! Decimal text to integers, exactly: times of 1.7e15 us with three decimals do not fit a double.

use super::json::{Cursor, Scan};

/// The scalar that begins here as [`decimal`] reads it.
#[inline]
pub(super) fn read(cursor: &mut Cursor<'_>, scale: u32) -> Scan<Option<i64>> {
    if let Some(number) = plain(cursor, scale) {
        return Ok(Some(number));
    }
    let scale = i32::try_from(scale).unwrap_or(i32::MAX);
    Ok(decimal(cursor.scalar()?.text, scale))
}

/// The same where digits stand here, of which some may be a fraction, and behind them what ends a
/// value: as almost all numbers are. Otherwise the cursor stays.
#[inline]
pub(super) fn plain(cursor: &mut Cursor<'_>, scale: u32) -> Option<i64> {
    let text = cursor.rest();
    let (mut number, mut at) = digits(text)?;
    if at == 8 {
        let (low, more) = digits(text.get(8..)?)?;
        number = number * power(more)? + low;
        at += more;
    }
    let scale = usize::try_from(scale).ok()?;
    number = number.checked_mul(power(scale)?)?;
    if text.get(at) == Some(&b'.') {
        let (fraction, count) = digits(text.get(at + 1..)?).filter(|(_, count)| *count > 0)?;
        let more = if let Some(missing) = scale.checked_sub(count) {
            fraction * power(missing)?
        } else {
            let one = power(count - scale)?;
            fraction / one + u64::from(fraction % one >= one / 2)
        };
        number = number.checked_add(more)?;
        at += 1 + count;
    }
    if at == 0 || !matches!(text.get(at)?, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
        return None;
    }
    let number = i64::try_from(number).ok()?;
    cursor.advance(at);
    Some(number)
}

/// The number of up to eight digits that `text` begins with, and how many these are; `None` where
/// it has less than eight bytes. All are taken at once: numbers are of any length, and a processor
/// that guesses the length of each is wrong most of the time.
#[inline]
fn digits(text: &[u8]) -> Option<(u64, usize)> {
    const ONES: u64 = u64::MAX / 255;
    // Digits are 0 to 9 then, and nothing else is.
    let bytes = u64::from_le_bytes(*text.first_chunk::<8>()?) ^ (ONES * u64::from(b'0'));
    let others = (((bytes & (ONES * 0x7f)) + ONES * (0x80 - 10)) | bytes) & (ONES << 7);
    let count = others.trailing_zeros() / 8;
    // The last digit comes to the end, behind zeros.
    let mut number = bytes.checked_shl(64 - 8 * count).unwrap_or(0);
    // Two digits become one number, four, eight: the upper ones lie lower.
    number = (number * 10 + (number >> 8)) & 0x00ff_00ff_00ff_00ff;
    number = number.wrapping_mul(100).wrapping_add(number >> 16) & 0x0000_ffff_0000_ffff;
    number = number.wrapping_mul(10_000).wrapping_add(number >> 32) & 0xffff_ffff;
    Some((number, usize::try_from(count).ok()?))
}

/// Ten to the power of up to eight.
#[inline]
fn power(exponent: usize) -> Option<u64> {
    const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    POWERS.get(exponent).copied()
}

/// `text` times ten to the power of `scale`, rounded half away from zero; `None` where it is no
/// number or does not fit.
pub(super) fn decimal(text: &[u8], scale: i32) -> Option<i64> {
    let negative = text.first() == Some(&b'-');
    let signed = matches!(text.first(), Some(b'-' | b'+'));
    let digits = text.get(usize::from(signed)..).unwrap_or_default();
    let mut mantissa: u64 = 0;
    let mut exponent = scale;
    let mut seen = false;
    let mut fraction = false;
    let mut at = 0;
    while let Some(byte) = digits.get(at).copied() {
        match byte {
            // Nineteen digits always fit.
            b'0'..=b'9' if at < 19 => {
                seen = true;
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                exponent -= i32::from(fraction);
            }
            b'0'..=b'9' => {
                let grown = mantissa
                    .checked_mul(10)
                    .and_then(|ten| ten.checked_add(u64::from(byte - b'0')));
                match grown {
                    Some(grown) => {
                        mantissa = grown;
                        exponent -= i32::from(fraction);
                    }
                    // Digits behind the nineteenth decide nothing that fits.
                    None if fraction => {}
                    None => exponent = exponent.checked_add(1)?,
                }
            }
            b'.' if !fraction => fraction = true,
            b'e' | b'E' if seen => {
                let power = std::str::from_utf8(digits.get(at + 1..)?).ok()?.parse::<i32>().ok()?;
                exponent = exponent.checked_add(power)?;
                break;
            }
            _ => return None,
        }
        at += 1;
    }
    if !seen {
        return None;
    }
    let size = scaled(mantissa, exponent)?;
    if negative { size.checked_neg() } else { Some(size) }
}

fn scaled(mantissa: u64, exponent: i32) -> Option<i64> {
    if exponent == 0 {
        return i64::try_from(mantissa).ok();
    }
    if mantissa == 0 {
        return Some(0);
    }
    let power = 10_u64.checked_pow(exponent.unsigned_abs());
    let size = if exponent >= 0 {
        mantissa.checked_mul(power?)?
    } else {
        match power {
            Some(power) => mantissa / power + u64::from(mantissa % power >= power.div_ceil(2)),
            None => 0,
        }
    };
    i64::try_from(size).ok()
}

#[cfg(test)]
mod tests {
    use super::super::json::Cursor;
    use super::{decimal, plain, read};

    #[test]
    fn microseconds_become_nanoseconds_exactly() {
        for (text, ns) in [
            ("1661938466265032", Some(1_661_938_466_265_032_000)),
            ("4458676522690.655", Some(4_458_676_522_690_655)),
            ("1751410836000000.001", Some(1_751_410_836_000_000_001)),
            ("1682725898236567.0", Some(1_682_725_898_236_567_000)),
            ("1.5e3", Some(1_500_000)),
            ("0.0004", Some(0)),
            ("0.0005", Some(1)),
            ("-2.5", Some(-2500)),
            ("1661938466265032.12500000000000000000", Some(1_661_938_466_265_032_125)),
            ("0e99", Some(0)),
            ("1e-40", Some(0)),
            ("9e18", None),
            ("99999999999999999999999", None),
            ("1e99999999999", None),
            ("NaN", None),
            ("", None),
            ("-", None),
            ("1.2.3", None),
            ("12a", None),
        ] {
            assert_eq!(decimal(text.as_bytes(), 3), ns, "{text}");
        }
        assert_eq!(decimal(b"7.9", 0), Some(8));
        assert_eq!(decimal(b"24572", 0), Some(24572));
    }

    #[test]
    fn a_plain_number_is_what_the_whole_rule_says() {
        let texts = [
            "0",
            "7",
            "24572",
            "1661938466265032",
            "999999999999999999",
            "9223372036854775",
            "9223372036854776",
            "1.5",
            "1.0005",
            "1.00049999",
            "0.9999999",
            "12345678",
            "123456789",
            "1234567.12345678",
            "1.123456789",
            "4458676522690.655",
            "1661938466265032.12500000000000000000",
            "1.",
            ".5",
            "1.2.3",
            "12a",
            "1e3",
            "-1",
            "\"7\"",
            "NaN",
            "1234567890123456789012",
            "1844674407370955.9994",
        ];
        for (text, scale) in texts.iter().flat_map(|text| [0, 3, 4].map(|scale| (text, scale))) {
            for behind in [",", "}", "]", " ", "\n"] {
                let whole = format!("{text}{behind}        ");
                let mut cursor = Cursor::new(whole.as_bytes(), 0);
                let expected = decimal(text.trim_matches('"').as_bytes(), i32::try_from(scale).unwrap());
                if let Some(number) = plain(&mut cursor, scale) {
                    assert_eq!((Some(number), cursor.at()), (expected, text.len()), "{whole}");
                } else {
                    assert_eq!(cursor.at(), 0, "{whole}");
                    if *text != ".5" {
                        assert_eq!(read(&mut cursor, scale), Ok(expected), "{whole}");
                    }
                }
            }
        }
        let plainly = |text: &str| plain(&mut Cursor::new(text.as_bytes(), 0), 3);
        assert_eq!(plainly("4458676522690.655, \"dur\""), Some(4_458_676_522_690_655));
        assert_eq!(plainly("4458676522690.655"), None, "more digits may come");
    }
}
