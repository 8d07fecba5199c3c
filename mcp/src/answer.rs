//! What a tool answers, and what of it is sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ToolError;

/// What a tool answers, of any length.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A value, of which parts can be asked for.
    Json(Value),
    /// A text for people.
    Text(String),
}

impl Answer {
    /// The answer with this value.
    pub fn json(value: &impl Serialize) -> Result<Self, ToolError> {
        Ok(Self::Json(serde_json::to_value(value)?))
    }
}

/// How an answer is written, as the tools that have both ways are asked for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// The result itself, with exact numbers.
    #[default]
    Json,
    /// Tables and sentences as a terminal shows them: shorter.
    Text,
}

/// What is sent of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// The answer, or as much of it as was asked for.
    pub text: String,
    /// What is not in it and how to ask for that; `None` where it is whole.
    pub cut: Option<String>,
}
