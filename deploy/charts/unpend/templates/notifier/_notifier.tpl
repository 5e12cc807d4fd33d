{{- define "unpend.notifier.name" -}}
{{ include "unpend.name" . }}-notifier
{{- end -}}

{{/* Not a name that the service's selectors would match. */}}
{{- define "unpend.notifier.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-notifier
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "unpend.notifier.labels" -}}
{{ include "unpend.notifier.selector" . }}
{{ include "unpend.about" . }}
{{- end -}}

{{/* The ServiceAccounts that read what a diagnosis is made from, besides the executor's: the
service's, and where people decide in Slack that of who finds the fix again for them. */}}
{{- define "unpend.readers" -}}
- kind: ServiceAccount
  name: {{ include "unpend.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- if include "unpend.notifierHears" . }}
- kind: ServiceAccount
  name: {{ include "unpend.notifier.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end -}}
