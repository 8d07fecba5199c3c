//! Replaces what looks like a secret in strings that are about to be published.
//!
//! Names of kernels, ranges, threads and functions rarely hold secrets, but a program may put
//! anything into a range's name. Only well-known patterns are replaced: too much would make kernel
//! names unreadable.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, RegexSet, bytes};

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Each pattern's group `keep`, where it has one, stays: it says what was redacted. Words end at
/// bytes that are no letter of ASCII: of a text with other letters, or of bytes that are no text,
/// the regex engine finds the words of Unicode some hundred times slower.
const PATTERNS: &[&str] = &[
    // PEM: the header says it; everything behind it goes.
    r"(?s)-----BEGIN [A-Z0-9 ]*-----.*",
    // NAME=value and NAME: value where the name ends in a word for a secret.
    r#"(?i)(?P<keep>(?-u:\b)[a-z0-9_.-]*(?:token|secret|password|passwd|passphrase|api_?key|access_?key|access_?key_?id|private_?key|credentials?)["']?\s*[=:]\s*)(?:"[^"]+"|'[^']+'|[^\s"',;:&<>()\[]+)"#,
    // HTTP credentials.
    r"(?i)(?P<keep>(?-u:\b)(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}",
    // user:password@ and token@ of a URL.
    r"(?P<keep>(?-u:\b)[a-zA-Z][a-zA-Z0-9+.-]{0,20}://)[^\s/@]+(?P<tail>@)",
    // Issued tokens with a telling prefix.
    r"(?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
    r"(?-u:\b)gh[pousr]_[A-Za-z0-9]{16,}",
    r"(?-u:\b)github_pat_[A-Za-z0-9_]{20,}",
    r"(?-u:\b)glpat-[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)hf_[A-Za-z0-9]{16,}",
    r"(?-u:\b)sk-[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)xox[abprs]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    // A pattern that does not compile would silently redact nothing: the tests compile each.
    PATTERNS.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// Most texts hold no secret: one look for all patterns says so.
static ANY: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(PATTERNS).ok());

/// All patterns in one look, for bytes that need not be text.
static ANY_IN_BYTES: LazyLock<Option<bytes::RegexSet>> =
    LazyLock::new(|| bytes::RegexSetBuilder::new(PATTERNS).unicode(false).build().ok());

/// Whether something in `bytes`, which need not be text, looks like a secret.
pub fn holds_secret(bytes: &[u8]) -> bool {
    ANY_IN_BYTES.as_ref().is_none_or(|any| any.is_match(bytes))
}

/// `text` with every secret replaced, and how many there were.
pub fn redact(text: &str) -> (Cow<'_, str>, u64) {
    let mut out = Cow::Borrowed(text);
    let mut count = 0;
    if ANY.as_ref().is_some_and(|any| !any.is_match(text)) {
        return (out, count);
    }
    for pattern in COMPILED.iter() {
        let mut hits = 0;
        let replaced = pattern.replace_all(&out, |captures: &regex::Captures<'_>| {
            let part = |name| captures.name(name).map_or("", |group| group.as_str());
            hits += 1;
            format!("{}{REDACTED}{}", part("keep"), part("tail"))
        });
        if hits > 0 {
            out = Cow::Owned(replaced.into_owned());
            count += hits;
        }
    }
    (out, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), PATTERNS.len());
        assert!(ANY.is_some() && ANY_IN_BYTES.is_some());
    }

    #[test]
    fn known_secrets_are_replaced_and_counted() {
        let secrets = [
            ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
            ("load AWS_SECRET_ACCESS_KEY=abc/def+1 now", "abc/def+1"),
            ("DB_PASSWORD=hunter2", "hunter2"),
            ("MY_TOKEN=t0ps3cret", "t0ps3cret"),
            ("client_secret: \"x y\"", "x y"),
            ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
            ("ghp_0123456789abcdef0123", "ghp_0123456789abcdef0123"),
            ("glpat-0123456789abcdef0123", "glpat-0123456789abcdef0123"),
            ("hf_0123456789abcdefABCD", "hf_0123456789abcdefABCD"),
            ("key sk-proj-0123456789abcdef", "sk-proj-0123456789abcdef"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "MIIE"),
            ("GET https://user:pw@host/path", "user:pw"),
        ];
        for (text, secret) in secrets {
            let (out, count) = redact(text);
            assert!(!out.contains(secret), "{text} became {out}");
            assert!(out.contains(REDACTED), "{text} became {out}");
            assert!(count >= 1, "{text}");
            // Among bytes that are no text, and between letters of other alphabets.
            let amid = [b"\x80\xff\0".as_slice(), text.as_bytes(), b"\xc3\0"].concat();
            assert!(holds_secret(&amid), "{text}");
            let amid = format!("\u{e9}{text}");
            assert!(!redact(&amid).0.contains(secret), "{amid}");
        }
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in [
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, T2, T3)",
            "ampere_sgemm_128x64_tn",
            "cudaMemcpyAsync",
            "tokenizer.encode",
            "attention::token_mixer<float>(float*, int)",
            "step 12: forward",
            "std::pair<a, b>::operator=(const T&)",
        ] {
            assert_eq!(redact(name), (Cow::Borrowed(name), 0), "{name}");
            assert!(!holds_secret(name.as_bytes()), "{name}");
        }
    }
}
