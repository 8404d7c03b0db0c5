{{- /* Where the operator's pods go: a standby on the leader's node stands by for little. */}}
{{- define "poolwise.scheduling" -}}
affinity:
{{- with .Values.affinity }}
{{- toYaml . | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "poolwise.selector" . | nindent 12 }}
{{- end }}
{{- $spread := .Values.topologySpread }}
{{- if or $spread.hostname $spread.zone }}
topologySpreadConstraints:
{{- range $key, $otherwise := dict "kubernetes.io/hostname" $spread.hostname "topology.kubernetes.io/zone" $spread.zone }}
{{- if $otherwise }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: {{ $otherwise }}
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels: {{- include "poolwise.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
