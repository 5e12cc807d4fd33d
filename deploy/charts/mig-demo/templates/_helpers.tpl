{{- define "mig-demo.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Takes (list . name request): the spec of a pod that holds what it asks for and does nothing. */}}
{{- define "mig-demo.pod" -}}
{{- $ := index . 0 -}}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 5
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with $.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
containers:
- name: {{ index . 1 }}
  image: {{ $.Values.image.repository }}:{{ $.Values.image.tag }}
  imagePullPolicy: {{ $.Values.image.pullPolicy }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits:
      memory: 64Mi
      {{ index . 2 }}: {{ index . 3 | quote }}
{{- with $.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
{{- with $.Values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- if $.Values.kwok.nodes }}
- {key: kwok.x-k8s.io/node, operator: Exists}
{{- end }}
{{- end -}}
