//! The OpenAPI document: what the handlers declare, and a path for each analysis of the catalogue.

mod components;
mod lines;

use std::collections::BTreeMap;

use axum::http::StatusCode;
use flopwatch_analysis::{Definition, InputCount, catalogue};
use flopwatch_report::Format;
use flopwatch_report::page::Document as Page;
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::gateway::cookie;
use crate::gateway::progress::Notice;

/// The path that stands for those of all analyses.
const TEMPLATE: &str = "/api/profiling/session/{id}/analyses/{name}";

/// Where an operation names the analysis that it runs: it takes the parameters of that and answers
/// with its result in each of its forms.
const ANALYSIS_EXTENSION: &str = "x-analysis";

/// Where an operation names the analysis whose result it answers with, as JSON.
const RESULT_EXTENSION: &str = "x-result";

/// Name of the component with the schema of a page.
const PAGE_COMPONENT: &str = "AnalysisPage";

/// Prefix of the names of types that several analyses share.
const SHARED_COMPONENT_PREFIX: &str = "AnalysisType";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Flopwatch",
        description = "Profiles GPU pods in place and serves the results. Errors are problem details (RFC 9457) with a `reason` of a closed set. A 503 is worth asking again, after `Retry-After`; a 500 is for whoever runs the gateway to mend.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    modifiers(&Schemes),
    components(schemas(Notice)),
    security(("bearer" = []), ("browser" = []))
)]
struct Document;

struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.description = Some("A token of the cluster, such as `kubectl create token` makes.".to_owned());
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(http));
        let words = "A browser that signed in at /api/sign-in; counts only with `Sec-Fetch-Site: same-origin`.";
        let cookie = ApiKey::Cookie(ApiKeyValue::with_description(cookie::COOKIE_NAME, words));
        components.add_security_scheme("browser", SecurityScheme::ApiKey(cookie));
    }
}

/// What the document holds before the handlers' part.
pub(super) fn declared() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Says of every answer that has no words of its own what its status is, and gives `HEAD` an id
/// beside that of `GET`: the standard asks for both.
pub(super) fn describe(document: &mut utoipa::openapi::OpenApi) {
    for item in document.paths.paths.values_mut() {
        if let Some(id) = item.head.as_mut().and_then(|head| head.operation_id.as_mut()) {
            id.insert_str(0, "head_");
        }
        let operations = [&mut item.get, &mut item.head, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            for (status, response) in &mut operation.responses.responses {
                let words = StatusCode::from_bytes(status.as_bytes());
                let words = words.ok().and_then(|status| status.canonical_reason());
                if let (RefOr::T(response), Some(words)) = (response, words)
                    && response.description.is_empty()
                {
                    words.clone_into(&mut response.description);
                }
            }
        }
    }
}

/// Schemas by their names among the components.
#[derive(Default)]
struct Schemas {
    named: Map<String, Value>,
    /// What several analyses define, as they define it.
    shared: BTreeMap<String, Value>,
}

/// The document with a path for each analysis in the place of the one that stands for them.
pub(super) fn complete(declared: &utoipa::openapi::OpenApi) -> Result<String, serde_json::Error> {
    let mut schemas = Schemas::default();
    let mut security_schemes = Value::Null;
    if let Some(components) = &declared.components {
        for (name, schema) in &components.schemas {
            schemas.named.insert(name.clone(), serde_json::to_value(schema)?);
        }
        security_schemes = serde_json::to_value(&components.security_schemes)?;
    }
    let page = hoist(PAGE_COMPONENT, Page::json_schema(), &mut schemas);
    schemas.named.insert(PAGE_COMPONENT.to_owned(), page);
    let mut paths = Map::new();
    for (path, item) in &declared.paths.paths {
        let mut item = serde_json::to_value(item)?;
        if path != TEMPLATE {
            let operations = item.as_object_mut().into_iter().flat_map(Map::values_mut);
            operations.for_each(|operation| resolve(operation, &mut schemas));
            paths.insert(path.clone(), item);
            continue;
        }
        for definition in catalogue::CATALOGUE {
            let item = path_of(definition, item.clone(), &mut schemas);
            paths.insert(path.replace("{name}", definition.name), item);
        }
    }
    let (responses, parameters) = components::extract_shared(&mut paths);
    Ok(lines::text(&json!({
        "openapi": &declared.openapi,
        "info": &declared.info,
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "responses": responses,
            "parameters": parameters,
            "securitySchemes": security_schemes,
        },
        "security": &declared.security,
    })))
}

