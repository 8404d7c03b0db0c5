{{- define "poolwise.name" -}}
{{- if contains "poolwise" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-poolwise{{ end }}
{{- end }}

{{- define "poolwise.selector" -}}
app.kubernetes.io/name: poolwise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "poolwise.labels" -}}
{{ include "poolwise.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "poolwise.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "poolwise.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
