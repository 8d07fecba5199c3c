//! Gzip as `gzip -d` reads it: one member after another, and zeros behind them.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// First bytes of every member.
pub(crate) const MAGIC: &[u8] = b"\x1f\x8b";

/// The text of all members. Zeros behind a member, with which blocks of a device are filled up, are
/// not one.
pub(crate) struct Members<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    /// The members of `packed`, which begins with one.
    pub(crate) fn new(packed: R) -> Self {
        Self {
            member: Some(GzDecoder::new(packed)),
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            // The member is over.
            let Some(member) = self.member.take() else { break };
            let mut rest = member.into_inner();
            self.member = holds_more(&mut rest)?.then(|| GzDecoder::new(rest));
        }
        Ok(0)
    }
}

/// Takes zeros; whether something is behind them.
fn holds_more(rest: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = match rest.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_more = zeros < bytes.len();
        rest.consume(zeros);
        if is_more {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    }

    fn text_of(packed: &[u8], buffer: usize) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        let read = Members::new(BufReader::with_capacity(buffer, packed)).read_to_end(&mut text);
        (text, read.is_ok())
    }

    #[test]
    fn members_follow_each_other_and_zeros_are_none() {
        let zeros = vec![0; 10_000];
        let (one, other, empty) = (packed(b"one "), packed(b"other"), packed(b""));
        let files: [[&[u8]; 4]; 4] = [
            [&one, &other, &[], &[]],
            [&one, &other, &zeros, &[]],
            [&one, &zeros, &other, &[0]],
            [&one, &empty, &other, &empty],
        ];
        for parts in files {
            for buffer in [1, 7, 1 << 16] {
                assert_eq!(text_of(&parts.concat(), buffer), (b"one other".to_vec(), true));
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_no_member_is_an_error_behind_the_text() {
        let one = packed(b"one");
        let mut no_member = one.clone();
        no_member.extend(b"\0\0more");
        let mut cut_header = one.clone();
        cut_header.extend(&one[..4]);
        for bytes in [no_member, cut_header, one[..one.len() - 3].to_vec()] {
            assert_eq!(text_of(&bytes, 64), (b"one".to_vec(), false), "{bytes:?}");
        }
    }
}