/// Writes into an operation that names an analysis what is defined with that.
fn resolve(operation: &mut Value, schemas: &mut Schemas) {
    let Value::Object(operation) = operation else {
        return;
    };
    let mut of = |member| catalogue::find(operation.remove(member)?.as_str()?);
    let (runs, answers) = (of(ANALYSIS_EXTENSION), of(RESULT_EXTENSION));
    if let (Some(definition), Some(Value::Array(parameters))) = (runs, operation.get_mut("parameters")) {
        parameters.extend(parameters_of(definition, schemas));
    }
    let content = match (runs, answers) {
        (Some(definition), _) => result_of(definition, schemas),
        (None, Some(definition)) => json!({definition.media_type(): {"schema": schema_of(definition, schemas)}}),
        (None, None) => return,
    };
    if let Some(found) = operation.get_mut("responses").and_then(|all| all.get_mut("200")) {
        found["content"] = content;
    }
}

/// The path of an analysis: the template with its words, its parameters and its result.
fn path_of(definition: &Definition, mut item: Value, schemas: &mut Schemas) -> Value {
    let (id, result) = (definition.name.replace('-', "_"), result_of(definition, schemas));
    let added = parameters_of(definition, schemas);
    for (method, prefix) in [("get", "analysis_"), ("head", "head_analysis_")] {
        let Some(Value::Object(operation)) = item.get_mut(method) else {
            continue;
        };
        operation.insert("operationId".to_owned(), json!(format!("{prefix}{id}")));
        let how = operation.remove("summary");
        operation.insert("summary".to_owned(), json!(definition.about));
        if let Some(how) = how {
            operation.insert("description".to_owned(), how);
        }
        if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
            parameters.extend(added.iter().cloned());
        }
        if let Some(found) = operation.get_mut("responses").and_then(|all| all.get_mut("200")) {
            found["content"] = result.clone();
        }
    }
    item
}

