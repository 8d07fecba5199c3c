//! What a request's path names.

/// The parts of a path of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// `v1` or `group/version`.
    pub(crate) api: String,
    pub(crate) namespace: Option<String>,
    /// Plural name of the resource.
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl ResourcePath {
    /// Reads a path such as `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`;
    /// none of what is no resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(str::to_owned);
        let api = match parts.next()?.as_str() {
            "api" => parts.next()?,
            "apis" => format!("{}/{}", parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut rest: Vec<String> = parts.collect();
        let namespace = (rest.len() > 2 && rest.first().is_some_and(|first| first == "namespaces")).then(|| {
            rest.remove(0);
            rest.remove(0)
        });
        let mut rest = rest.into_iter();
        Some(Self {
            api,
            namespace,
            resource: rest.next()?,
            name: rest.next(),
            subresource: rest.next(),
        })
    }

    /// The API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api.split_once('/').map_or("", |(group, _)| group)
    }

    /// The resource and its API group, as messages name them: `pods`, `captures.flopwatch.dev`.
    pub(crate) fn qualified(&self) -> String {
        match self.group() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }

    /// The resource and its subresource, as rights name them.
    pub(crate) fn named(&self) -> String {
        match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource),
            None => self.resource.clone(),
        }
    }
}

/// The plural that a kind has in paths.
pub(crate) fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_an_object_a_collection_or_neither() {
        let rows = [
            ("/api/v1/pods", ("v1", None, "pods", None, None)),
            ("/api/v1/namespaces/n", ("v1", None, "namespaces", Some("n"), None)),
            (
                "/api/v1/namespaces/n/pods/p",
                ("v1", Some("n"), "pods", Some("p"), None),
            ),
            (
                "/apis/flopwatch.dev/v1alpha1/namespaces/n/captures/c/status",
                (
                    "flopwatch.dev/v1alpha1",
                    Some("n"),
                    "captures",
                    Some("c"),
                    Some("status"),
                ),
            ),
        ];
        for (path, (api, namespace, resource, name, subresource)) in rows {
            let owned = |part: Option<&str>| part.map(str::to_owned);
            let place = ResourcePath {
                api: api.to_owned(),
                namespace: owned(namespace),
                resource: resource.to_owned(),
                name: owned(name),
                subresource: owned(subresource),
            };
            assert_eq!(ResourcePath::parse(path), Some(place), "{path}");
        }
        assert_eq!(ResourcePath::parse("/version"), None);
    }
}
