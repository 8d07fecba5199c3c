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

{{- define "flopwatch.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 2
  failureThreshold: 30
livenessProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 10
readinessProbe:
  httpGet: { path: /readyz, port: metrics }
  periodSeconds: 2
{{- end -}}
