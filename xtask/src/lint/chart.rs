//! The chart as helm renders it: who may do what, and who may reach whom, held against SECURITY.md.

use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{Run, find_program};
use flopwatch_toolchain::golang::HELM;
use flopwatch_toolchain::project;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Namespace of the rendered release.
const NAMESPACE: &str = "flopwatch-system";
/// Values with which every right of the chart is rendered.
const EVERY_RIGHT: [&str; 3] = [
    "store.url=s3://profiles/x",
    "controller.podTemplates.namespaces={team}",
    "metrics.podMonitor.enabled=true",
];
/// What a rule of a role may say; the table is made of all of it.
const OF_RULES: [&str; 5] = ["apiGroups", "resources", "resourceNames", "nonResourceURLs", "verbs"];
/// Port of liveness and readiness. No policy opens it: a node's own traffic to its pods passes
/// every one of them.
const PROBES_PORT: u64 = 9465;
/// The one token that is made: the gateway's own, for one node's agent.
const OWN_TOKEN: [&str; 4] = [
    "flopwatch-gateway",
    "own namespace",
    "serviceaccounts/token: flopwatch-gateway",
    "create",
];
/// Rights with which one may become anybody, or run code as anybody, where they hold.
const CREATES_PODS: [&str; 11] = [
    "pods",
    "replicationcontrollers",
    "deployments",
    "daemonsets",
    "statefulsets",
    "replicasets",
    "jobs",
    "cronjobs",
    "pods/exec",
    "pods/ephemeralcontainers",
    "serviceaccounts/token",
];

#[allow(
    clippy::print_stdout,
    reason = "a skip is told on standard output, where the recipe counts it"
)]
fn helm() -> Option<PathBuf> {
    let built = HELM.built(&Cache::open().unwrap()).unwrap();
    let found = built.map(|folder| folder.join("helm")).or_else(|| find_program("helm"));
    if found.is_none() {
        println!("skipped: helm is not built yet (cargo xtask cluster env builds it)");
    }
    found
}

/// Every object of the chart but the definitions.
fn render(sets: &[&str]) -> Option<Vec<Value>> {
    let helm = helm()?;
    let text = Run::new(helm)
        .args(["template", "flopwatch", "--namespace", NAMESPACE])
        .args(["--set", "crds.enabled=false"])
        .args(sets.iter().map(|set| format!("--set={set}")))
        .arg(project::root().unwrap().join("charts/flopwatch"))
        .output()
        .unwrap();
    let documents = text
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let objects: Vec<Value> = documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .filter(|object: &Value| !object.is_null())
        .collect();
    assert!(objects.len() > 20, "{}", objects.len());
    Some(objects)
}

fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

fn named<'a>(objects: &'a [Value], kind: &'a str, name: &str) -> &'a Value {
    of_kind(objects, kind)
        .find(|object| object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// What an admission policy says that denies what it does not take.
fn denying<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let policy = named(objects, "ValidatingAdmissionPolicy", name);
    let binding = named(objects, "ValidatingAdmissionPolicyBinding", name);
    assert_eq!(policy["spec"]["failurePolicy"], "Fail", "{name}");
    assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]), "{name}");
    &policy["spec"]
}

/// What has to be true for a policy to take an object.
fn validations(spec: &Value) -> Vec<&str> {
    let all = spec["validations"].as_array().unwrap().iter();
    all.filter_map(|one| one["expression"].as_str()).collect()
}

/// A right as SECURITY.md writes it: account, where it holds, what, verbs.
type Right = [String; 4];

