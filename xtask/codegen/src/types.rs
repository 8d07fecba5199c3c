//! Types as schemas tell them, for who writes them in another language.

use std::collections::BTreeMap;

use serde_json::Value;

/// Why a type cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TypesError {
    /// Two types of one name differ: rename one.
    #[error("two types are called {0}")]
    Clash(String),
    /// A schema is of a kind that is not translated.
    #[error("the type of {place} cannot be told: {schema}")]
    Untold {
        /// Type, or field of a type, that the schema describes.
        place: String,
        /// JSON of the schema.
        schema: String,
    },
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Integer,
    Number,
    Text,
    Flag,
    Nothing,
    /// One of these values.
    Words(Vec<Value>),
    /// The declared type of that name.
    Named(String),
    List(Box<Type>),
    /// Values by names.
    Map(Box<Type>),
    Object(Vec<Field>),
    /// An object with further fields, whose names nobody knows and whose values are of this type.
    Open(Vec<Field>, Box<Type>),
    /// The declared type of that name, and fields beside its own: a member of a tagged union.
    Extended(String, Vec<Field>),
    OneOf(Vec<Type>),
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) about: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) is: Type,
}

/// A type with a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declaration {
    pub(crate) about: Option<String>,
    pub(crate) is: Type,
}

/// Declared types by their names.
#[derive(Debug, Default)]
pub(crate) struct Types(BTreeMap<String, Value>);

impl Types {
    /// Adds a root schema, which is called `name` where it has no title, and its definitions.
    pub(crate) fn add(&mut self, root: &Value, name: &str) -> Result<(), TypesError> {
        let name = root.get("title").and_then(Value::as_str).unwrap_or(name).to_owned();
        self.add_definitions(root)?;
        let mut own = root.clone();
        if let Value::Object(own) = &mut own {
            for key in ["$schema", "$defs", "title"] {
                own.remove(key);
            }
        }
        self.declare(name, own)
    }

    /// Adds the definitions of a root schema.
    pub(crate) fn add_definitions(&mut self, root: &Value) -> Result<(), TypesError> {
        let definitions = root.get("$defs").and_then(Value::as_object);
        for (name, schema) in definitions.into_iter().flatten() {
            self.declare(name.clone(), schema.clone())?;
        }
        Ok(())
    }

    fn declare(&mut self, name: String, schema: Value) -> Result<(), TypesError> {
        if self.0.get(&name).is_some_and(|known| *known != schema) {
            return Err(TypesError::Clash(name));
        }
        self.0.insert(name, schema);
        Ok(())
    }

    /// All of them, in the order of their names.
    pub(crate) fn declarations(&self) -> Result<BTreeMap<&str, Declaration>, TypesError> {
        let declared = self.0.iter();
        declared
            .map(|(name, schema)| Ok((name.as_str(), declaration(name, schema)?)))
            .collect()
    }
}

/// The type of a schema, whose definitions are declared elsewhere.
pub(crate) fn declaration(name: &str, schema: &Value) -> Result<Declaration, TypesError> {
    let further = schema.get("additionalProperties").filter(|further| further.is_object());
    let is = match (schema.get("properties"), further) {
        (Some(_), Some(further)) => Type::Open(fields(name, schema)?, Box::new(type_of(name, further)?)),
        (Some(_), None) => Type::Object(fields(name, schema)?),
        (None, _) => type_of(name, schema)?,
    };
    Ok(Declaration {
        about: about(schema),
        is,
    })
}

/// A description on one line.
fn about(schema: &Value) -> Option<String> {
    let about = schema.get("description").and_then(Value::as_str)?;
    let words: Vec<&str> = about.split_whitespace().collect();
    Some(words.join(" "))
}

fn fields(place: &str, schema: &Value) -> Result<Vec<Field>, TypesError> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, property): (&String, &Value)| {
        Ok(Field {
            name: name.clone(),
            about: about(property),
            is_required: required.is_some_and(|known| known.iter().any(|known| known == name)),
            is: type_of(&format!("{place}.{name}"), property)?,
        })
    };
    properties.into_iter().flatten().map(field).collect()
}

fn type_of(place: &str, schema: &Value) -> Result<Type, TypesError> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.trim_start_matches("#/$defs/").to_owned();
        return Ok(if schema.get("properties").is_some() {
            Type::Extended(target, fields(place, schema)?)
        } else {
            Type::Named(target)
        });
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        return Ok(Type::Words(words.clone()));
    }
    if let Some(word) = schema.get("const") {
        return Ok(Type::Words(vec![word.clone()]));
    }
    for of in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = schema.get(of) {
            let choices = choices.iter().map(|choice| type_of(place, choice));
            return Ok(Type::OneOf(choices.collect::<Result<_, _>>()?));
        }
    }
    match schema.get("type") {
        Some(Value::String(kind)) => of_kind(place, kind, schema),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let kinds = kinds.map(|kind| of_kind(place, kind, schema));
            Ok(Type::OneOf(kinds.collect::<Result<_, _>>()?))
        }
        _ => Err(untold(place, schema)),
    }
}

fn of_kind(place: &str, kind: &str, schema: &Value) -> Result<Type, TypesError> {
    Ok(match kind {
        "integer" => Type::Integer,
        "number" => Type::Number,
        "string" => Type::Text,
        "boolean" => Type::Flag,
        "null" => Type::Nothing,
        "array" => {
            let items = schema.get("items").ok_or_else(|| untold(place, schema))?;
            Type::List(Box::new(type_of(place, items)?))
        }
        "object" if schema.get("properties").is_some() => Type::Object(fields(place, schema)?),
        "object" => {
            let values = schema.get("additionalProperties").filter(|values| values.is_object());
            let values = values.ok_or_else(|| untold(place, schema))?;
            Type::Map(Box::new(type_of(place, values)?))
        }
        _ => return Err(untold(place, schema)),
    })
}

fn untold(place: &str, schema: &Value) -> TypesError {
    TypesError::Untold {
        place: place.to_owned(),
        schema: schema.to_string(),
    }
}
