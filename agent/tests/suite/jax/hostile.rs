//! Services that are none, or mean harm: the capture fails with a reason, within its bounds.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::jax::service::{Service, find};
use flopwatch_api::profiler::JaxOptions;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::Procfs;
use flopwatch_pipeline::failure::Failure;

use super::rig::{Rig, may_enter, wait};

/// What a server of HTTP/2 begins with: no settings, and an answer to the client's.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";

/// A server that does that with each connection, and the service that it would be.
fn server(serve: impl Fn(TcpStream) + Send + 'static) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap());
        }
    });
    Service {
        process: Procfs::default()
            .identify(i32::try_from(std::process::id()).unwrap())
            .unwrap(),
        port: address.port(),
        address,
    }
}

/// One that speaks HTTP/2 and answers the first call with this head and this body, so many times;
/// one of one body ends well.
fn http2(headers: &[(&str, &str)], body: &'static [u8], times: usize) -> impl Fn(TcpStream) + Send + use<> {
    // Literal fields that no table knows: a length in one byte before each name and value. 8 is
    // `:status: 200`.
    let mut block = vec![0x88];
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    move |mut stream| {
        let mut asked = [0; 4096];
        // What a client sends may end with the connection at any time.
        let mut talk = || -> std::io::Result<()> {
            stream.write_all(SETTINGS)?;
            let mut seen = Vec::new();
            while !seen.windows(15).any(|part| part == b"ProfilerService") && !has_headers(&seen) {
                let read = stream.read(&mut asked)?;
                if read == 0 {
                    return Ok(());
                }
                seen.extend(&asked[..read]);
            }
            stream.write_all(&frame(1, 4, &block))?;
            for _ in 0..times {
                stream.write_all(&frame(0, 0, body))?;
            }
            if times == 1 {
                stream.write_all(&frame(1, 5, WELL))?;
            }
            // It waits for what never comes.
            while stream.read(&mut asked)? > 0 {}
            Ok(())
        };
        talk().ok();
    }
}

/// Whether a client's bytes hold a frame of headers.
fn has_headers(bytes: &[u8]) -> bool {
    let mut rest = bytes
        .strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap_or_default();
    while let [a, b, c, kind, _, _, _, _, _, behind @ ..] = rest {
        if *kind == 1 {
            return true;
        }
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        rest = behind.get(length..).unwrap_or_default();
    }
    false
}

/// A frame of the first call.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags, 0, 0, 0, 1]);
    frame.extend(payload);
    frame
}

/// A part of an answer.
static BLOCK: [u8; 16_000] = [7; 16_000];
/// The end of an answer that went well: `grpc-status: 0`.
const WELL: &[u8] = b"\0\x0bgrpc-status\x010";
const GRPC: (&str, &str) = ("content-type", "application/grpc");

#[test]
fn a_service_that_is_none_fails_the_capture_with_what_it_is() {
    if !may_enter() {
        return;
    }
    let closes = |_stream: TcpStream| {};
    let http1 = |mut stream: TcpStream| {
        let body = "<html>no</html>";
        let length = body.len();
        let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).ok();
    };
    let noise = |mut stream: TcpStream| {
        stream.write_all(&vec![0xff; 100_000]).ok();
    };
    let huge_frame = |mut stream: TcpStream| {
        stream.write_all(SETTINGS).ok();
        stream.write_all(b"\xff\xff\xff\0\0\0\0\0\x01").ok();
        stream.write_all(&vec![0; 1 << 20]).ok();
    };
    for (server, says) in [
        (server(closes), "connection"),
        (server(http1), "connection"),
        (server(noise), "connection"),
        (server(huge_frame), "connection"),
        (
            server(http2(&[("content-type", "text/html")], b"", 0)),
            "content type text/html",
        ),
        (server(http2(&[], b"", 0)), "content type none"),
        (server(http2(&[GRPC], b"x", 2)), ""),
    ] {
        let rig = Rig::new(&[server], JaxOptions::default(), Duration::from_mins(5));
        if says.is_empty() {
            rig.start().unwrap();
            // It says nothing of its end: until the window ends, nothing is wrong.
            wait(Duration::from_millis(500));
            rig.check().unwrap();
            rig.discard();
            continue;
        }
        let failure = failure_of(&rig);
        assert_eq!(failure.reason, CaptureReason::CollectionFailed);
        assert!(failure.message.contains(says), "{failure}");
    }
}

/// The failure of a request, which comes before the window ends.
fn failure_of(rig: &Rig) -> Failure {
    rig.start().unwrap();
    rig.failure()
}

#[test]
fn an_answer_that_is_larger_than_the_captures_bound_is_cut_there() {
    if !may_enter() {
        return;
    }
    // Less than may be under way at once, so that the server keeps to what was agreed.
    let large = server(http2(&[GRPC], &BLOCK, 40));
    let mut rig = Rig::new(&[large], JaxOptions::default(), Duration::from_mins(5));
    rig.site.limits.capture_bytes = 512 << 10;
    let failure = failure_of(&rig);
    assert_eq!(failure.reason, CaptureReason::CaptureTooLarge);
    assert!(failure.message.contains("--max-capture-bytes"), "{failure}");
}

#[test]
fn a_service_that_neither_answers_with_a_result_nor_left_one_fails_the_capture() {
    if !may_enter() {
        return;
    }
    let empty = server(http2(&[GRPC], b"\0\0\0\0\x02\x38\0", 1));
    let rig = Rig::new(&[empty], JaxOptions::default(), Duration::from_mins(5));
    rig.start().unwrap();
    let failure = rig.stop().unwrap_err();
    assert!(failure.message.contains("left none on its disk"), "{failure}");
}

#[test]
fn an_answer_that_would_take_the_last_of_the_disk_ends_the_capture() {
    if !may_enter() {
        return;
    }
    let mut rig = Rig::new(
        &[server(http2(&[GRPC], &BLOCK, 40))],
        JaxOptions::default(),
        Duration::from_mins(5),
    );
    rig.site.limits.floor.percent = 100;
    let failure = failure_of(&rig);
    assert_eq!(failure.reason, CaptureReason::DiskSpace);
    assert!(failure.message.contains("--min-free-bytes"), "{failure}");
}

#[test]
fn an_answer_that_never_ends_is_ended() {
    if !may_enter() {
        return;
    }
    // It sends more than may be under way at once too, and whichever is seen first ends it.
    let endless = server(http2(&[GRPC], &BLOCK, usize::MAX));
    let mut rig = Rig::new(&[endless], JaxOptions::default(), Duration::from_mins(5));
    rig.site.limits.capture_bytes = 2 << 20;
    let reason = failure_of(&rig).reason;
    let expected = [CaptureReason::CaptureTooLarge, CaptureReason::CollectionFailed];
    assert!(expected.contains(&reason), "{reason}");
}

#[test]
fn what_is_no_profiler_service_is_not_found_as_one_and_costs_two_looks_of_time_at_most() {
    if !may_enter() {
        return;
    }
    let closes = server(|_stream| {});
    let silent = server(|stream| {
        // Kept open until the test ends.
        std::mem::forget(stream);
    });
    let html = server(http2(&[("content-type", "text/html")], b"", 0));
    let endless = server(http2(&[GRPC], b"0123456789", usize::MAX));
    let begun = Instant::now();
    let found = find(&Procfs::default(), &[closes.process]);
    let ports: Vec<_> = found.iter().map(|service| service.port).collect();
    for none in [closes, silent, html, endless] {
        assert!(!ports.contains(&none.port), "{ports:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