/// The rights of each ServiceAccount of the chart.
fn rights(objects: &[Value]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    let bindings = of_kind(objects, "RoleBinding").chain(of_kind(objects, "ClusterRoleBinding"));
    for binding in bindings {
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        let accounts: Vec<&str> = subjects
            .filter(|subject| subject["kind"] == "ServiceAccount")
            .filter_map(|subject| subject["name"].as_str())
            .collect();
        let place = match binding["metadata"]["namespace"].as_str() {
            None => "cluster",
            Some(NAMESPACE) => "own namespace",
            Some(_) => "namespaces that opt in",
        };
        let reference = &binding["roleRef"];
        let [kind, name] = ["kind", "name"].map(|part| reference[part].as_str().unwrap());
        let role = named(objects, kind, name);
        for rule in role["rules"].as_array().unwrap() {
            let verbs = words(&rule["verbs"]).join(", ");
            for what in subjects_of(rule) {
                for account in &accounts {
                    rights.insert([(*account).to_owned(), place.to_owned(), what.clone(), verbs.clone()]);
                }
            }
        }
    }
    rights
}

/// What a rule gives rights to: resources with their names, and paths that are no resources.
fn subjects_of(rule: &Value) -> Vec<String> {
    let said = rule.as_object().unwrap().keys();
    let unknown: Vec<&String> = said.filter(|key| !OF_RULES.contains(&key.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {rule} is in no table");
    let mut names = words(&rule["resourceNames"]).join(", ");
    if !names.is_empty() {
        names = format!(": {names}");
    }
    let mut subjects: Vec<String> = words(&rule["nonResourceURLs"]).into_iter().map(str::to_owned).collect();
    for group in words(&rule["apiGroups"]) {
        for resource in words(&rule["resources"]) {
            let dot = if group.is_empty() { "" } else { "." };
            subjects.push(format!("{resource}{dot}{group}{names}"));
        }
    }
    assert!(
        !subjects.is_empty() && !words(&rule["verbs"]).is_empty(),
        "{rule} gives a right to nothing"
    );
    subjects
}

/// The cells of the table in SECURITY.md that begins after that line.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(project::root().unwrap().join("SECURITY.md")).unwrap();
    let from = text.lines().skip_while(|line| *line != heading).skip(1);
    let rows: Vec<&str> = from
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() > 2, "SECURITY.md has no table after {heading:?}");
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    rows.into_iter().skip(2).map(cells).collect()
}

#[test]
fn security_md_lists_every_right_of_every_service_account_with_its_reason() {
    let Some(objects) = render(&EVERY_RIGHT) else { return };
    let rendered = rights(&objects);
    let mut written = BTreeSet::new();
    for row in table("## Rights of the service accounts") {
        assert!(
            row.len() == 5 && !row[4].is_empty(),
            "a right without a reason: {row:?}"
        );
        written.insert([row[0].clone(), row[1].clone(), row[2].clone(), row[3].clone()]);
    }
    let lines = |rights: Vec<&Right>| {
        let line =
            |[account, place, what, verbs]: &Right| format!("| `{account}` | {place} | `{what}` | {verbs} | WHY |");
        rights.into_iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let missing = lines(rendered.difference(&written).collect());
    let gone = lines(written.difference(&rendered).collect());
    assert!(
        missing.is_empty() && gone.is_empty(),
        "SECURITY.md lacks:\n{missing}\nand lists what the chart does not give:\n{gone}"
    );
}

#[test]
fn a_rule_of_paths_is_a_right_as_one_of_resources_is() {
    let account = json!({"kind": "ServiceAccount", "name": "one"});
    let objects = [
        json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [
            {"nonResourceURLs": ["/v1/inputs", "/metrics"], "verbs": ["put"]},
            {"apiGroups": ["", "g"], "resources": ["things"], "resourceNames": ["a"], "verbs": ["get", "patch"]}
        ]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [account]}),
    ];
    let expected = [
        ["one", "cluster", "/metrics", "put"],
        ["one", "cluster", "/v1/inputs", "put"],
        ["one", "cluster", "things.g: a", "get, patch"],
        ["one", "cluster", "things: a", "get, patch"],
    ];
    assert_eq!(
        rights(&objects),
        BTreeSet::from(expected.map(|right| right.map(str::to_owned)))
    );
}

