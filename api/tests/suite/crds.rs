//! The committed definitions are what the types generate.

use std::path::Path;

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

fn definitions() -> [CustomResourceDefinition; 3] {
    [ProfilingSession::crd(), ProfilingSchedule::crd(), Capture::crd()]
}

#[test]
fn the_committed_definitions_do_not_drift() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/flopwatch/files/crds");
    for definition in definitions() {
        let generated = serde_saphyr::to_string(&definition).unwrap();
        let name = definition.metadata.name.unwrap();
        let path = folder.join(format!("{name}.yaml"));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            committed,
            generated,
            "{} drifted: run `cargo xtask codegen`",
            path.display()
        );
    }
}

/// API servers print "unrecognized format" for unsigned formats and then accept what the type cannot hold.
#[test]
fn no_schema_uses_an_unsigned_or_floating_format() {
    for definition in definitions() {
        let text = serde_json::to_string(&definition).unwrap();
        for format in ["uint", "float", "double"] {
            assert!(
                !text.contains(&format!("\"format\":\"{format}")),
                "{format} in {:?}",
                definition.metadata.name
            );
        }
        assert!(
            !text.contains("\"type\":\"number\""),
            "a number without bounds in {:?}",
            definition.metadata.name
        );
    }
}

#[test]
fn every_spec_and_status_field_is_described() {
    fn visit(path: &str, schema: &serde_json::Value, bare: &mut Vec<String>) {
        if let Some(properties) = schema.get("properties").and_then(serde_json::Value::as_object) {
            for (name, property) in properties {
                let path = format!("{path}.{name}");
                if property.get("description").is_none() {
                    bare.push(path.clone());
                }
                visit(&path, property, bare);
            }
        }
        if let Some(items) = schema.get("items") {
            visit(&format!("{path}[]"), items, bare);
        }
    }
    let mut bare = Vec::new();
    for definition in definitions() {
        let value = serde_json::to_value(&definition).unwrap();
        visit(
            "",
            &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            &mut bare,
        );
    }
    bare.retain(|path| ![".spec", ".status"].contains(&path.as_str()));
    assert!(bare.is_empty(), "kubectl explain would show nothing for {bare:?}");
}

#[test]
fn every_field_of_a_session_and_of_a_capture_is_fixed_but_stop() {
    for definition in [ProfilingSession::crd(), Capture::crd()] {
        let value = serde_json::to_value(&definition).unwrap();
        let spec = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let rule = spec["x-kubernetes-validations"][0]["rule"].as_str().unwrap();
        for field in spec["properties"].as_object().unwrap().keys() {
            let fixed = rule.contains(&format!("self.{field} == oldSelf.{field})"));
            assert_eq!(fixed, field != "stop", "{field} in {:?}", definition.metadata.name);
        }
    }
}

#[test]
fn an_agent_can_select_the_captures_of_its_node() {
    let value = serde_json::to_value(Capture::crd()).unwrap();
    assert_eq!(
        value["spec"]["versions"][0]["selectableFields"][0]["jsonPath"],
        ".spec.nodeName"
    );
}
