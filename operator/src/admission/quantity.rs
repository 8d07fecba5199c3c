//! Kubernetes quantities, as far as storage and memory need them.

/// Reads a quantity such as `512Mi`, `1.5G` or `2e9` as whole bytes, rounded down. None when it is
/// not one.
pub(super) fn bytes(quantity: &str) -> Option<u128> {
    let split = quantity
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at_checked(split)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let (multiplier, divisor): (u128, u128) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            (
                10_u128.checked_pow(exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?)?,
                1,
            )
        }
    };
    digits.checked_mul(multiplier)?.checked_div(scale.checked_mul(divisor)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_bytes() {
        let cases = [
            ("0", Some(0)),
            ("1024", Some(1024)),
            ("1.5Gi", Some(1_610_612_736)),
            ("200M", Some(200_000_000)),
            ("2e9", Some(2_000_000_000)),
            ("1E", Some(1_000_000_000_000_000_000)),
            ("1500m", Some(1)),
            ("", None),
            ("Gi", None),
            ("1x", None),
            ("1e99", None),
        ];
        for (quantity, expected) in cases {
            assert_eq!(bytes(quantity), expected, "{quantity}");
        }
    }
}