#[test]
fn security_md_lists_every_capability_of_the_agent_with_its_reason() {
    let Some(objects) = render(&[]) else { return };
    let agent = &named(&objects, "DaemonSet", "flopwatch-agent")["spec"]["template"]["spec"];
    let mut rendered = BTreeSet::new();
    for container in ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| agent[list].as_array().unwrap())
    {
        let capabilities = &container["securityContext"]["capabilities"];
        assert_eq!(capabilities["drop"], json!(["ALL"]), "{container}");
        assert_ne!(container["securityContext"]["privileged"], json!(true));
        for capability in words(&capabilities["add"]) {
            rendered.insert((container["name"].as_str().unwrap().to_owned(), capability.to_owned()));
        }
    }
    let rows = table("## Capabilities of the agent");
    assert!(rows.iter().all(|row| row.len() == 3 && !row[2].is_empty()), "{rows:?}");
    let written: BTreeSet<_> = rows.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(written, rendered);
}

#[test]
fn nobody_of_ours_creates_pods_or_becomes_another_except_where_a_namespace_opts_in() {
    let Some(objects) = render(&["store.url=s3://profiles/x"]) else {
        return;
    };
    let strong = |[_, _, what, verbs]: &&Right| {
        let verbs: BTreeSet<&str> = verbs.split(", ").collect();
        let any_of = |those: [&str; 4]| those.iter().any(|verb| verbs.contains(verb));
        let makes = any_of(["create", "update", "patch", "*"]);
        let becomes = any_of(["escalate", "bind", "impersonate", "*"]);
        let resource = what.split(['.', ':']).next().unwrap();
        becomes || resource == "*" || makes && CREATES_PODS.contains(&resource)
    };
    let found: Vec<Right> = rights(&objects).iter().filter(strong).cloned().collect();
    assert_eq!(found, [OWN_TOKEN.map(str::to_owned)]);
    let secrets = rights(&objects)
        .into_iter()
        .filter(|[_, place, what, _]| what.starts_with("secrets") && place == "cluster");
    assert_eq!(secrets.count(), 0, "secrets of the whole cluster");
    let bindings = of_kind(&objects, "RoleBinding").chain(of_kind(&objects, "ClusterRoleBinding"));
    let opted_in = bindings.filter(|binding| binding["roleRef"]["name"] == "flopwatch-pod-templates");
    assert_eq!(opted_in.count(), 0, "by default nobody has");

    let objects = render(&["controller.podTemplates.namespaces={team,lab}"]).unwrap();
    let opted_in: BTreeSet<&str> = of_kind(&objects, "RoleBinding")
        .filter(|binding| binding["roleRef"]["name"] == "flopwatch-pod-templates")
        .map(|binding| {
            assert_eq!(
                binding["subjects"],
                json!([{"kind": "ServiceAccount", "name": "flopwatch-controller", "namespace": NAMESPACE}])
            );
            binding["metadata"]["namespace"].as_str().unwrap()
        })
        .collect();
    assert_eq!(opted_in, BTreeSet::from(["team", "lab"]));
    let found: BTreeSet<Right> = rights(&objects).iter().filter(strong).cloned().collect();
    let place = "namespaces that opt in";
    let right = ["flopwatch-controller", place, "pods", "create, delete"];
    assert_eq!(
        found,
        BTreeSet::from([right, OWN_TOKEN].map(|right| right.map(str::to_owned)))
    );
}

#[test]
fn a_session_that_makes_a_pod_is_admitted_only_where_its_user_and_the_controller_may() {
    let Some(objects) = render(&[]) else { return };
    let spec = &named(&objects, "ValidatingAdmissionPolicy", "flopwatch-pod-template")["spec"];
    let check = "group('').resource('pods').namespace(request.namespace).check('create').allowed()";
    let controller = format!("authorizer.serviceAccount('{NAMESPACE}', 'flopwatch-controller').{check}");
    assert_eq!(validations(spec), [format!("authorizer.{check}"), controller]);
    let message = spec["validations"][1]["messageExpression"].as_str().unwrap();
    assert!(
        message.contains("create rolebinding flopwatch-pod-templates"),
        "{message}"
    );
}

