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

{{- define "unpend.probe.labels" -}}
{{ include "unpend.probe.selector" . }}
{{ include "unpend.about" . }}
{{- end -}}
