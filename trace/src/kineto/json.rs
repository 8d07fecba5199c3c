//! A scanner over JSON text that keeps nothing: it gives slices of the input and positions.
//!
//! It is lenient where profilers are careless (`NaN`, control characters in strings) and strict in
//! structure, so that a string whose quotes were not escaped is noticed where it happens and not
//! many events later.

/// Why a scan ended before its value did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The input ends inside the value.
    More,
    /// What stands at this position cannot stand there.
    Bad(usize),
}

/// What a scan gives.
pub(super) type Scan<T> = Result<T, Stop>;

/// Arrays and objects within each other, beyond which input counts as damaged. Profilers write four
/// or five.
const MAX_DEPTH: u32 = 96;

/// A value that is neither array nor object: its text, without quotes where it had them, escapes as
/// they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scalar<'a> {
    pub(super) text: &'a [u8],
    pub(super) quoted: bool,
}

/// A position in JSON text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    repair: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// Which bytes numbers and words are made of: one load each, where ranges are six comparisons.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let (mut at, mut byte) = (0, 0_u8);
    while at < table.len() {
        table[at] = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_');
        (at, byte) = (at + 1, byte.wrapping_add(1));
    }
    table
};

fn is_token(byte: u8) -> bool {
    TOKEN.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Where the first quote or backslash stands. Most strings are keys of a few letters, shorter than
/// the search of many bytes at once takes to begin, so the first eight are looked at as one number.
#[inline]
fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let Some(first) = text.first_chunk::<8>() else {
        return memchr::memchr2(b'"', b'\\', text);
    };
    let eight = u64::from_le_bytes(*first);
    // The lowest marked byte is zero for certain; only those above it may be marked by a borrow.
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let found = zero_bytes(eight ^ (ONES * u64::from(b'"'))) | zero_bytes(eight ^ (ONES * u64::from(b'\\')));
    if found != 0 {
        return usize::try_from(found.trailing_zeros() / 8).ok();
    }
    memchr::memchr2(b'"', b'\\', text.get(8..)?).map(|at| at + 8)
}

impl<'a> Cursor<'a> {
    /// Starts at `at`.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            repair: false,
        }
    }

    /// Starts at `at`; a quote ends a string only where JSON could go on behind it, so that most
    /// strings with quotes inside are taken whole.
    pub(super) fn repairing(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            repair: true,
        }
    }

    /// Offset of the cursor, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The byte at the cursor.
    pub(super) fn peek(&self) -> Scan<u8> {
        self.bytes.get(self.at).copied().ok_or(Stop::More)
    }

    /// Steps over one byte.
    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    /// Steps over `bytes`, which were [looked at](Cursor::ahead) before.
    #[inline]
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The next bytes, where there are so many.
    #[inline]
    pub(super) fn ahead<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.rest().first_chunk()
    }

    /// All that comes.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// What was stepped over since it stood at `from`.
    pub(super) fn since(&self, from: usize) -> &'a [u8] {
        self.bytes.get(from..self.at).unwrap_or_default()
    }

    /// Skips white space; the byte that follows.
    #[inline]
    pub(super) fn token(&mut self) -> Scan<u8> {
        loop {
            let byte = self.peek()?;
            if !is_space(byte) {
                return Ok(byte);
            }
            self.at += 1;
        }
    }

    /// Skips white space and the byte `wanted`.
    #[inline]
    pub(super) fn expect(&mut self, wanted: u8) -> Scan<()> {
        if self.token()? != wanted {
            return Err(Stop::Bad(self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// The inside of the string that begins here, escapes as they are.
    #[inline]
    pub(super) fn string(&mut self) -> Scan<&'a [u8]> {
        self.expect(b'"')?;
        let first = self.at;
        loop {
            let Some(found) = quote_or_backslash(self.rest()) else {
                return Err(Stop::More);
            };
            let at = self.at + found;
            if self.bytes.get(at) == Some(&b'\\') {
                self.at = at + 2;
                continue;
            }
            self.at = at + 1;
            if !self.repair || self.ends_here()? {
                return Ok(self.bytes.get(first..at).unwrap_or_default());
            }
        }
    }

    /// Whether JSON could go on after a string that ends before this position.
    fn ends_here(&self) -> Scan<bool> {
        let mut behind = self.clone();
        match behind.token()? {
            b':' | b'}' | b']' => Ok(true),
            b',' => {
                behind.step();
                let next = behind.token()?;
                Ok(
                    matches!(next, b'"' | b'{' | b'[' | b'-' | b't' | b'f' | b'n' | b'N' | b'I')
                        || next.is_ascii_digit(),
                )
            }
            _ => Ok(false),
        }
    }

    /// The scalar that begins here.
    #[inline]
    pub(super) fn scalar(&mut self) -> Scan<Scalar<'a>> {
        if self.token()? == b'"' {
            let text = self.string()?;
            return Ok(Scalar { text, quoted: true });
        }
        let first = self.at;
        while is_token(self.peek()?) {
            self.at += 1;
        }
        if first == self.at {
            return Err(Stop::Bad(first));
        }
        let text = self.since(first);
        Ok(Scalar { text, quoted: false })
    }

    /// Skips the value that begins here; its text.
    pub(super) fn value(&mut self) -> Scan<&'a [u8]> {
        self.token()?;
        let first = self.at;
        self.skip(0)?;
        Ok(self.since(first))
    }

    #[inline]
    fn skip(&mut self, depth: u32) -> Scan<()> {
        match self.token()? {
            b'{' => self.skip_inside(b'}', true, depth),
            b'[' => self.skip_inside(b']', false, depth),
            _ => self.scalar().map(drop),
        }
    }

    fn skip_inside(&mut self, close: u8, keys: bool, depth: u32) -> Scan<()> {
        if depth >= MAX_DEPTH {
            return Err(Stop::Bad(self.at));
        }
        self.at += 1;
        if self.token()? == close {
            self.at += 1;
            return Ok(());
        }
        loop {
            if keys {
                self.string()?;
                self.expect(b':')?;
            }
            self.skip(depth + 1)?;
            if self.follows(close)? {
                return Ok(());
            }
        }
    }

    /// Between two members: steps over the comma, or over `close`, and says whether it was `close`.
    #[inline]
    pub(super) fn follows(&mut self, close: u8) -> Scan<bool> {
        let byte = self.token()?;
        if byte != b',' && byte != close {
            return Err(Stop::Bad(self.at));
        }
        self.at += 1;
        Ok(byte == close)
    }

    /// Enters an object or array that begins here with `open`; whether it has any member.
    #[inline]
    pub(super) fn enter(&mut self, open: u8, close: u8) -> Scan<bool> {
        self.expect(open)?;
        if self.token()? == close {
            self.at += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// The key of a member that begins here; stands on its value afterwards.
    #[inline]
    pub(super) fn key(&mut self) -> Scan<&'a [u8]> {
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key)
    }
}

