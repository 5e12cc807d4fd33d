{{- define "unpend.probe.name" -}}
{{ include "unpend.name" . }}-probe
{{- end -}}

{{- define "unpend.probe.namespace" -}}
{{- default (printf "%s-probe" (.Release.Namespace | trunc 57 | trimSuffix "-")) .Values.probe.namespace.name -}}
{{- end -}}

{{/* Not a name that the Deployment's selector, or the Service's, would match. */}}
{{- define "unpend.probe.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-probe
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What the probe's tier tells, for people. */}}
{{- define "unpend.probe.sees" -}}
which GPUs there are, their health, MIG mode and profiles
{{- if ge (int .Values.probe.tier) 2 }}, which pod holds which whole GPU{{ end }}
{{- if ge (int .Values.probe.tier) 3 }}, and where every MIG instance lies and which pod holds it{{ end }}
{{- end -}}

{{- define "unpend.probe.labels" -}}
{{ include "unpend.probe.selector" . }}
{{ include "unpend.about" . }}
{{- end -}}
