{{- define "flopwatch.image" -}}
{{- $image := .image -}}
{{- if not $image -}}
{{- $image = index .root.Values.images .name -}}
{{- end -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{- define "flopwatch.selector" -}}
app.kubernetes.io/name: flopwatch
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "flopwatch.labels" -}}
{{ include "flopwatch.selector" . }}
app.kubernetes.io/part-of: flopwatch
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "flopwatch.scrape" -}}
{{- if .Values.metrics.annotations -}}
prometheus.io/scrape: "true"
prometheus.io/port: "9464"
prometheus.io/scheme: https
prometheus.io/path: /metrics
{{- end -}}
{{- end -}}

{{/* Pod Security "restricted", for everything but the agent. */}}
{{- define "flopwatch.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "flopwatch.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Who shows a token, and what they may: for everybody who serves anything. */}}
{{- define "flopwatch.reviewRules" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{- define "flopwatch.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: health }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: health }
  periodSeconds: 10
readinessProbe:
  httpGet: { path: /readyz, port: health }
  periodSeconds: 2
{{- end -}}


{{/* Where the object store is: flags, credentials, and the mount of its authority; the same for agents, controller and gateway. */}}
{{- define "flopwatch.storeFlags" -}}
{{- with .Values.store -}}
{{- if .url }}
- --store-url={{ .url }}
- --store-region={{ .region }}
{{- with .endpoint }}
- --store-endpoint={{ . }}
{{- end }}
{{- if .virtualHosts }}
- --store-virtual-hosts
{{- end }}
{{- if .authoritySecretName }}
- --store-authority=/etc/flopwatch/store/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "flopwatch.storeEnv" -}}
{{- if and .root.Values.store.url .secret }}
{{- range list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" }}
- { name: {{ . }}, valueFrom: { secretKeyRef: { name: {{ $.secret }}, key: {{ . }}, optional: {{ eq . "AWS_SESSION_TOKEN" }} } } }
{{- end }}
{{- end }}
{{- end -}}

{{- define "flopwatch.storeMount" -}}
{{- if and .Values.store.url .Values.store.authoritySecretName }}
- { name: store, mountPath: /etc/flopwatch/store, readOnly: true }
{{- end }}
{{- end -}}

{{- define "flopwatch.storeVolume" -}}
{{- if and .Values.store.url .Values.store.authoritySecretName }}
- { name: store, secret: { secretName: {{ .Values.store.authoritySecretName }}, items: [{ key: ca.crt, path: ca.crt }] } }
{{- end }}
{{- end -}}

{{- define "flopwatch.storeAccount" -}}
{{- if .Values.store.url }}
{{- with .Values.store.serviceAccountAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The cluster's own name in the store is the UID of a namespace that every cluster has. */}}
{{- define "flopwatch.storeRule" -}}
{{- if .Values.store.url }}
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
{{- end -}}

{{/* The allocator's options: two heaps, and what was freed goes back to the node after a second. */}}
{{- define "flopwatch.memoryEnv" -}}
- { name: _RJEM_MALLOC_CONF, value: "narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0" }
{{- end -}}
