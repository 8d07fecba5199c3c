//! A text, and how far it was read.

use crate::hlo::ReadError;

/// What names of computations and instructions are made of.
pub(super) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What is wrong here.
    pub(super) fn fails(&self, what: &'static str) -> ReadError {
        let read = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let line = read.split(|byte| *byte == b'\n').count();
        ReadError::Text { line, what }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes behind white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("/*") {
                return;
            }
            self.at += trimmed.find("*/").map_or(trimmed.len(), |end| end + 2);
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    /// The very next byte.
    pub(super) fn next(&self) -> Option<u8> {
        self.rest().as_bytes().first().copied()
    }

    /// Whether `token` is next; it is taken then.
    pub(super) fn takes(&mut self, token: &str) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    /// Takes `token`, or fails with `what`.
    pub(super) fn wants(&mut self, token: &str, what: &'static str) -> Result<(), ReadError> {
        if self.takes(token) {
            return Ok(());
        }
        Err(self.fails(what))
    }

    /// A name or another word; empty where none is next.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip();
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| is_of_name(*byte)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// A name, which may have `%` in front.
    pub(super) fn name(&mut self) -> &'a str {
        self.takes("%");
        self.word()
    }

    /// All up to one of `ends` that is in no brackets and no quotes, or up to a bracket that closes
    /// what was opened before.
    pub(super) fn raw(&mut self, ends: &[u8]) -> &'a str {
        let rest = self.rest();
        let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
        let end = rest.bytes().position(|byte| {
            if is_quoted {
                let ends_quote = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                is_quoted = !ends_quote;
                return false;
            }
            if depth == 0 && ends.contains(&byte) {
                return true;
            }
            match byte {
                b'"' => is_quoted = true,
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => match depth.checked_sub(1) {
                    Some(around) => depth = around,
                    None => return true,
                },
                _ => {}
            }
            false
        });
        let (raw, _) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
        self.at += raw.len();
        raw
    }

    /// `key=value` of a list that commas part.
    pub(super) fn attribute(&mut self) -> Result<(&'a str, &'a str), ReadError> {
        let key = self.word();
        if key.is_empty() {
            return Err(self.fails("an attribute has no name"));
        }
        self.wants("=", "an attribute has no value")?;
        Ok((key, self.raw(b",\n").trim()))
    }

    /// `key=value` of a list that blanks part, as in `metadata={op_name="dot" source_line=3}`;
    /// `None` where no other is there.
    pub(super) fn pair(&mut self) -> Option<(&'a str, &'a str)> {
        self.takes(",");
        let key = self.word();
        (!key.is_empty() && self.takes("=")).then(|| (key, self.raw(b" ,\n")))
    }
}
