//! The datagrams of Kineto's clients and the answers, byte by byte: a header of a size (8 bytes)
//! and a type (32 bytes, padded with zeros), then the body. Numbers are little-endian on every
//! machine that this runs on.

/// Bytes of the header.
const HEADER_BYTES: usize = 40;
/// Bytes of the type in it.
const TYPE_BYTES: usize = 32;
/// Bytes before the PIDs in a request.
const REQUEST_HEAD_BYTES: usize = 16;
/// Bytes of a registration.
const REGISTRATION_BYTES: usize = 16;
/// Bytes of a PID.
const PID_BYTES: usize = 4;

/// Longest datagram that is read: a request that names a thousand ancestors.
pub(super) const MAX_DATAGRAM_BYTES: usize = 4096;

/// Bit of the kinds that asks for activities; the other ones ask for what Kineto samples by itself.
const ACTIVITIES_BIT: u32 = 2;

/// What a client says. The PIDs in it are claims, and are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The client says that it is there, as versions before 2.1 do first.
    Registration,
    /// The client asks for a configuration.
    Request {
        /// Whether the configuration is to be of activities.
        activities: bool,
    },
}

/// Reads a datagram; None for one that no client sends.
pub(super) fn parse(datagram: &[u8]) -> Option<Message> {
    let (header, body) = datagram.split_at_checked(HEADER_BYTES)?;
    let (size, kind) = header.split_at_checked(HEADER_BYTES - TYPE_BYTES)?;
    let size = u64::from_le_bytes(size.try_into().ok()?);
    if usize::try_from(size).ok()? != body.len() {
        return None;
    }
    let end = kind.iter().position(|byte| *byte == 0)?;
    match kind.get(..end)? {
        b"ctxt" => (body.len() == REGISTRATION_BYTES).then_some(Message::Registration),
        b"req" => {
            let pids = usize::try_from(number(body, PID_BYTES)?).ok()?;
            let whole = pids.checked_mul(PID_BYTES)?.checked_add(REQUEST_HEAD_BYTES)? == body.len();
            let activities = number(body, 0)? & ACTIVITIES_BIT != 0;
            whole.then_some(Message::Request { activities })
        }
        _ => None,
    }
}

fn number(body: &[u8], at: usize) -> Option<u32> {
    let bytes = body.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The answer to a request: a configuration.
pub(super) fn configured(configuration: &str) -> Vec<u8> {
    let size = u64::try_from(configuration.len()).unwrap_or(u64::MAX);
    let mut datagram = size.to_le_bytes().to_vec();
    datagram.extend_from_slice(b"req");
    datagram.resize(HEADER_BYTES, 0);
    datagram.extend_from_slice(configuration.as_bytes());
    datagram
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What torch 2.15 sends from PID 2715, whose parent is 2709: 24 bytes behind the header.
    const REQUEST_OF_TORCH: &[u8] = b"\x18\0\0\0\0\0\0\0req\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \x02\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\x9b\x0a\0\0\x95\x0a\0\0";
    /// What versions before 2.1 send first: GPU 0, PID 7, no job.
    const REGISTRATION_OF_OLDER: &[u8] =
        b"\x10\0\0\0\0\0\0\0ctxt\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn what_clients_send_is_read() {
        assert_eq!(parse(REQUEST_OF_TORCH), Some(Message::Request { activities: true }));
        assert_eq!(parse(REGISTRATION_OF_OLDER), Some(Message::Registration));
        let mut base = REQUEST_OF_TORCH.to_vec();
        base[HEADER_BYTES] = 0;
        assert_eq!(parse(&base), Some(Message::Request { activities: false }));
        base[HEADER_BYTES] = 3;
        assert_eq!(parse(&base), Some(Message::Request { activities: true }));
    }

    #[test]
    fn every_cut_of_it_and_every_number_that_does_not_fit_is_refused() {
        for whole in [REQUEST_OF_TORCH, REGISTRATION_OF_OLDER] {
            for end in 0..whole.len() {
                assert_eq!(parse(&whole[..end]), None, "{end}");
            }
            let longer = [whole, b"\0"].concat();
            assert_eq!(parse(&longer), None);
        }
        // The size, the type without its end, and the number of PIDs, each as large as it can be.
        for at in [0..8, 8..HEADER_BYTES, HEADER_BYTES + 4..HEADER_BYTES + 8] {
            let mut wrong = REQUEST_OF_TORCH.to_vec();
            wrong[at].fill(0xff);
            assert_eq!(parse(&wrong), None);
        }
    }

    #[test]
    fn answers_have_the_bytes_that_clients_expect() {
        assert_eq!(
            configured("A=1"),
            b"\x03\0\0\0\0\0\0\0req\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0A=1"
        );
        assert_eq!(configured("").len(), HEADER_BYTES);
    }
}
