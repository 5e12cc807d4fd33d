{{/* The name of everything namespaced: the release's name, with the chart's unless it is in it. */}}
{{- define "unpend.name" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- $full | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* Cluster-scoped objects carry the namespace too: two releases may not share one. */}}
{{- define "unpend.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "unpend.name" .) -}}
{{- end -}}

{{- define "unpend.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "unpend.labels" -}}
{{ include "unpend.selector" . }}
{{ include "unpend.about" . }}
{{- end -}}

{{- define "unpend.about" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "unpend.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "unpend.name" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* Takes (list image chart): the values of one image, and .Chart. */}}
{{- define "unpend.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default (index . 1).AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{- define "unpend.storeDir" -}}/var/lib/unpend{{- end -}}

{{- define "unpend.config" -}}
{{- $config := deepCopy (default dict .Values.config) -}}
{{- $_ := set $config "bus" (merge (dict "storeDir" (include "unpend.storeDir" .)) (default dict $config.bus)) -}}
{{- if eq .Values.mode "approve" -}}
{{- $told := dict "audit" (printf "%s/audit/trail.jsonl" (include "unpend.storeDir" .)) -}}
{{- with .Values.remediate.approvers.groups -}}
{{- $_ := set $told "groups" . -}}
{{- end -}}
{{- $_ := set $config "remediate" (merge $told (default dict $config.remediate)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
