//! Decimal text to integers, exactly: times of 1.7e15 us with three decimals do not fit a double.

/// `text` times ten to the power of `scale`, rounded half away from zero; `None` where it is no number or does not fit.
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
    use super::decimal;

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
}
