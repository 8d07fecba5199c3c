//! The messages of the profiler service: a few fields of `profiler_service.proto` and
//! `profiler_options.proto`.

use std::time::Duration;

use flopwatch_api::profiler::JaxOptions;
use flopwatch_model::wire::write::Message;

/// What JAX itself takes where nothing is said: annotations and expensive operations.
const HOST_LEVEL: u64 = 2;
const DEVICE_LEVEL: u64 = 1;
const PYTHON_LEVEL: u64 = 0;
/// The version of the options from which on levels count that are 0.
const OPTIONS_VERSION: u64 = 1;

/// What is asked of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// How long it is to record.
    pub(super) length: Duration,
    /// Levels of the tracers, and the other options of the session.
    pub(super) options: &'a JaxOptions,
    /// Folder of the program's own disk that a service writes to which cannot answer with the
    /// result.
    pub(super) folder: &'a str,
    /// Name of the session, with which it is ended early.
    pub(super) session: &'a str,
    /// Name of the file in that folder, without its extension.
    pub(super) host: &'a str,
}

/// `ProfileRequest`: 1 `duration_ms`, 4 `opts`, 5 `repository_root`, 6 `session_id`, 7 `host_name`,
/// 9 `emit_xspace`.
pub(super) fn profile(request: &Request<'_>) -> Message {
    let milliseconds = u64::try_from(request.length.as_millis()).unwrap_or(u64::MAX);
    Message::new()
        .number(1, milliseconds)
        .message(4, &options(request.options, milliseconds))
        .text(5, request.folder)
        .text(6, request.session)
        .text(7, request.host)
        .number(9, 1)
}

/// `TerminateRequest`: 1 `session_id`.
pub(super) fn terminate(session: &str) -> Message {
    Message::new().text(1, session)
}

/// `ProfileOptions`: 2, 3, 4 the levels of host, device and Python, 5 `version`, 7
/// `enable_hlo_proto`, 9 `duration_ms`, 12 `advanced_configuration`.
fn options(options: &JaxOptions, milliseconds: u64) -> Message {
    let level = |level: Option<i32>, otherwise| level.and_then(|level| level.try_into().ok()).unwrap_or(otherwise);
    let plain = Message::new()
        .number(2, level(options.host_tracer_level, HOST_LEVEL))
        .number(3, level(options.device_tracer_level, DEVICE_LEVEL))
        .number(4, level(options.python_tracer_level, PYTHON_LEVEL))
        .number(5, OPTIONS_VERSION)
        .number(7, options.enable_hlo_proto.unwrap_or(true).into())
        .number(9, milliseconds);
    advanced(options).into_iter().fold(plain, |message, (name, value)| {
        // An entry of a map: 1 key, 2 value.
        message.message(12, &Message::new().text(1, name).message(2, &value))
    })
}

/// `AdvancedConfigValue` of each option that is set: one of 1 text, 2 flag, 3 number.
fn advanced(options: &JaxOptions) -> Vec<(&'static str, Message)> {
    let number = |value: i32| Message::new().number(3, i64::from(value).cast_unsigned());
    let flag = |value: bool| Message::new().number(2, value.into());
    let counters = options.gpu_pm_sample_counters.join(",");
    let all = [
        (
            "gpu_max_callback_api_events",
            options.gpu_max_callback_api_events.map(number),
        ),
        (
            "gpu_max_activity_api_events",
            options.gpu_max_activity_api_events.map(number),
        ),
        ("gpu_enable_nvtx_tracking", options.gpu_enable_nvtx_tracking.map(flag)),
        (
            "gpu_enable_cupti_activity_graph_trace",
            options.gpu_enable_cupti_activity_graph_trace.map(flag),
        ),
        (
            "gpu_pm_sample_counters",
            (!counters.is_empty()).then(|| Message::new().text(1, &counters)),
        ),
        (
            "gpu_pm_sample_interval_us",
            options.gpu_pm_sample_interval_us.map(number),
        ),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_these_bytes() {
        let options = JaxOptions::default();
        let request = Request {
            length: Duration::from_millis(300),
            options: &options,
            folder: "/tmp/f",
            session: "s",
            host: "h",
        };
        let expected: &[u8] = &[
            0x08, 0xac, 0x02, // 300 ms
            0x22, 13, 0x10, 2, 0x18, 1, 0x20, 0, 0x28, 1, 0x38, 1, 0x48, 0xac, 0x02, // the options
            0x2a, 6, b'/', b't', b'm', b'p', b'/', b'f', // the folder
            0x32, 1, b's', 0x3a, 1, b'h', // session and host
            0x48, 1, // as an answer
        ];
        assert_eq!(profile(&request).into_bytes(), expected);
        assert_eq!(terminate("s").into_bytes(), [0x0a, 1, b's']);
    }

    #[test]
    fn every_option_reaches_the_service_in_its_own_type() {
        let set = JaxOptions {
            host_tracer_level: Some(3),
            device_tracer_level: Some(0),
            python_tracer_level: Some(1),
            enable_hlo_proto: Some(false),
            gpu_max_activity_api_events: Some(1),
            gpu_enable_nvtx_tracking: Some(true),
            gpu_pm_sample_counters: vec!["a".to_owned(), "b".to_owned()],
            ..JaxOptions::default()
        };
        let bytes = options(&set, 1).into_bytes();
        assert!(bytes.starts_with(&[0x10, 3, 0x18, 0, 0x20, 1, 0x28, 1, 0x38, 0, 0x48, 1]));
        let holds = |entry: &[u8]| bytes.windows(entry.len()).any(|part| part == entry);
        assert!(holds(b"\x62\x21\x0a\x1bgpu_max_activity_api_events\x12\x02\x18\x01"));
        assert!(holds(b"\x62\x1e\x0a\x18gpu_enable_nvtx_tracking\x12\x02\x10\x01"));
        assert!(holds(b"\x62\x1f\x0a\x16gpu_pm_sample_counters\x12\x05\x0a\x03a,b"));
        assert!(!holds(b"gpu_max_callback_api_events"));
    }
}
