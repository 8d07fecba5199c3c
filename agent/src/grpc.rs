//! A small client of gRPC services that are at hand: HTTP/2 without TLS, one message there, one
//! back.

use std::io;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes of an answer that may be under way at once.
const WINDOW_BYTES: u32 = 1 << 20;
/// Largest frame of an answer, in bytes.
const MAX_FRAME_BYTES: u32 = 256 << 10;
/// Most bytes of the headers of an answer.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Letters of what a service says of a failure.
const MAX_MESSAGE_CHARS: usize = 300;
/// Bytes before a message: a flag for compression, and its length.
pub(crate) const PREFIX_BYTES: usize = 5;

/// The number of a call's end that went well.
const STATUS_OK: u16 = 0;

/// Why a call brought no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The other side speaks no HTTP/2, or the connection ended.
    #[error("the connection to the service failed")]
    Connection(#[from] h2::Error),
    /// It speaks HTTP/2, and no gRPC.
    #[error("what listens there is no gRPC service: {0}")]
    NotGrpc(String),
    /// The service ended the call with a failure.
    #[error("the service refused ({code}): {message}")]
    Refused {
        /// Number of the failure.
        code: u16,
        /// Message of the service.
        message: String,
    },
    /// The answer has more bytes than are taken.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// Most bytes of the answer that the caller takes.
        limit: u64,
    },
    /// Where the answer is kept failed.
    #[error("the answer cannot be kept")]
    Sink(#[from] io::Error),
}

/// A connection over which calls can be made. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Channel(SendRequest<Bytes>);

impl Channel {
    /// Takes a TCP connection over.
    pub(crate) async fn of_tcp(stream: std::net::TcpStream) -> Result<Self, CallError> {
        stream.set_nonblocking(true)?;
        Self::open(tokio::net::TcpStream::from_std(stream)?).await
    }

    /// Takes a connection over. It lives as long as the runtime that this is called in.
    pub(crate) async fn open<S>(stream: S) -> Result<Self, CallError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new();
        builder
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES * 2)
            .max_frame_size(MAX_FRAME_BYTES)
            .max_header_list_size(MAX_HEADER_BYTES)
            .enable_push(false);
        let (requests, connection) = builder.handshake(stream).await?;
        // Its end is seen by the calls that are under way.
        tokio::spawn(connection);
        Ok(Self(requests))
    }

    /// Calls a method. The answer goes to `sink` as it comes, with its prefix, at most `limit`
    /// bytes. Not bounded in time.
    pub(crate) async fn call(
        &self,
        method: &str,
        message: &[u8],
        limit: u64,
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), CallError> {
        let request = Request::post(format!("http://localhost{method}"))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(())
            .map_err(|error| CallError::NotGrpc(error.to_string()))?;
        let mut requests = self.0.clone().ready().await?;
        let (answer, mut body) = requests.send_request(request, false)?;
        body.send_data(framed(message), true)?;
        let answer = answer.await?;
        let (head, mut body) = answer.into_parts();
        check(head.status, &head.headers)?;
        let mut taken = 0_u64;
        while let Some(part) = body.data().await {
            let part = part?;
            body.flow_control().release_capacity(part.len())?;
            taken = taken.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
            if taken > limit {
                return Err(CallError::TooLarge { limit });
            }
            sink(&part)?;
        }
        // A call without an answer may end with its head.
        let trailers = body.trailers().await?.unwrap_or(head.headers);
        ended(&trailers)
    }
}

/// A message behind its prefix, not compressed.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut framed = Vec::with_capacity(PREFIX_BYTES + message.len());
    framed.push(0);
    framed.extend(length.to_be_bytes());
    framed.extend(message);
    framed.into()
}

/// Fails where the head of an answer is not gRPC's.
fn check(status: StatusCode, headers: &HeaderMap) -> Result<(), CallError> {
    if status != StatusCode::OK {
        return Err(CallError::NotGrpc(format!("it answers with HTTP status {status}")));
    }
    let type_ = headers.get(CONTENT_TYPE).and_then(|type_| type_.to_str().ok());
    let type_ = type_.unwrap_or("none");
    if !type_.starts_with("application/grpc") {
        let type_ = printable(type_);
        return Err(CallError::NotGrpc(format!("it answers with content type {type_}")));
    }
    Ok(())
}

/// Fails where the end of a call says so, or says nothing.
fn ended(trailers: &HeaderMap) -> Result<(), CallError> {
    let text = |name| trailers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status").and_then(|code| code.parse().ok());
    match code {
        Some(STATUS_OK) => Ok(()),
        Some(code) => Err(CallError::Refused {
            code,
            message: printable(text("grpc-message").unwrap_or_default()),
        }),
        None => Err(CallError::NotGrpc("it ends a call without a status".to_owned())),
    }
}

/// The begin of what a service says, on one line.
fn printable(text: &str) -> String {
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(MAX_MESSAGE_CHARS).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| (http::HeaderName::from_static(name), value.parse().unwrap());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_message_is_behind_its_length() {
        assert_eq!(framed(b"abc").as_ref(), b"\0\0\0\0\x03abc");
        assert_eq!(framed(&[1; 300]).get(..PREFIX_BYTES), Some(&[0, 0, 0, 1, 44][..]));
    }

    #[test]
    fn only_an_answer_of_grpc_is_taken() {
        let grpc = headers(&[("content-type", "application/grpc+proto")]);
        check(StatusCode::OK, &grpc).unwrap();
        for (status, headers, says) in [
            (StatusCode::NOT_FOUND, grpc, "404"),
            (
                StatusCode::OK,
                headers(&[("content-type", "text/html")]),
                "content type text/html",
            ),
            (StatusCode::OK, HeaderMap::new(), "content type none"),
        ] {
            let error = check(status, &headers).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_end_of_a_call_says_how_it_went() {
        ended(&headers(&[("grpc-status", "0")])).unwrap();
        let refused = ended(&headers(&[("grpc-status", "12"), ("grpc-message", "no such method")])).unwrap_err();
        assert_eq!(refused.to_string(), "the service refused (12): no such method");
        for silent in [&[][..], &[("grpc-status", "x")], &[("grpc-status", "70000")]] {
            assert!(matches!(ended(&headers(silent)), Err(CallError::NotGrpc(_))));
        }
        let long = "x".repeat(4 * MAX_MESSAGE_CHARS);
        let Err(CallError::Refused { message, .. }) = ended(&headers(&[("grpc-status", "2"), ("grpc-message", &long)]))
        else {
            panic!("it was refused");
        };
        assert_eq!(message.len(), MAX_MESSAGE_CHARS);
    }
}
