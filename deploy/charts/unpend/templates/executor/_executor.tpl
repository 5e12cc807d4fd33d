{{- define "unpend.executor.name" -}}
{{ include "unpend.name" . }}-executor
{{- end -}}

{{- define "unpend.executor.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "unpend.executor.name" . }}
{{- end -}}

{{/* Not a name that the service's selectors would match. */}}
{{- define "unpend.executor.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-executor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "unpend.executor.labels" -}}
{{ include "unpend.executor.selector" . }}
{{ include "unpend.about" . }}
{{- end -}}

{{/* KEP-5284: on by default since 1.36. Before it, impersonation is all or nothing. */}}
{{- define "unpend.executor.constrained" -}}
{{- if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version -}}true{{- end -}}
{{- end -}}

{{- define "unpend.approvers" -}}
{{- range .Values.remediate.approvers.users }}
- kind: User
  apiGroup: rbac.authorization.k8s.io
  name: {{ quote . }}
{{- end }}
{{- range .Values.remediate.approvers.groups }}
- kind: Group
  apiGroup: rbac.authorization.k8s.io
  name: {{ quote . }}
{{- end }}
{{- end -}}
