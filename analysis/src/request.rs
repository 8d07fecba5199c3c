//! An analysis with parameters that were checked.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::io::Write;

use flopwatch_report::{Format, Layout};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::catalogue;
use crate::definition::{AnalysisError, Definition, Report, ResultType};
use crate::input::Input;
use crate::near::near;
use crate::parameters::{Parameters, Properties};

/// Digits of the digest of parameters in a key.
const DIGEST_DIGITS: usize = 32;

/// Why a request is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The catalogue has no analysis of that name.
    #[error("there is no analysis {name:?}; {}", instead(name, names))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        names: Vec<&'static str>,
    },
    /// The parameters are no JSON object.
    #[error("the parameters of {analysis} must be a JSON object")]
    NoObject {
        /// Name of the analysis.
        analysis: &'static str,
    },
    /// The analysis has no such parameter.
    #[error("{analysis} has no parameter {parameter:?}; {}", possible(names))]
    UnknownParameter {
        /// Name of the analysis.
        analysis: &'static str,
        /// What was given.
        parameter: String,
        /// What there is.
        names: Vec<String>,
    },
    /// A parameter is given more than once.
    #[error("{parameter:?} of {analysis} is given more than once")]
    Repeated {
        /// Name of the analysis.
        analysis: &'static str,
        /// Name of the parameter.
        parameter: String,
    },
    /// The result is not written so.
    #[error("{analysis} has no format {found:?}; it has {}", formats.join(", "))]
    Format {
        /// Name of the analysis.
        analysis: &'static str,
        /// What was asked for.
        found: String,
        /// What there is.
        formats: Vec<&'static str>,
    },
    /// A word of a command line is no parameter.
    #[error("{text:?} is no parameter: write NAME=VALUE")]
    NoPair {
        /// Text of the word.
        text: String,
    },
    /// A parameter's value is not possible.
    #[error("{parameter:?} of {analysis} must be {wanted}, not {found}")]
    Value {
        /// Name of the analysis.
        analysis: &'static str,
        /// Name of the parameter.
        parameter: String,
        /// What is possible.
        wanted: String,
        /// What was given.
        found: String,
    },
}