#[test]
fn a_schedule_is_admitted_only_where_its_user_may_make_sessions_and_who_may_has_schedules_too() {
    let Some(objects) = render(&[]) else { return };
    let spec = denying(&objects, "flopwatch-schedule");
    assert_eq!(
        validations(spec),
        [
            "authorizer.group('flopwatch.dev').resource('profilingsessions').namespace(request.namespace).check('create').allowed()"
        ]
    );
    for (role, verb) in [("flopwatch-user", "create"), ("flopwatch-viewer", "list")] {
        let rules = named(&objects, "ClusterRole", role)["rules"].as_array().unwrap();
        let both = rules.iter().any(|rule| {
            let resources = words(&rule["resources"]);
            words(&rule["verbs"]).contains(&verb)
                && ["profilingsessions", "profilingschedules"]
                    .iter()
                    .all(|resource| resources.contains(resource))
        });
        assert!(both, "{role}: {rules:?}");
    }
}

#[test]
fn only_the_controller_says_how_probable_a_session_was() {
    let Some(objects) = render(&[]) else { return };
    let spec = denying(&objects, "flopwatch-drawn");
    let controller = format!("system:serviceaccount:{NAMESPACE}:flopwatch-controller");
    assert_eq!(
        spec["matchConditions"][0]["expression"],
        format!("request.userInfo.username != '{controller}'")
    );
    let annotation = "'flopwatch.dev/probability-per-billion'";
    assert_eq!(spec["variables"][0]["expression"], annotation);
    assert_eq!(validations(spec)[0], "variables.now == variables.before");
}

#[test]
fn the_gateway_makes_sessions_of_alerts_and_no_others() {
    let Some(objects) = render(&[]) else { return };
    let spec = denying(&objects, "flopwatch-triggered");
    let gateway = format!("system:serviceaccount:{NAMESPACE}:flopwatch-gateway");
    assert_eq!(
        spec["matchConditions"][0]["expression"],
        format!("request.userInfo.username == '{gateway}'")
    );
    let rules = validations(spec);
    for held in [
        "'flopwatch.dev/trigger' in object.metadata.annotations",
        "owner.kind == 'ProfilingSchedule'",
        "!has(object.spec.target.podTemplate)",
        "!has(object.spec.target.replicaOf)",
    ] {
        assert!(rules.iter().any(|rule| rule.contains(held)), "{held}: {rules:?}");
    }
    let role = named(&objects, "ClusterRole", "flopwatch-alerts");
    assert_eq!(
        role["rules"],
        json!([{"apiGroups": ["flopwatch.dev"], "resources": ["profilingschedules/alerts"], "verbs": ["create"]}])
    );
    let requested_by = named(&objects, "ValidatingAdmissionPolicy", "flopwatch-requested-by");
    let first = requested_by["spec"]["validations"][0]["expression"].as_str().unwrap();
    assert!(
        first.contains(&gateway) && first.contains("'flopwatch.dev/trigger'"),
        "{first}"
    );
    let without = render(&["gateway.enabled=false"]).unwrap();
    let policies: Vec<&Value> = of_kind(&without, "ValidatingAdmissionPolicy").collect();
    assert!(!policies.is_empty() && !json!(policies).to_string().contains("flopwatch-gateway"));
}

