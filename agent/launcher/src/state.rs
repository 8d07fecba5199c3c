//! What the launcher did in the end, for the agent to read: one JSON object in the run folder.

use std::fmt::Write;

use strum::{IntoStaticStr, VariantArray};

use crate::run_dir::PROTOCOL;

/// Why a start was grafted or plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// Grafted: the session's environment was taken over.
    Session,
    /// The run folder is missing or not writable.
    RunDirUnusable,
    /// No agent claimed the launcher within its bound.
    Unclaimed,
    /// The supervisor or the agent said that there will be no session.
    SessionFailed,
    /// Claimed, but no environment came within its bound.
    SessionTimeout,
    /// The environment file cannot be read or is not one.
    EnvironmentMalformed,
    /// The environment file is larger than 1 MiB.
    EnvironmentTooLarge,
    /// A grafted start of this container died early ([`crate::marker`]).
    EarlyDeath,
    /// The workload names an injection library of its own: another profiler's, which the session's
    /// would displace.
    OtherProfiler,
    /// The workload's program is loaded by musl, which the tools are not made for.
    Musl,
    /// The workload's program is static and takes no library.
    StaticProgram,
    /// The container's glibc is older than the tools need.
    OldGlibc,
    /// How the workload's program is loaded cannot be told.
    UnknownProgram,
    /// The kernel refused to run the command with the session's environment.
    ExecFailed,
    /// A signal ended the wait; the workload never ran.
    Interrupted,
    /// No session: a profiler that starts the program itself does so once the agent is ready.
    Launched,
}

impl Reason {
    /// Every reason.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The reason of that name in a state file. A name of another version stands for a session that
    /// could not be started.
    pub fn from_name(name: &str) -> Self {
        let named = Self::ALL.iter().copied().find(|reason| reason.as_str() == name);
        named.unwrap_or(Self::SessionFailed)
    }

    /// The reason's name in the state file.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The launcher's last word.
#[derive(Debug, Clone)]
pub struct State {
    /// What decided between a grafted and a plain start.
    pub reason: Reason,
    /// PID in the container.
    pub pid: u32,
    /// When it was written, Unix milliseconds.
    pub unix_ms: u64,
    /// How long the launcher held the workload back, in milliseconds.
    pub waited_ms: u64,
    /// Early deaths of grafted starts so far.
    pub early_deaths: u32,
    /// Names of variables that the workload sets itself and that the session wanted too.
    pub kept: Vec<String>,
    /// What was found of the program, where that is why; empty otherwise.
    pub detail: String,
}

impl State {
    /// The JSON object, one line.
    pub fn render(&self) -> String {
        let mut names = String::new();
        for (index, name) in self.kept.iter().enumerate() {
            if index > 0 {
                names.push(',');
            }
            names.push_str(&quote(name));
        }
        format!(
            "{{\"grafted\":{},\"reason\":\"{}\",\"pid\":{},\"unix_ms\":{},\"waited_ms\":{},\"early_deaths\":{},\"kept\":[{names}],\"detail\":{},\"protocol\":{}}}\n",
            self.reason == Reason::Session,
            self.reason.as_str(),
            self.pid,
            self.unix_ms,
            self.waited_ms,
            self.early_deaths,
            quote(&self.detail),
            PROTOCOL,
        )
    }
}

/// Whether a state file says that the start was grafted; none when it is not a state file.
pub fn grafted(text: &str) -> Option<bool> {
    match text.trim_start().strip_prefix("{\"grafted\":")? {
        rest if rest.starts_with("true,") => Some(true),
        rest if rest.starts_with("false,") => Some(false),
        _ => None,
    }
}

/// A JSON string.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if u32::from(control) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_json_whatever_the_names() {
        let state = State {
            reason: Reason::Session,
            pid: 1,
            unix_ms: 5,
            waited_ms: 7,
            early_deaths: 0,
            kept: vec!["A\"\\\n".into(), "B".into()],
            detail: "/x \"y\"".into(),
        };
        let expected = "{\"grafted\":true,\"reason\":\"session\",\"pid\":1,\"unix_ms\":5,\"waited_ms\":7,\"early_deaths\":0,\"kept\":[\"A\\\"\\\\\\u000a\",\"B\"],\"detail\":\"/x \\\"y\\\"\",\"protocol\":2}\n";
        assert_eq!(state.render(), expected);
        assert_eq!(grafted(expected), Some(true));
        assert_eq!(
            grafted(
                &State {
                    reason: Reason::Unclaimed,
                    ..state
                }
                .render()
            ),
            Some(false)
        );
        assert_eq!(grafted("{}"), None);
    }
}
