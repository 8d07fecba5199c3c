//! The modes in which a session can be asked for over HTTP: the profilers, by their words.

use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::session::ProfilingSession;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// What a session profiles with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) ProfilerType);

impl Mode {
    /// The mode that asks for a session's profiler.
    pub(crate) const fn of(session: &ProfilingSession) -> Self {
        Self(session.spec.profiler.type_)
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let profiler = ProfilerType::from_word(&word);
        profiler
            .map(Self)
            .ok_or_else(|| D::Error::unknown_variant(&word, &ProfilerType::WORDS))
    }
}

impl PartialSchema for Mode {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("What a session profiles with."))
            .enum_values(Some(ProfilerType::WORDS));
        schema.into()
    }
}

impl ToSchema for Mode {}

/// A mode and what it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModeItem {
    /// Name of the mode, as requests have it.
    id: Mode,
    /// What it gives.
    description: &'static str,
}

/// All modes in which a session can be asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModeList {
    modes: Vec<ModeItem>,
}

impl ModeList {
    pub(crate) fn new() -> Self {
        let modes = ProfilerType::ALL.map(|profiler| ModeItem {
            id: Mode(profiler),
            description: profiler.about(),
        });
        Self { modes: modes.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mode_is_written_as_the_word_of_its_profiler_and_read_back() {
        for profiler in ProfilerType::ALL {
            let written = json!(Mode(profiler));
            assert_eq!(written, profiler.word());
            assert_eq!(serde_json::from_value::<Mode>(written).unwrap(), Mode(profiler));
        }
        let error = serde_json::from_value::<Mode>(json!("gdb")).unwrap_err().to_string();
        assert!(error.contains("`gdb`, expected one of `auto`"), "{error}");
    }
}