/// The names that may be meant, or all of them.
fn instead(wanted: &str, names: &[&str]) -> String {
    match near(wanted, names).as_slice() {
        [] => format!("there are {}", names.join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

fn possible(names: &[String]) -> String {
    if names.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    }
}

/// A definition, its checked parameters, and how the result is written. Equal requests of equal
/// inputs have the same result.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "WrittenRequest", into = "WrittenRequest")]
pub struct Request {
    definition: &'static Definition,
    parameters: Parameters,
    format: Format,
    layout: Layout,
    key: String,
}

/// A request as one process writes it for another.
#[derive(Serialize, Deserialize)]
struct WrittenRequest {
    analysis: String,
    parameters: Value,
    format: Format,
    layout: Layout,
}

impl From<Request> for WrittenRequest {
    fn from(request: Request) -> Self {
        Self {
            analysis: request.definition.name.to_owned(),
            parameters: request.parameters(),
            format: request.format,
            layout: request.layout,
        }
    }
}

impl TryFrom<WrittenRequest> for Request {
    type Error = RequestError;

    fn try_from(written: WrittenRequest) -> Result<Self, RequestError> {
        let request = Self::parse(&written.analysis, &written.parameters)?.written_as(written.format)?;
        Ok(request.laid_out(written.layout))
    }
}

impl Request {
    /// With the default of every parameter.
    pub fn of(definition: &'static Definition) -> Result<Self, RequestError> {
        Self::checked(definition, Map::new())
    }

    /// The analysis `name` with `parameters`, a JSON object (or null, for none); what is not given
    /// has its default.
    pub fn parse(name: &str, parameters: &Value) -> Result<Self, RequestError> {
        let definition = named(name)?;
        let given = match parameters {
            Value::Object(given) => given.clone(),
            Value::Null => Map::new(),
            _ => {
                let analysis = definition.name;
                return Err(RequestError::NoObject { analysis });
            }
        };
        Self::checked(definition, given)
    }

    /// The analysis `name` with parameters as texts, as command lines and addresses have them.
    /// [`Format::PARAMETER`] among them is how the result is written.
    pub fn from_pairs<'a>(
        name: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestError> {
        let definition = named(name)?;
        let properties = Properties::of(&definition.parameter_schema());
        let mut given = Map::new();
        let mut format = None;
        let repeated = |parameter: &str| RequestError::Repeated {
            analysis: definition.name,
            parameter: parameter.to_owned(),
        };
        for (parameter, text) in pairs {
            if parameter == Format::PARAMETER {
                if format.replace(text).is_some() {
                    return Err(repeated(parameter));
                }
                continue;
            }
            let property = properties
                .find(parameter)
                .ok_or_else(|| unknown_parameter(definition, parameter, &properties))?;
            if given.insert(parameter.to_owned(), property.read(text)).is_some() {
                return Err(repeated(parameter));
            }
        }
        let request = Self::checked(definition, given)?;
        match format {
            None => Ok(request),
            Some(name) => match Format::from_name(name) {
                Some(format) => request.written_as(format),
                None => Err(request.no_format(name)),
            },
        }
    }

    /// The same of words `NAME=VALUE`.
    pub fn from_words<'a>(name: &str, words: impl IntoIterator<Item = &'a str>) -> Result<Self, RequestError> {
        let pairs = words.into_iter().map(|word| {
            let text = || word.to_owned();
            word.split_once('=')
                .ok_or_else(|| RequestError::NoPair { text: text() })
        });
        Self::from_pairs(name, pairs.collect::<Result<Vec<_>, _>>()?)
    }

    fn checked(definition: &'static Definition, given: Map<String, Value>) -> Result<Self, RequestError> {
        let properties = Properties::of(&definition.parameter_schema());
        for (parameter, value) in &given {
            let property = properties
                .find(parameter)
                .ok_or_else(|| unknown_parameter(definition, parameter, &properties))?;
            let alone = Map::from_iter([(parameter.clone(), value.clone())]);
            if !property.allows(value) || (definition.complete)(Value::Object(alone)).is_err() {
                return Err(RequestError::Value {
                    analysis: definition.name,
                    parameter: parameter.clone(),
                    wanted: property.possible(),
                    found: value.to_string(),
                });
            }
        }
        let complete = |given| (definition.complete)(Value::Object(given)).map(Parameters::from);
        // Each was read alone, so that together they are read too.
        let no_object = |_error| RequestError::NoObject {
            analysis: definition.name,
        };
        let parameters = complete(given).map_err(no_object)?;
        let defaults = complete(Map::new()).map_err(no_object)?;
        let mut key = format!("{}@{}", definition.name, definition.version);
        if parameters != defaults {
            key.push('-');
            let digest = hex::encode(Sha256::digest(parameters.canonical()));
            key.extend(digest.chars().take(DIGEST_DIGITS));
        }
        Ok(Self {
            definition,
            parameters,
            format: Format::default(),
            layout: Layout::default(),
            key,
        })
    }

    /// The same, with the result written in `format`.
    pub fn written_as(mut self, format: Format) -> Result<Self, RequestError> {
        if !self.definition.formats().contains(&format) {
            return Err(self.no_format(format.name()));
        }
        let plain = self.key.split('+').next().unwrap_or_default();
        self.key = match format {
            Format::Json => plain.to_owned(),
            _ => format!("{plain}+{format}{}", Format::VERSION),
        };
        self.format = format;
        Ok(self)
    }

    /// The same, with a text laid out for what it is written on. It is no part of the key: what is
    /// kept is for a file.
    #[must_use]
    pub fn laid_out(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    fn no_format(&self, found: &str) -> RequestError {
        RequestError::Format {
            analysis: self.definition.name,
            found: found.to_owned(),
            formats: self.definition.formats().iter().map(|format| format.name()).collect(),
        }
    }

    /// Definition of the analysis that is asked for.
    pub const fn definition(&self) -> &'static Definition {
        self.definition
    }

    /// How the result is written.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// What a text is written on.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Media type of the result.
    pub fn media_type(&self) -> &'static str {
        self.format.media_type().unwrap_or(self.definition.media_type())
    }

    /// What a file of the result is called.
    pub fn file_name(&self) -> String {
        match (self.definition.result, self.format) {
            (ResultType::File { .. }, _) | (_, Format::Json) => self.definition.file_name(),
            (ResultType::Json { .. }, format) => format!("{}.{}", self.definition.name, format.ending()),
        }
    }

    /// Every parameter with its value, as a JSON object.
    pub fn parameters(&self) -> Value {
        self.parameters.to_value()
    }

    /// The same as JSON with sorted keys: equal texts are equal parameters.
    pub fn canonical_parameters(&self) -> String {
        self.parameters.canonical()
    }

    /// Names the request within a store: `name@version`, where parameters differ from their
    /// defaults a digest of them, and the format unless it is [`Format::Json`]. Safe as the name of
    /// a file, at most 128 bytes. A kept result is of the digests of the inputs, in their order,
    /// and this.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Runs the analysis on `inputs` and writes the result to `out`, which holds a part of it after
    /// an error.
    pub fn run(&self, inputs: &[Input<'_>], out: &mut (dyn Write + Send)) -> Result<Report, AnalysisError> {
        self.definition
            .run(inputs, &self.parameters, self.format, self.layout, out)
    }
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Request {}

impl PartialOrd for Request {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Request {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Hash for Request {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

fn named(name: &str) -> Result<&'static Definition, RequestError> {
    catalogue::find(name).ok_or_else(|| RequestError::Unknown {
        name: name.to_owned(),
        names: catalogue::CATALOGUE.iter().map(|definition| definition.name).collect(),
    })
}

fn unknown_parameter(definition: &Definition, parameter: &str, properties: &Properties) -> RequestError {
    let names: BTreeSet<String> = properties.names().into_iter().collect();
    RequestError::UnknownParameter {
        analysis: definition.name,
        parameter: parameter.to_owned(),
        names: names.into_iter().collect(),
    }
}
