//! Names of kernels and ranges as files have them: bounded, and with a hash that other programs can
//! compute.

use std::borrow::Cow;

use twox_hash::XxHash64;

/// Most bytes of a name in a file. What is longer is cut, and ends with its hash, so that names
/// stay different.
pub const LONGEST_NAME: usize = 2_048;

/// Stands for the names of a device and category that have no row of their own.
pub const OTHER_NAMES: &str = "(other names)";

/// What a cut name has behind what is left of it: an ellipsis, a number sign, and 16 hexadecimal
/// digits.
const TAIL_BYTES: usize = 20;

/// XXH64 with the seed 0 of the name's UTF-8, as the bits of a signed number.
pub fn name_hash(name: &str) -> i64 {
    XxHash64::oneshot(0, name.as_bytes()).cast_signed()
}

/// The name as it is stored, and the hash of the whole of it.
pub(crate) fn stored(name: &str) -> (Cow<'_, str>, i64) {
    let hash = name_hash(name);
    if name.len() <= LONGEST_NAME {
        return (Cow::Borrowed(name), hash);
    }
    let kept = name.floor_char_boundary(LONGEST_NAME - TAIL_BYTES);
    let kept = name.get(..kept).unwrap_or_default();
    (Cow::Owned(format!("{kept}{}", tail(hash))), hash)
}

fn tail(hash: i64) -> String {
    format!("…#{:016x}", hash.cast_unsigned())
}

/// Whether a stored name has that hash, as far as can be told of one that was cut.
pub(crate) fn has_hash(name: &str, hash: i64) -> bool {
    name.len() <= LONGEST_NAME && (name_hash(name) == hash || name.ends_with(&tail(hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_xxh64_as_others_compute_it() {
        // The value of the reference implementation for no input, and of python-xxhash for a word.
        assert_eq!(name_hash("").cast_unsigned(), 0xef46_db37_51d8_e999);
        assert_eq!(name_hash("a").cast_unsigned(), 0xd24e_c4f1_a98c_6e5b);
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = |end: &str| format!("{}{end}", "é".repeat(LONGEST_NAME));
        let (one, two) = (long("1"), long("2"));
        let ((first, first_hash), (second, second_hash)) = (stored(&one), stored(&two));
        assert!(
            first.len() <= LONGEST_NAME && first.len() > LONGEST_NAME - 2,
            "{}",
            first.len()
        );
        assert_ne!((&first, first_hash), (&second, second_hash));
        assert!(has_hash(&first, first_hash) && has_hash(&second, second_hash));
        assert!(!has_hash(&first, second_hash) && !has_hash("gemm", first_hash));
        assert_eq!(stored("gemm"), (Cow::Borrowed("gemm"), name_hash("gemm")));
    }
}
