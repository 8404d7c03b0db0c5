{{- /*
Fills what is missing or null with the chart's defaults. An upgrade with --reuse-values brings the values of the older
chart, without any key that is newer; each file of templates begins with this, and then need not ask for any.
*/}}
{{- define "poolwise.init" }}
{{- include "poolwise.fill" (list .Values (.Files.Get "files/defaults.yaml" | fromYaml)) }}
{{- end }}

{{- /* Maps that Kubernetes knows are whole: a limit that is set to null stays away. */}}
{{- define "poolwise.fill" }}
{{- $given := index . 0 }}
{{- range $key, $default := index . 1 }}
{{- $value := index $given $key }}
{{- if kindIs "invalid" $value }}
{{- $_ := set $given $key (deepCopy $default) }}
{{- else if and (kindIs "map" $default) (not (has $key (list "resources" "podSecurityContext" "labels" "annotations"))) }}
{{- include "poolwise.fill" (list $value $default) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Of a release's name with dots, which the name of a Service cannot have, too. */}}
{{- define "poolwise.name" -}}
{{- $chart := default .Chart.Name .Values.nameOverride }}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) }}
{{- default $name .Values.fullnameOverride | replace "." "-" | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "poolwise.selector" -}}
app.kubernetes.io/name: poolwise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels of all objects. A user may replace any but those by which pods are selected. */}}
{{- define "poolwise.labels" -}}
{{- include "poolwise.labelsOf" (list . "poolwise") }}
{{- end }}

{{- /* The same for objects of another name: list ROOT NAME. */}}
{{- define "poolwise.labelsOf" -}}
{{- $root := index . 0 }}
{{- $fixed := dict "app.kubernetes.io/name" (index . 1) "app.kubernetes.io/instance" $root.Release.Name }}
{{- $ours := dict
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service
  "app.kubernetes.io/part-of" "poolwise"
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") }}
{{- merge $fixed $root.Values.commonLabels $ours | toYaml }}
{{- end }}

{{- define "poolwise.serviceAccount" -}}
{{- $own := ternary (include "poolwise.name" .) "default" .Values.serviceAccount.create }}
{{- default $own .Values.serviceAccount.name }}
{{- end }}

{{- define "poolwise.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "poolwise.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "poolwise.image" -}}
{{- $repository := required "image.repository is empty: no image is published yet, name one of your own" .Values.image.repository }}
{{- if .Values.image.digest }}{{ $repository }}@{{ .Values.image.digest }}
{{- else }}{{ $repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- /* A value as the operator reads it from its environment: not 1e+06, which is how Helm writes a million. */}}
{{- define "poolwise.text" -}}
{{- if kindIs "string" . }}{{ . }}
{{- else if kindIs "slice" . }}{{ $parts := list }}{{ range . }}{{ $parts = append $parts (include "poolwise.text" .) }}{{ end }}{{ join "," $parts }}
{{- else }}{{ toJson . }}
{{- end }}
{{- end }}

{{- /* A setting, or the default that the operator would take: list ROOT NAME DEFAULT. */}}
{{- define "poolwise.setting" -}}
{{- $given := index (index . 0).Values.settings (index . 1) }}
{{- if kindIs "invalid" $given }}{{ index . 2 }}{{ else }}{{ include "poolwise.text" $given }}{{ end }}
{{- end }}

{{- /* Whether replicas wait for the Lease; empty where they do not. */}}
{{- define "poolwise.elects" -}}
{{- ne "false" (include "poolwise.setting" (list . "leader_election" "true")) | ternary "yes" "" }}
{{- end }}

{{- /* NAMESPACE/NAME of the release that an object of the cluster belongs to; empty for none. */}}
{{- define "poolwise.ownerOf" -}}
{{- $annotations := dig "metadata" "annotations" dict . }}
{{- with get $annotations "meta.helm.sh/release-name" }}{{ get $annotations "meta.helm.sh/release-namespace" }}/{{ . }}{{ end }}
{{- end }}

{{- /* Ports; empty where the setting turns the listener off. */}}
{{- define "poolwise.metricsPort" -}}
{{- include "poolwise.setting" (list . "metrics_listen" "0.0.0.0:8080") | regexFind "[0-9]+$" }}
{{- end }}
{{- define "poolwise.healthPort" -}}
{{- include "poolwise.setting" (list . "liveness_listen" "0.0.0.0:8081") | regexFind "[0-9]+$" }}
{{- end }}

{{- /* What no container of this chart needs. */}}
{{- define "poolwise.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