#[test]
fn agents_have_a_key_of_their_own_for_the_object_store_where_there_is_one() {
    let keys = |of_agents: &str| {
        let of_agents = format!("store.agentSecretName={of_agents}");
        let objects = render(&["store.url=s3://profiles/x", "store.secretName=whole", &of_agents])?;
        let components = [("DaemonSet", "agent"), ("Deployment", "controller")];
        Some(components.map(|(kind, component)| {
            let object = named(&objects, kind, &format!("flopwatch-{component}"));
            let variables = &object["spec"]["template"]["spec"]["containers"][0]["env"];
            let mut variables = variables.as_array().unwrap().iter();
            let key = variables.find(|one| one["name"] == "AWS_SECRET_ACCESS_KEY").unwrap();
            key["valueFrom"]["secretKeyRef"]["name"].clone()
        }))
    };
    let Some(found) = keys("writer") else { return };
    assert_eq!(found, ["writer", "whole"]);
    assert_eq!(keys("").unwrap(), ["whole"; 2]);
}

#[test]
fn an_agent_writes_one_kind_of_event_and_in_the_name_of_its_own_node() {
    let Some(objects) = render(&[]) else { return };
    let spec = denying(&objects, "flopwatch-agent-events");
    assert_eq!(
        spec["matchConstraints"]["resourceRules"],
        json!([{
            "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["events"]
        }])
    );
    let agent = format!("system:serviceaccount:{NAMESPACE}:flopwatch-agent");
    assert_eq!(
        spec["matchConditions"][0]["expression"],
        format!("request.userInfo.username == '{agent}'")
    );
    let node_policy = named(&objects, "ValidatingAdmissionPolicy", "flopwatch-agent-node");
    assert_eq!(
        spec["variables"],
        json!([node_policy["spec"]["variables"][0]]),
        "the node is the one that the token is bound to, as for captures"
    );
    let held = validations(spec);
    for rule in [
        "variables.tokenNode != ''",
        "request.operation == 'CREATE'",
        "object.reportingInstance == variables.tokenNode",
        "object.reason == 'RecordingKept'",
        "object.regarding.kind == 'Pod'",
    ] {
        assert!(held.iter().any(|one| one.contains(rule)), "{rule}: {held:?}");
    }
}

/// The pods that the chart's workloads make: kind, labels, ports.
fn workloads(objects: &[Value]) -> Vec<(&str, &Value, BTreeSet<u64>)> {
    let mut found = Vec::new();
    for kind in ["Deployment", "DaemonSet", "Job"] {
        for object in of_kind(objects, kind) {
            let template = &object["spec"]["template"];
            let containers = template["spec"]["containers"].as_array().unwrap();
            let ports = containers
                .iter()
                .flat_map(|one| one["ports"].as_array().into_iter().flatten());
            let ports = ports.map(|port| port["containerPort"].as_u64().unwrap()).collect();
            assert_ne!(
                template["spec"]["hostNetwork"],
                json!(true),
                "a policy would not hold for it"
            );
            found.push((
                object["metadata"]["name"].as_str().unwrap(),
                &template["metadata"]["labels"],
                ports,
            ));
        }
    }
    found
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().unwrap();
    wanted.iter().all(|(key, value)| labels[key] == *value)
}

/// The peers of each port that a policy opens.
fn opened<'a>(policy: &'a Value, direction: &str, peers: &str) -> BTreeMap<u64, &'a Value> {
    let mut opened = BTreeMap::new();
    for rule in policy["spec"][direction].as_array().into_iter().flatten() {
        let ports = rule["ports"]
            .as_array()
            .expect("a rule without ports opens all of them");
        for port in ports {
            opened.insert(port["port"].as_u64().unwrap(), &rule[peers]);
        }
    }
    opened
}