/// The schema of a result.
fn schema_of(definition: &Definition, schemas: &mut Schemas) -> Value {
    let Some(schema) = definition.result_schema() else {
        return json!({});
    };
    let name = component(definition.name);
    let schema = hoist(&name, schema.to_value(), schemas);
    schemas.named.insert(name.clone(), schema);
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The content of a result, in each of its forms.
fn result_of(definition: &Definition, schemas: &mut Schemas) -> Value {
    let mut content = Map::new();
    let schema = schema_of(definition, schemas);
    content.insert(definition.media_type().to_owned(), json!({"schema": schema}));
    for media_type in definition.formats().iter().filter_map(|format| format.media_type()) {
        let schema = if media_type.ends_with("json") {
            json!({"$ref": format!("#/components/schemas/{PAGE_COMPONENT}")})
        } else {
            json!({"type": "string"})
        };
        content.insert(media_type.to_owned(), json!({"schema": schema}));
    }
    Value::Object(content)
}

/// The further captures and the parameters, as parameters of the query.
fn parameters_of(definition: &Definition, schemas: &mut Schemas) -> Vec<Value> {
    let mut all = Vec::new();
    let others = match definition.inputs {
        InputCount::One => None,
        InputCount::Two => Some((1, 1)),
        InputCount::Many => Some((0, InputCount::MAX_INPUTS.saturating_sub(1))),
    };
    if let Some((min, max)) = others {
        all.push(json!({
            "name": "with", "in": "query", "required": min > 0, "style": "form", "explode": true,
            "description": "A further capture, as its session's `session_id` and, where that has several, `/` and the capture's name; \
                            once for each.",
            "schema": {
                "type": "array", "minItems": min, "maxItems": max,
                "items": {"type": "string", "pattern": r"^[0-9a-f]{8}(/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$"}
            }
        }));
    }
    if definition.formats().len() > 1 {
        all.push(json!({
            "name": Format::PARAMETER, "in": "query", "required": false,
            "description": "How the result is written: as JSON, or as the page that people read.",
            "schema": {"type": "string", "enum": definition.formats(), "default": Format::default()}
        }));
    }
    let name = format!("{}Parameters", component(definition.name));
    let schema = hoist(&name, definition.parameter_schema().to_value(), schemas);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (parameter, schema) in properties.into_iter().flatten() {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        all.push(json!({
            "name": parameter, "in": "query", "required": false,
            "description": description.unwrap_or_default(),
            "schema": schema
        }));
    }
    all
}

/// The name of an analysis among the components: `kernel-changes` is `KernelChanges`.
fn component(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    format!("Analysis{}", words.collect::<String>())
}

/// Moves the definitions of a schema among the components, and turns its references to them.
/// Analyses share what they define alike; one that means something else by a name of another has
/// all of its definitions under names of its own.
fn hoist(name: &str, mut schema: Value, schemas: &mut Schemas) -> Value {
    let definitions = schema.as_object_mut().and_then(|schema| {
        schema.remove("$schema");
        schema.remove("$defs")
    });
    let Some(Value::Object(definitions)) = definitions else {
        return schema;
    };
    let is_alike = |(inner, definition)| schemas.shared.get(inner).is_none_or(|known| known == definition);
    let prefix = if definitions.iter().all(is_alike) {
        SHARED_COMPONENT_PREFIX
    } else {
        name
    };
    for (inner, mut definition) in definitions {
        if prefix == SHARED_COMPONENT_PREFIX {
            schemas.shared.insert(inner.clone(), definition.clone());
        }
        turn(prefix, &mut definition);
        schemas.named.insert(format!("{prefix}{inner}"), definition);
    }
    turn(prefix, &mut schema);
    schema
}

fn turn(name: &str, schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get_mut("$ref")
                && let Some(inner) = target.strip_prefix("#/$defs/")
            {
                *target = format!("#/components/schemas/{name}{inner}");
            }
            map.values_mut().for_each(|value| turn(name, value));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| turn(name, value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::from_str(&crate::gateway::openapi().unwrap()).unwrap()
    }

    /// A part of the document, or what it refers to.
    fn resolved<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
        let target = part["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        target.map_or(part, |target| document.pointer(target).unwrap())
    }

    /// The content of an operation's answer.
    fn content<'a>(document: &'a Value, operation: &'a Value) -> &'a Value {
        &resolved(document, &operation["responses"]["200"])["content"]
    }

    fn parameters<'a>(document: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        parameters.map(|one| resolved(document, one)).collect()
    }

    #[test]
    fn a_path_that_answers_with_the_result_of_an_analysis_has_its_schema_and_its_parameters() {
        let document = document();
        let of_catalogue = |name: &str| &document["paths"][TEMPLATE.replace("{name}", name)]["get"];
        for (path, name) in [
            ("timeline", "profiler-timeline"),
            ("kernels", "profiler-kernels"),
            ("hta", "profiler-hta"),
            ("compile", "profiler-compile"),
            ("memory", "profiler-memory"),
            ("flame", "flame-graph"),
        ] {
            let operation = &document["paths"][format!("/api/profiler/{path}")]["get"];
            let analysis = of_catalogue(name);
            let body = content(&document, operation);
            assert!(body["application/json"]["schema"]["$ref"].is_string(), "{path}: {body}");
            assert_eq!(body, content(&document, analysis), "{path}");
            let known = parameters(&document, operation);
            for wanted in parameters(&document, analysis) {
                let is_known = known.iter().filter(|one| one["name"] == wanted["name"]).count() == 1;
                assert!(is_known || wanted["in"] == "path", "{path} takes {}", wanted["name"]);
            }
        }
        let kernels = content(&document, &document["paths"]["/api/profiling/kernels/{id}"]["get"]);
        let analysis = content(&document, of_catalogue("profiled-kernels"));
        assert_eq!(kernels, &json!({"application/json": analysis["application/json"]}));
    }

    #[test]
    fn a_request_may_require_as_many_categories_as_a_session_may() {
        let document = document();
        let schema = &document["components"]["schemas"]["RunOptions"]["properties"]["require"];
        assert_eq!(schema["maxItems"], flopwatch_api::session::MAX_REQUIREMENTS);
    }

    #[test]
    fn every_answer_to_get_names_its_body() {
        let document = document();
        for (path, item) in document["paths"].as_object().unwrap() {
            let operation = item.get("get").filter(|get| get["responses"].get("200").is_some());
            let body = operation.map(|operation| content(&document, operation));
            let is_named = body.is_none_or(|body| body.as_object().is_some_and(|body| !body.is_empty()));
            assert!(is_named, "{path}");
        }
        let text = document.to_string();
        assert!(!text.contains(ANALYSIS_EXTENSION) && !text.contains(RESULT_EXTENSION));
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        let repeated = found.iter().filter(|target| target.contains("/AnalysisType")).count();
        let types = document["components"]["schemas"].as_object().unwrap().keys();
        let types = types.filter(|name| name.starts_with(SHARED_COMPONENT_PREFIX)).count();
        assert!(
            repeated > types,
            "analyses share what they define alike: {repeated} references to {types}"
        );
        assert!(!found.is_empty());
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target}");
        }
        for definition in catalogue::CATALOGUE {
            let path = TEMPLATE.replace("{name}", definition.name);
            let operation = &document["paths"][&path]["get"];
            assert_eq!(operation["summary"], definition.about, "{path}");
            let schema = definition.parameter_schema().to_value();
            let known = schema["properties"].as_object().map_or(0, Map::len);
            let named = parameters(&document, operation);
            let of_query = named.iter().filter(|one| one["in"] == "query").count();
            let others = usize::from(definition.inputs != InputCount::One);
            assert_eq!(
                of_query,
                known + others + 1 + usize::from(definition.formats().len() > 1),
                "{path}: its parameters, further captures, the first, and the format"
            );
        }
    }
}
