//! The answer of a profiler service, as it was written to a file: a message that may have more
//! bytes than there is memory.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use crate::grpc::PREFIX_BYTES;

/// The result in a `ProfileResponse`.
const XSPACE_FIELD: u64 = 8;
/// Most fields of an answer.
const MAX_FIELDS: usize = 4096;

/// Why an answer is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// The answer is not exactly one uncompressed message.
    #[error("the profiler service's answer is no message: {0}")]
    Malformed(&'static str),
    /// The answer's file cannot be read, or the result cannot be written.
    #[error("the profiler service's answer cannot be taken apart")]
    Io(#[from] io::Error),
}

/// Copies the result out of an answer: none where it holds none, because the service wrote it to
/// its own disk. Returns its bytes.
pub(super) fn extract(answer: impl Read + Seek, result: &mut dyn Write) -> Result<u64, AnswerError> {
    let mut answer = BufReader::new(answer);
    let end = answer.seek(SeekFrom::End(0))?;
    answer.rewind()?;
    let mut prefix = [0; PREFIX_BYTES];
    answer
        .read_exact(&mut prefix)
        .map_err(|_short| AnswerError::Malformed("it ends in its prefix"))?;
    let [compressed, length @ ..] = prefix;
    if compressed != 0 {
        return Err(AnswerError::Malformed("it is compressed"));
    }
    let mut at = u64::try_from(PREFIX_BYTES).unwrap_or_default();
    if u64::from(u32::from_be_bytes(length)) != end - at {
        return Err(AnswerError::Malformed("its length is another"));
    }
    let mut taken = 0;
    for _ in 0..MAX_FIELDS {
        if at == end {
            return Ok(taken);
        }
        let (key, bytes) = varint(&mut answer)?;
        at += bytes;
        match key & 7 {
            0 => at += varint(&mut answer)?.1,
            2 => {
                let (length, bytes) = varint(&mut answer)?;
                at += bytes;
                if length > end.saturating_sub(at) {
                    return Err(AnswerError::Malformed("a field is longer than it"));
                }
                if key >> 3 == XSPACE_FIELD {
                    // One that comes twice is one after the other, which is how messages are
                    // merged.
                    taken += io::copy(&mut (&mut answer).take(length), result)?;
                } else {
                    answer.seek_relative(i64::try_from(length).unwrap_or(i64::MAX))?;
                }
                at += length;
            }
            _ => return Err(AnswerError::Malformed("a field has an unknown type")),
        }
    }
    Err(AnswerError::Malformed("it has too many fields"))
}

/// A number, and how many bytes it took.
fn varint(from: &mut impl Read) -> Result<(u64, u64), AnswerError> {
    let mut value = 0;
    for at in 0..9_u64 {
        let mut byte = [0];
        from.read_exact(&mut byte)
            .map_err(|_short| AnswerError::Malformed("it ends in a number"))?;
        let [byte] = byte;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Ok((value, at + 1));
        }
    }
    Err(AnswerError::Malformed("a number is too long"))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], message].concat()
    }

    fn result(answer: &[u8]) -> Result<Vec<u8>, String> {
        let mut result = Vec::new();
        let taken = extract(Cursor::new(answer), &mut result).map_err(|error| error.to_string())?;
        assert_eq!(taken, u64::try_from(result.len()).unwrap());
        Ok(result)
    }

    #[test]
    fn the_result_is_taken_and_what_is_beside_it_stepped_over() {
        let message = b"\x32\x03old\x38\x01\x42\x04abcd\x38\x00\x42\x02ef";
        assert_eq!(result(&framed(message)).unwrap(), b"abcdef");
        assert_eq!(result(&framed(b"\x38\x01")).unwrap(), b"");
        assert_eq!(result(&framed(b"")).unwrap(), b"");
    }

    #[test]
    fn an_answer_that_is_damaged_is_refused_with_what_is_wrong() {
        let mut compressed = framed(b"");
        compressed[0] = 1;
        let mut longer = framed(b"\x38\x01");
        longer[4] = 3;
        for (answer, says) in [
            (vec![0, 0], "prefix"),
            (compressed, "compressed"),
            (longer, "length"),
            (framed(b"\x42\x7fabc"), "longer"),
            (framed(b"\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7fabc"), "longer"),
            (framed(b"\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abc"), "too long"),
            (framed(b"\x42"), "ends in a number"),
            (framed(b"\x43\x01"), "unknown type"),
            (framed(&b"\x38\x01".repeat(MAX_FIELDS + 1)), "too many fields"),
        ] {
            let error = result(&answer).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
