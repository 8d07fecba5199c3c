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

/// Digits, with at most one point among them, at the begin of `text`: the number times ten to the power of `scale`, and how many bytes
/// it takes. `None` where it may be written in another way or go on, which [`decimal`] knows.
#[inline]
pub(super) fn plain(text: &[u8], scale: i32) -> Option<(i64, usize)> {
    let (mut mantissa, whole) = digits(text, 0)?;
    let (mut length, mut exponent) = (whole, scale);
    if text.get(whole) == Some(&b'.') {
        let (longer, fraction) = digits(text.get(whole + 1..)?, mantissa)?;
        length += 1 + fraction;
        exponent -= i32::try_from(fraction).ok()?;
        mantissa = longer;
    }
    // Eighteen digits and a point always fit.
    if whole == 0 || length > 19 || !matches!(text.get(length)?, b',' | b'}' | b']' | b' ' | b'\n') {
        return None;
    }
    Some((scaled(mantissa, exponent)?, length))
}

/// The digits at the begin of `text` behind those of `mantissa`, eight at a time, and how many they are; too many give any number.
#[inline]
fn digits(text: &[u8], mut mantissa: u64) -> Option<(u64, usize)> {
    const ONES: u64 = u64::MAX / 255;
    /// 10^0 to 10^8.
    const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let mut length = 0;
    loop {
        let values = u64::from_le_bytes(*text.get(length..)?.first_chunk()?) ^ (ONES * u64::from(b'0'));
        // The highest bit of each byte that is more than nine.
        let others = (values.wrapping_add(ONES * 0x76) | values) & (ONES << 7);
        let count = others.trailing_zeros() / 8;
        let values = values.checked_shl(64 - 8 * count).unwrap_or(0);
        let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
        let upper = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
        let lower = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
        let eight = upper.wrapping_add(lower) >> 32;
        let count = usize::try_from(count).ok()?;
        mantissa = mantissa.wrapping_mul(*POWERS.get(count)?).wrapping_add(eight);
        length += count;
        if count < 8 {
            return Some((mantissa, length));
        }
    }
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
    use super::{decimal, plain};

    #[test]
    fn plain_numbers_are_those_of_any_text() {
        // A linear congruential generator.
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((state >> 33) % below).unwrap()
        };
        for _ in 0..200_000 {
            let length = random(24);
            let alphabet = [&b"0123456789."[..], &b"0123456789.-+eE/:aN \xb3"[..]][random(2)];
            let text: Vec<u8> = (0..length)
                .map(|_| alphabet[random(u64::try_from(alphabet.len()).unwrap())])
                .collect();
            let behind = [&text[..], b",\"0000000000"].concat();
            for scale in [0, 3] {
                if let Some((number, bytes)) = plain(&behind, scale) {
                    assert_eq!(decimal(&text[..bytes], scale), Some(number), "{text:?}");
                    assert!(bytes == text.len() || text[bytes] == b' ', "{text:?}");
                }
            }
        }
        for (text, scale, number) in [
            ("4458676522690.655", 3, 4_458_676_522_690_655),
            ("0", 0, 0),
            ("12345678", 0, 12_345_678),
            ("123456789.5", 0, 123_456_790),
            ("123456789012345678", 0, 123_456_789_012_345_678),
        ] {
            assert_eq!(
                plain(format!("{text}, 12345678").as_bytes(), scale),
                Some((number, text.len()))
            );
        }
    }

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
