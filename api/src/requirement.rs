//! What a capture must hold to succeed: categories of the timeline, whichever profiler records them.

use std::borrow::Cow;
use std::fmt;

use flopwatch_model::Category;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::profiler::TraceCategory;

/// Most requirements of one session: every category once.
pub const MAX_REQUIREMENTS: usize = Category::ALL.len();

/// Why a new session with a word of Nsight Systems is refused, and what to write instead.
pub const FORMER_WORDS: &str = "spec.require names categories of the timeline: \"cuda\" is now \"cuda_kernel\" (or another cuda_ category), \
     \"nvtx\" is now \"nvtx_range\", \"osrt\" is now \"os_runtime\"; \"cublas\", \"cudnn\" and \"mpi\" have none";

/// A category that must hold events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Requirement {
    /// A category of the timeline.
    Category(Category),
    /// A word of Nsight Systems, which sessions had to require before they named categories. A new session is refused with it;
    /// sessions and captures that are stored already keep it and are read, since one object that cannot be read would hold up
    /// the watch of all.
    Former(TraceCategory),
}

impl Requirement {
    /// The names that a new session can have, in published order.
    pub const NAMES: [&str; MAX_REQUIREMENTS] = {
        let mut names = [""; MAX_REQUIREMENTS];
        let mut at = 0;
        while at < names.len() {
            names[at] = Category::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The name as it stands in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Category(category) => category.name(),
            Self::Former(word) => word.as_str(),
        }
    }

    /// The requirement of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        let former = || TraceCategory::from_name(name).map(Self::Former);
        Category::from_name(name).map(Self::Category).or_else(former)
    }

    /// Whether a new session may not have it: see [`FORMER_WORDS`].
    pub const fn is_former(self) -> bool {
        matches!(self, Self::Former(_))
    }

    /// The word of Nsight Systems that must be traced for it; none where Nsight Systems records no such events.
    pub fn traced_by(self) -> Option<TraceCategory> {
        match self {
            Self::Category(category) => TraceCategory::recording(category),
            Self::Former(word) => Some(word),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Requirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Requirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Word)
    }
}

struct Word;

impl Visitor<'_> for Word {
    type Value = Requirement;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a category of the timeline")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Requirement, E> {
        Requirement::from_name(word).ok_or_else(|| E::unknown_variant(word, &Requirement::NAMES))
    }
}

impl JsonSchema for Requirement {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Requirement".into()
    }

    /// The former words are in the list for two reasons: objects that have them stay valid, and a rule answers a new session with
    /// [`FORMER_WORDS`]. The API server evaluates no rule where a value is outside of its list.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let former = TraceCategory::ALL.map(TraceCategory::as_str);
        let names: Vec<&str> = Self::NAMES.into_iter().chain(former).collect();
        json_schema!({
            "type": "string",
            "enum": names,
            "description": "A category of the timeline. The last six words are those of earlier versions, with which no session can be created any more."
        })
    }
}

/// CEL: no requirement is a word of earlier versions.
#[cfg(feature = "resources")]
pub(crate) fn no_former_word() -> String {
    let words = TraceCategory::ALL.map(|word| format!("'{}'", word.as_str())).join(", ");
    format!("!has(self.require) || !self.require.exists(word, word in [{words}])")
}

/// CEL: dumps of JAX's compiler are asked for only beside the output that holds them.
#[cfg(feature = "resources")]
pub(crate) const DUMPS_ARE_RAW: &str =
    "!has(self.profiler.jax) || !has(self.profiler.jax.dumps) || !self.profiler.jax.dumps || 'Raw' in self.outputs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_and_every_former_word_reads_back_and_nothing_else_does() {
        let categories = Category::ALL.map(Requirement::Category);
        let former = TraceCategory::ALL.map(Requirement::Former);
        for requirement in categories.into_iter().chain(former) {
            let text = serde_json::to_string(&requirement).unwrap();
            assert_eq!(serde_json::from_str::<Requirement>(&text).unwrap(), requirement);
        }
        let error = serde_json::from_str::<Requirement>("\"gpu\"").unwrap_err().to_string();
        assert!(error.contains("expected one of `cuda_kernel`"), "{error}");
    }

    #[test]
    fn the_refusal_of_former_words_names_each_of_them_and_what_it_is_now() {
        for word in TraceCategory::ALL {
            assert!(FORMER_WORDS.contains(&format!("\"{}\"", word.as_str())), "{word:?}");
            if let Some(category) = word.records().first() {
                assert!(FORMER_WORDS.contains(category.name()), "{word:?}");
            }
        }
    }
}