#[test]
fn every_pod_of_the_chart_has_one_network_policy_which_opens_its_ports_and_no_other() {
    let Some(objects) = render(&[]) else { return };
    let workloads = workloads(&objects);
    assert_eq!(workloads.len(), 5, "{workloads:?}");
    for (name, labels, ports) in workloads {
        let policies: Vec<&Value> = of_kind(&objects, "NetworkPolicy")
            .filter(|policy| selects(&policy["spec"]["podSelector"], labels))
            .collect();
        assert_eq!(policies.len(), 1, "{name}");
        assert_eq!(policies[0]["spec"]["policyTypes"], json!(["Ingress"]), "{name}");
        let opened: BTreeSet<u64> = opened(policies[0], "ingress", "from").into_keys().collect();
        let asked_by_the_kubelet_alone = BTreeSet::from([PROBES_PORT]).intersection(&ports).copied().collect();
        assert_eq!(&opened | &asked_by_the_kubelet_alone, ports, "{name}");
        assert!(opened.is_disjoint(&asked_by_the_kubelet_alone), "{name}");
    }
}

#[test]
fn agents_are_reached_by_the_gateway_alone_and_metrics_by_whom_the_values_name() {
    let Some(objects) = render(&["networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus"]) else {
        return;
    };
    let agent = opened(named(&objects, "NetworkPolicy", "flopwatch-agent"), "ingress", "from");
    let callers = agent[&8443].as_array().unwrap();
    let (_, gateway, _) = workloads(&objects)
        .into_iter()
        .find(|(name, ..)| *name == "flopwatch-gateway")
        .unwrap();
    assert_eq!(callers.len(), 1);
    assert!(selects(&callers[0]["podSelector"], gateway), "{callers:?}");
    for policy in of_kind(&objects, "NetworkPolicy") {
        if let Some(scrapers) = opened(policy, "ingress", "from").get(&9464) {
            assert_eq!(
                scrapers[0]["podSelector"]["matchLabels"]["app"], "prometheus",
                "{policy}"
            );
        }
    }
    let gateway = opened(named(&objects, "NetworkPolicy", "flopwatch-gateway"), "ingress", "from");
    assert!(gateway[&8443].is_null(), "its clients may be anywhere");

    let alone = render(&["gateway.enabled=false"]).unwrap();
    let agent = opened(named(&alone, "NetworkPolicy", "flopwatch-agent"), "ingress", "from");
    assert!(agent[&8443].is_null(), "without a gateway they are the only way");
    assert_eq!(of_kind(&alone, "NetworkPolicy").count(), 4);
    let off = render(&["networkPolicy.enabled=false"]).unwrap();
    assert_eq!(of_kind(&off, "NetworkPolicy").count(), 0);
}

#[test]
fn with_egress_bounded_each_component_connects_to_what_it_needs() {
    let bounded = [
        "networkPolicy.egress.enabled=true",
        "networkPolicy.egress.store.ports={9000}",
    ];
    let Some(plain) = render(&bounded) else { return };
    let ports = |objects: &[Value], name: &str| -> Vec<u64> {
        let policy = named(objects, "NetworkPolicy", name);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]), "{name}");
        opened(policy, "egress", "to").into_keys().collect()
    };
    let cluster = [53, 443, 6443];
    for name in [
        "flopwatch-agent",
        "flopwatch-controller",
        "flopwatch-admission",
        "flopwatch-release",
    ] {
        assert_eq!(ports(&plain, name), cluster, "{name}");
    }
    assert_eq!(ports(&plain, "flopwatch-gateway"), [53, 443, 6443, 8443]);
    let sets = [
        bounded.as_slice(),
        &[
            "store.url=s3://profiles/x",
            "networkPolicy.egress.registries.ports={5000}",
            "admission.entrypointLookup=pinned",
        ],
    ]
    .concat();
    let full = render(&sets).unwrap();
    for name in ["flopwatch-agent", "flopwatch-controller", "flopwatch-gateway"] {
        assert!(ports(&full, name).contains(&9000), "{name}");
    }
    assert_eq!(ports(&full, "flopwatch-admission"), [53, 443, 5000, 6443]);
    assert_eq!(ports(&full, "flopwatch-release"), cluster);
}
