//! Names of operations without what tells one call from the next: `aten::to, op_id = 9` and
//! `aten::to, op_id = 10` are one operation.
//!
//! | rule | from | to |
//! |---|---|---|
//! | [`ATTRIBUTES`] that PyTorch appends to its NVTX ranges go, with their values | `aten::mm, seq = 3, op_id = 9` | `aten::mm` |
//! | a token after one of [`HASHED`] is a hash | `## Call CompiledFxGraph fq3z ##` | `## Call CompiledFxGraph * ##` |
//! | UUIDs | `job 0b0e7a3c-8d0a-4a8e-9d3f-5f2b7c6d1e00` | `job *` |
//! | addresses, and other hexadecimal numbers of 16 or more digits | `at 0x7f3a` | `at *` |
//! | numbers that no letter touches, with their decimals | `Step 12`, `layer_3`, `lr=0.001` | `Step *`, `layer_*`, `lr=*` |
//! | numbers behind one of [`COUNTERS`] | `iter12` | `iter*` |
//!
//! Digits that a letter touches are part of a name: `conv2d`, `AddmmBackward0`, `fp16` stay.

use std::borrow::Cow;
use std::ops::Range;

/// Stands for what was left out.
const HOLE: char = '*';

/// Attributes that `torch.autograd.profiler.emit_nvtx` appends to the name of an operator: a
/// number, or a list in brackets.
pub const ATTRIBUTES: &[&str] = &[", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "];

/// What stands before a token that differs from one compiled graph to the next.
pub const HASHED: &[&str] = &["CompiledFxGraph "];

/// Words that count when digits follow them at once.
pub const COUNTERS: &[&str] = &[
    "batch",
    "chunk",
    "epoch",
    "frame",
    "idx",
    "iter",
    "iteration",
    "microbatch",
    "rank",
    "request",
    "step",
];

/// Digits from which on a hexadecimal number is a hash or an address, and no word like `decade`.
const HASH_DIGITS: usize = 16;

/// Characters of a UUID.
const UUID_CHARACTERS: usize = 36;

/// `name` after the rules; borrowed where none applies.
pub fn normalised(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) && !HASHED.iter().any(|words| name.contains(words)) {
        return Cow::Borrowed(name);
    }
    let bare = without_attributes(name);
    let mut out = String::with_capacity(bare.len());
    let mut rest = bare.as_ref();
    while let Some(first) = rest.chars().next() {
        let hole = |taken: usize| rest.get(taken..).unwrap_or_default();
        if HASHED.iter().any(|words| out.ends_with(words)) {
            let token = rest.find(char::is_whitespace).unwrap_or(rest.len());
            out.push(HOLE);
            rest = hole(token);
        } else if !first.is_alphanumeric() {
            out.push(first);
            rest = hole(first.len_utf8());
        } else if let Some(taken) = uuid(rest).or_else(|| number(rest)) {
            out.push(HOLE);
            rest = hole(taken);
        } else {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            out.push_str(counter(word).unwrap_or(word));
            if counter(word).is_some() {
                out.push(HOLE);
            }
            rest = behind;
        }
    }
    if out == name {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(out)
    }
}

fn without_attributes(name: &str) -> Cow<'_, str> {
    let mut left = Cow::Borrowed(name);
    while let Some(attribute) = ATTRIBUTES.iter().find_map(|key| attribute(&left, key)) {
        left.to_mut().replace_range(attribute, "");
    }
    left
}

/// Where `name` has the attribute `key` with a value, followed by another attribute or nothing.
fn attribute(name: &str, key: &str) -> Option<Range<usize>> {
    name.match_indices(key).find_map(|(start, _)| {
        let value = name.get(start + key.len()..)?;
        let taken = if value.starts_with('[') {
            list(value)
        } else {
            value.bytes().take_while(u8::is_ascii_digit).count()
        };
        let behind = value.get(taken..)?;
        let ends = behind.is_empty() || behind.starts_with(',');
        (taken > 0 && ends).then_some(start..start + key.len() + taken)
    })
}

