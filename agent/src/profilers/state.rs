//! What a profiler keeps of a collection in the journal of its capture.

use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An object with the profiler's type as its tag, `{"type": "Nsys", ...}`. The other fields are the
/// profiler's own: no other part of the agent reads them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Profiler that the fields belong to.
    #[serde(rename = "type")]
    pub type_: ProfilerType,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl State {
    /// With the fields of a structure.
    pub fn of<T: Serialize>(type_: ProfilerType, fields: &T) -> Result<Self, Failure> {
        let fields = serde_json::to_value(fields).and_then(serde_json::from_value);
        let fields = fields.map_err(Failure::because(CaptureReason::StoreFailed))?;
        Ok(Self { type_, fields })
    }

    /// The fields as a structure. Fails where another version of the agent wrote them in a way that
    /// this one does not know.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_value(Value::Object(self.fields.clone())).map_err(|error| {
            let message = format!(
                "the journal of the capture holds a state of {} that this agent cannot read: {error}",
                self.type_.as_str()
            );
            Failure::new(CaptureReason::AgentRestarted, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_one_object_with_its_type_and_reads_back() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Fields {
            port: u16,
        }
        let state = State::of(ProfilerType::Kineto, &Fields { port: 7 }).unwrap();
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(text, r#"{"type":"Kineto","port":7}"#);
        let read: State = serde_json::from_str(&text).unwrap();
        assert_eq!((&read, read.read::<Fields>().unwrap()), (&state, Fields { port: 7 }));
        let bare = State::of(ProfilerType::Kineto, &serde_json::json!({})).unwrap();
        let failure = bare.read::<Fields>().unwrap_err();
        assert_eq!(failure.reason, CaptureReason::AgentRestarted);
        assert!(failure.message.contains("Kineto") && failure.message.contains("port"));
    }
}
