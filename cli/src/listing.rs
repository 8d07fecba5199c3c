//! Renders lists of objects as kubectl does for programs, and the message where a list is empty.

use kube::api::{DynamicObject, TypeMeta};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::Format;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::print::object;

/// The objects in `format`, if that is one for programs (JSON, YAML or names); None otherwise.
/// `kind` is the prefix of names, as in `kind/name`.
pub(crate) fn as_objects<K>(kind: &str, items: &[K], format: Option<Format>) -> Result<Option<String>, Error>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    Ok(match format {
        Some(format @ (Format::Json | Format::Yaml)) => {
            let items: Vec<Value> = items.iter().map(typed).collect::<Result<_, _>>()?;
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            Some(object(&list, format)?)
        }
        Some(Format::Name) => {
            let names = items.iter().map(|item| format!("{kind}/{}\n", item.name_any()));
            Some(names.collect())
        }
        Some(Format::Wide) | None => None,
    })
}

/// An object as JSON with its `apiVersion` and `kind`, and without `managedFields`, as kubectl
/// prints it.
pub(crate) fn typed<K>(item: &K) -> Result<Value, Error>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let render = |error: serde_json::Error| Error::Render(error.to_string());
    let mut object: DynamicObject =
        serde_json::from_value(serde_json::to_value(item).map_err(render)?).map_err(render)?;
    object.types = Some(TypeMeta {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
    });
    object.metadata.managed_fields = None;
    serde_json::to_value(object).map_err(render)
}

/// Prints to standard error that there are no `what` in the namespace, or with `everywhere` in the
/// cluster, followed by the sentence `help`.
pub(crate) fn print_none(what: &str, cluster: &Cluster, everywhere: bool, help: &str) {
    let scope = if everywhere {
        "in the cluster".to_owned()
    } else {
        format!("in namespace {}", cluster.namespace)
    };
    // As kubectl does: nothing on standard output, which may be read by a program.
    drop(std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("No {what} {scope}. {help}\n"),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::tests::{CREATED, session, verdict};

    const KIND: &str = "profilingsession.flopwatch.dev";

    #[test]
    fn programs_get_objects_with_their_types() {
        let sessions = [session("first", CREATED, &verdict("True", "Succeeded", ""))];
        let text = as_objects(KIND, &sessions, Some(Format::Json)).unwrap().unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(list["kind"], "List");
        assert_eq!(list["items"][0]["kind"], "ProfilingSession");
        assert_eq!(list["items"][0]["apiVersion"], "flopwatch.dev/v1alpha1");
        assert_eq!(list["items"][0]["spec"]["target"]["podName"], "trainer");
        let text = as_objects(KIND, &sessions, Some(Format::Yaml)).unwrap().unwrap();
        let again: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(again, list);
        let names = as_objects(KIND, &sessions, Some(Format::Name)).unwrap().unwrap();
        assert_eq!(names, "profilingsession.flopwatch.dev/first\n");
        assert_eq!(as_objects(KIND, &sessions, Some(Format::Wide)).unwrap(), None);
    }
}
