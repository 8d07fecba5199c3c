//! Texts in which XLA packs what CUPTI said of a kernel or copy:
//! `regs:32 static_shared:0 grid:64,1,1 block:256,1,1`.

/// What stands behind `name:` in `text`.
pub(super) fn word<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    text.split(u8::is_ascii_whitespace).find_map(|word| {
        let value = word.strip_prefix(name.as_bytes())?;
        value.strip_prefix(b":")
    })
}

/// The numbers behind `name:` in `text`; three at most, missing ones are 0.
pub(super) fn numbers(text: &[u8], name: &str) -> Option<[u64; 3]> {
    let word = word(text, name)?;
    let mut found = [0; 3];
    for (slot, part) in found.iter_mut().zip(word.split(|byte| *byte == b',')) {
        *slot = std::str::from_utf8(part).ok()?.parse().ok()?;
    }
    Some(found)
}

/// The first number behind any of these names.
pub(super) fn number(text: &[u8], names: &[&str]) -> u64 {
    names
        .iter()
        .find_map(|name| numbers(text, name))
        .map_or(0, |[first, ..]| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole() {
        let text = b" grid:16,2,1 block:512,1 private_mem:0 group_mem:64 regs:x dynamic_shared:99999999999999999999";
        assert_eq!(numbers(text, "grid"), Some([16, 2, 1]));
        assert_eq!(numbers(text, "block"), Some([512, 1, 0]));
        assert_eq!(numbers(text, "mem"), None);
        assert_eq!(numbers(text, "regs"), None);
        assert_eq!(number(text, &["static_shared", "group_mem"]), 64);
        assert_eq!(number(text, &["dynamic_shared"]), 0);
    }
}