/// The text of a string's inside, escapes resolved; what is no valid escape stays as it is.
pub(super) fn unescape(raw: &[u8]) -> String {
    if !raw.contains(&b'\\') {
        return String::from_utf8_lossy(raw).into_owned();
    }
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).unwrap_or_else(|_| String::from_utf8_lossy(raw).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_ends() {
        for (text, length) in [
            ("1,", 1),
            ("-1.5e3}", 6),
            ("NaN ,", 3),
            ("-Infinity]", 9),
            (r#""a\"b" ,"#, 6),
            (r#"{"a": [1, {"b": "]"}], "c": null} "#, 33),
            ("[ ] ", 3),
            ("{}", 2),
        ] {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            assert_eq!(cursor.value().map(<[u8]>::len), Ok(length), "{text}");
        }
    }

    #[test]
    fn a_quote_is_found_wherever_it_stands() {
        for filler in [b'a', b'!', b'#', b'[', b']', 0, 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
            for length in 0..24 {
                for (at, mark) in (0..length).flat_map(|at| [(at, b'"'), (at, b'\\')]) {
                    let mut text = vec![filler; length];
                    text[at] = mark;
                    text[length - 1] = b'"';
                    let expected = text.iter().position(|byte| matches!(byte, b'"' | b'\\'));
                    assert_eq!(quote_or_backslash(&text), expected, "{text:?}");
                }
            }
            assert_eq!(quote_or_backslash(&[filler; 20]), None);
        }
    }

    #[test]
    fn every_beginning_of_a_value_asks_for_more() {
        let text = r#"{"a": [1, {"b": "]\"\\"}, 2.5, "x"], "c": null}"#;
        for end in 0..text.len() {
            assert_eq!(
                Cursor::new(&text.as_bytes()[..end], 0).value(),
                Err(Stop::More),
                "{end}"
            );
        }
    }

    #[test]
    fn damage_is_found_where_it_is() {
        for (text, at) in [
            (r#"{"a": "b" c"}"#, 10),
            ("[1 2]", 3),
            ("{1: 2}", 1),
            ("[1}", 2),
            ("{\"a\" 1}", 5),
        ] {
            assert_eq!(Cursor::new(text.as_bytes(), 0).value(), Err(Stop::Bad(at)), "{text}");
        }
        let deep = "[".repeat(1000);
        assert_eq!(Cursor::new(deep.as_bytes(), 0).value(), Err(Stop::Bad(96)));
    }

    #[test]
    fn a_repairing_cursor_takes_strings_with_quotes_in_them_whole() {
        let text = br#""say "hello", world", "next""#;
        assert_eq!(Cursor::repairing(text, 0).string(), Ok(&br#"say "hello", world"#[..]));
    }

    #[test]
    fn escapes_are_resolved_and_wrong_ones_kept() {
        for (raw, text) in [
            (r"a\u00e9\n", "a\u{e9}\n"),
            (r#"a\"b"#, "a\"b"),
            (r"a\qb", r"a\qb"),
            ("plain", "plain"),
        ] {
            assert_eq!(unescape(raw.as_bytes()), text);
        }
    }
}
