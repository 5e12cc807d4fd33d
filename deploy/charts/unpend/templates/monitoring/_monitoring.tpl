{{/* Whether the cluster knows the Prometheus Operator's kinds: without them what asks for them
is left out, and NOTES.txt says so. */}}
{{- define "unpend.operator" -}}
{{- if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}true{{- end -}}
{{- end -}}