/// Bytes of the list in brackets that `text` begins with; all of it where the brackets do not
/// close, as in a name that was cut.
fn list(text: &str) -> usize {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => open += 1,
            b']' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// Bytes of the UUID that `text` begins with.
fn uuid(text: &str) -> Option<usize> {
    let candidate = text.as_bytes().get(..UUID_CHARACTERS)?;
    let fits = candidate.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (fits && ends(text, UUID_CHARACTERS)).then_some(UUID_CHARACTERS)
}

/// Bytes of the number that `text` begins with: an address, a hash, or digits with decimals.
fn number(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let hexadecimal = |from: usize| {
        let digits = bytes.iter().skip(from);
        digits.take_while(|byte| byte.is_ascii_hexdigit()).count()
    };
    if text.starts_with("0x") || text.starts_with("0X") {
        let taken = 2 + hexadecimal(2);
        return (taken > 2 && ends(text, taken)).then_some(taken);
    }
    let taken = hexadecimal(0);
    let digits = |part: &[u8]| part.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(bytes);
    if taken >= HASH_DIGITS && whole < taken && ends(text, taken) {
        let has_digit = bytes.iter().take(taken).any(u8::is_ascii_digit);
        return has_digit.then_some(taken);
    }
    if whole == 0 {
        return None;
    }
    let behind = bytes.get(whole..).unwrap_or_default();
    let decimals = match behind.split_first() {
        Some((b'.', decimals)) => digits(decimals),
        _ => 0,
    };
    let with_decimals = whole + 1 + decimals;
    if decimals > 0 && ends(text, with_decimals) {
        return Some(with_decimals);
    }
    ends(text, whole).then_some(whole)
}

/// Whether no letter or digit follows the first `taken` bytes.
fn ends(text: &str, taken: usize) -> bool {
    let behind = text.get(taken..).and_then(|rest| rest.chars().next());
    !behind.is_some_and(char::is_alphanumeric)
}

/// The word before the digits of `word`, where it is one that counts.
fn counter(word: &str) -> Option<&str> {
    let before = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let counts = COUNTERS.iter().any(|known| known.eq_ignore_ascii_case(before));
    (counts && before.len() < word.len()).then_some(before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_tells_calls_apart_goes() {
        let cases = [
            ("aten::to, op_id = 9", "aten::to"),
            (
                "aten::add, seq = 31, op_id = 102, sizes = [[8, 3], []], input_op_ids = [(99,0)]",
                "aten::add",
            ),
            ("aten::add, op_id = 1, sizes = [[8, 3", "aten::add"),
            ("## Call CompiledFxGraph fpq7xyz ##", "## Call CompiledFxGraph * ##"),
            ("Torch-Compiled Region: 0/1", "Torch-Compiled Region: */*"),
            ("job 0b0e7a3c-8d0a-4a8e-9d3f-5f2b7c6d1e00 done", "job * done"),
            ("buffer at 0x7f3a12, 5 left", "buffer at *, * left"),
            ("graph 9f86d081884c7d659a2feaa0c55ad015", "graph *"),
            ("Step 90 to 100", "Step * to *"),
            ("ProfilerStep#12", "ProfilerStep#*"),
            ("layer_3.attn", "layer_*.attn"),
            ("lr=0.001", "lr=*"),
            ("layers.12.mlp", "layers.*.mlp"),
            ("iter12", "iter*"),
            ("Step7", "Step*"),
        ];
        for (name, expected) in cases {
            assert_eq!(normalised(name), expected, "{name}");
        }
    }

    #[test]
    fn digits_of_a_word_and_words_of_hexadecimal_letters_stay() {
        for name in [
            "aten::conv2d",
            "AddmmBackward0",
            "cast fp16",
            "l2_norm",
            "cudaMemcpy2DAsync",
            "decade",
            "0xyz",
            "größe2",
            "",
            "deadbeefdeadbeef",
        ] {
            assert_eq!(normalised(name), name);
        }
    }

    proptest! {
        #[test]
        fn a_name_after_the_rules_stays_as_it_is(name in "([a-zä_ ,.#*=-]|[0-9]|, op_id = |0x|\\[|step){0,24}") {
            let once = normalised(&name).into_owned();
            prop_assert_eq!(normalised(&once), once.as_str());
        }

        #[test]
        fn calls_that_differ_by_a_number_are_one(word in "[a-z]{1,8}", a in any::<u32>(), b in any::<u32>()) {
            let named = |number: u32| normalised(&format!("{word} {number}, op_id = {number}")).into_owned();
            prop_assert_eq!(named(a), named(b));
        }
    }
}
