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

{{/* Whether the embedded NATS has a volume: where another is named there is none. */}}
{{- define "unpend.stores" -}}
{{- if and .Values.persistence.enabled (not (include "unpend.bus" .)) -}}true{{- end -}}
{{- end -}}

{{/* The NATS that is named; empty: the embedded one. */}}
{{- define "unpend.bus" -}}
{{- $config := get (default dict (get (default dict .Values.config) "bus")) "url" -}}
{{- if and $config .Values.nats.url (ne $config .Values.nats.url) -}}
{{- fail (printf "nats.url is %s and config.bus.url is %s: name one" .Values.nats.url $config) -}}
{{- end -}}
{{- default .Values.nats.url $config -}}
{{- end -}}

{{- define "unpend.separate" -}}
{{- if eq .Values.layout "separate" -}}true{{- end -}}
{{- end -}}

{{/* Whether the embedded NATS listens, for pods that have none of their own. */}}
{{- define "unpend.listens" -}}
{{- if and (include "unpend.separate" .) (not (include "unpend.bus" .)) -}}
{{- if not (and .Values.nats.existingSecret .Values.nats.tokenKey) -}}
{{- fail "layout is separate and neither nats.url nor nats.existingSecret with nats.tokenKey is set: name a NATS of yours, or the Secret and its key that hold the token by which the pods come to the one that the service embeds" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* The kind of what runs the service, as kubectl takes it. */}}
{{- define "unpend.runsAs" -}}
{{ ternary "statefulset" "deployment" (not (empty (include "unpend.listens" .))) }}
{{- end -}}

{{- define "unpend.natsDir" -}}/etc/unpend-nats{{- end -}}

{{/* The keys of the Secret by which NATS is spoken to, by what the configuration calls them. */}}
{{- define "unpend.natsKeys" -}}
{{- $n := .Values.nats -}}
{{- range $file, $key := dict "tokenFile" $n.tokenKey "credsFile" $n.credsKey "caFile" $n.caKey "certFile" $n.certKey "keyFile" $n.keyKey -}}
{{- with $key }}
{{ $file }}: {{ . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What bus: of the configuration gets from the values of nats. */}}
{{- define "unpend.nats" -}}
{{- $its := dict -}}
{{- with include "unpend.bus" . -}}
{{- $_ := set $its "url" . -}}
{{- end -}}
{{- if include "unpend.listens" . -}}
{{- $_ := set $its "listen" (printf ":%d" (int .Values.nats.port)) -}}
{{- end -}}
{{- if .Values.nats.existingSecret -}}
{{- range $file, $key := fromYaml (include "unpend.natsKeys" .) -}}
{{- $_ := set $its $file (printf "%s/%s" (include "unpend.natsDir" $) $key) -}}
{{- end -}}
{{- end -}}
{{- toYaml $its -}}
{{- end -}}

{{/* Where pods without a NATS of their own find the one that the service embeds. */}}
{{- define "unpend.embedded" -}}
{{- if include "unpend.listens" . -}}
{{ ternary "tls" "nats" (not (empty .Values.nats.certKey)) }}://{{ include "unpend.name" . }}-bus.{{ .Release.Namespace }}.svc:{{ .Values.nats.port }}
{{- end -}}
{{- end -}}

{{- define "unpend.natsMounts" -}}
{{- if .Values.nats.existingSecret }}
- {name: nats, mountPath: {{ include "unpend.natsDir" . }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "unpend.natsVolumes" -}}
{{- if .Values.nats.existingSecret }}
- name: nats
  secret:
    secretName: {{ .Values.nats.existingSecret }}
    defaultMode: 0440
    items:
    {{- range $_, $key := fromYaml (include "unpend.natsKeys" .) }}
    - {key: {{ quote $key }}, path: {{ quote $key }}}
    {{- end }}
{{- end }}
{{- end -}}

{{/* What people are told with, and what is read of what they have said: of the pod that does. A
Secret that is not there leaves that place off, and nothing else. */}}
{{- define "unpend.toldMounts" -}}
{{- if .Values.slack.channel }}
- {name: slack, mountPath: {{ include "unpend.slackDir" . }}, readOnly: true}
{{- end }}
{{- if .Values.paging.existingSecret }}
- {name: paging, mountPath: {{ include "unpend.pagingDir" . }}, readOnly: true}
{{- end }}
{{- if .Values.jira.url }}
- {name: jira, mountPath: {{ include "unpend.jiraDir" . }}, readOnly: true}
{{- end }}
{{- if include "unpend.narrateKey" . }}
- {name: narrate, mountPath: {{ include "unpend.narrateDir" . }}, readOnly: true}
{{- end }}
{{- if include "unpend.knowledgeKeys" . }}
- {name: knowledge, mountPath: {{ include "unpend.knowledgeDir" . }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "unpend.toldVolumes" -}}
{{- if .Values.slack.channel }}
- name: slack
  secret:
    secretName: {{ .Values.slack.existingSecret }}
    defaultMode: 0440
    optional: true
    items:
    {{- $keys := list .Values.slack.key }}
    {{- if include "unpend.notifierHears" . }}
    {{- $keys = compact (append (append $keys .Values.slack.appKey) .Values.slack.signingKey) }}
    {{- end }}
    {{- range $keys }}
    - {key: {{ quote . }}, path: {{ quote . }}}
    {{- end }}
{{- end }}
{{- with .Values.paging.existingSecret }}
- name: paging
  secret: {secretName: {{ . }}, defaultMode: 0440, optional: true}
{{- end }}
{{- if .Values.jira.url }}
- name: jira
  secret:
    secretName: {{ .Values.jira.existingSecret }}
    defaultMode: 0440
    optional: true
    items: [{key: {{ .Values.jira.key | quote }}, path: {{ .Values.jira.key | quote }}}]
{{- end }}
{{- if include "unpend.narrateKey" . }}
- name: narrate
  secret:
    secretName: {{ .Values.narrate.existingSecret }}
    defaultMode: 0440
    optional: true
    items: [{key: {{ .Values.narrate.key | quote }}, path: {{ .Values.narrate.key | quote }}}]
{{- end }}
{{- with include "unpend.knowledgeKeys" . }}
- name: knowledge
  secret:
    secretName: {{ $.Values.knowledge.existingSecret }}
    defaultMode: 0440
    optional: true
    items:
    {{- range splitList " " . | uniq }}
    - {key: {{ . | quote }}, path: {{ . | quote }}}
    {{- end }}
{{- end }}
{{- end -}}

{{/* Takes (list . addresses): what a pod may reach. NetworkPolicies know no names, so it is
ports: of names, of the API server, and of these addresses. */}}
{{- define "unpend.egress" -}}
{{- $ports := list 443 6443 -}}
{{- range $addresses := index . 1 -}}
{{- range $one := splitList "," (default "" $addresses) -}}
{{- with trim $one -}}
{{- $at := urlParse . -}}
{{- $of := get (dict "http" "80" "nats" "4222" "tls" "4222") $at.scheme | default "443" -}}
{{- $ports = append $ports (int (default $of (trimPrefix ":" (regexFind ":[0-9]+$" $at.host)))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
egress:
- ports:
  - {port: 53, protocol: UDP}
  - {port: 53, protocol: TCP}
- ports:
  {{- range uniq $ports }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
{{- with (index . 0).Values.networkPolicy.egress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The addresses that every pod speaks to. */}}
{{- define "unpend.everyAddress" -}}
{{- compact (list (include "unpend.bus" .) (get (default dict (get (default dict .Values.config) "traces")) "url")) | join "," -}}
{{- end -}}

{{/* The addresses that the service speaks to, and those where people are told and heard. */}}
{{- define "unpend.readAddresses" -}}
{{- compact (list (get (default dict (get (default dict .Values.config) "rca")) "prometheus") .Values.knowledge.embeddings.url) | join "," -}}
{{- end -}}

{{- define "unpend.toldAddresses" -}}
{{- $c := default dict .Values.config -}}
{{- $all := list .Values.jira.url .Values.narrate.url .Values.knowledge.jira.url -}}
{{- range $place := list "pagerduty" "opsgenie" "alertmanager" "webhook" -}}
{{- $its := default dict (get $c $place) -}}
{{- $all = concat (append $all (get $its "url")) (default list (get $its "urls")) -}}
{{- end -}}
{{- compact $all | join "," -}}
{{- end -}}

{{/* Where the program listens for probes and scrapes: on all addresses of the pod, for
both come to the pod's own. */}}
{{- define "unpend.metricsAddress" -}}
{{- $web := default dict (default dict .Values.config).web -}}
{{- default ":9090" (get $web "metrics") -}}
{{- end -}}

{{- define "unpend.metricsPort" -}}
{{- $address := include "unpend.metricsAddress" . -}}
{{- if regexMatch "^(127\\.|localhost|\\[::1\\])" $address -}}
{{- fail (printf "config.web.metrics is %s: the probes of the pod come to its own address and would never find it; leave it out, or write :PORT" $address) -}}
{{- end -}}
{{- $port := regexFind "[1-9][0-9]*$" $address -}}
{{- if not $port -}}
{{- fail (printf "config.web.metrics is %s: it has to end in the port that the probes ask, such as :9090" $address) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{- define "unpend.slackDir" -}}/etc/unpend-slack{{- end -}}
{{- define "unpend.jiraDir" -}}/etc/unpend-jira{{- end -}}
{{- define "unpend.narrateDir" -}}/etc/unpend-narrate{{- end -}}

{{/* Whether a model is asked that wants a key. */}}
{{- define "unpend.narrateKey" -}}
{{- if and .Values.narrate.url .Values.narrate.existingSecret -}}true{{- end -}}
{{- end -}}

{{- define "unpend.knowledgeDir" -}}/etc/unpend-knowledge{{- end -}}

{{/* The key of that Secret by which the model is asked what documents mean, by who diagnoses. */}}
{{- define "unpend.embeddingsKey" -}}
{{- with .Values.knowledge.embeddings -}}
{{- if .url -}}{{- .key -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The keys of the Secret by which Slack and Jira are read, in one pod the model's too. */}}
{{- define "unpend.knowledgeKeys" -}}
{{- $keys := list -}}
{{- with .Values.knowledge -}}
{{- if or .slack.channels .slack.privateChannels -}}
{{- $keys = append $keys .slack.key -}}
{{- with .slack.appKey -}}
{{- $keys = append $keys . -}}
{{- end -}}
{{- end -}}
{{- if .jira.url -}}
{{- $keys = append $keys .jira.key -}}
{{- end -}}
{{- if and $keys (not (include "unpend.separate" $)) -}}
{{- $keys = append $keys (include "unpend.embeddingsKey" $) -}}
{{- end -}}
{{- end -}}
{{- compact $keys | join " " -}}
{{- end -}}

{{/* What knowledge: of the configuration gets from the values of the same name. */}}
{{- define "unpend.knowledge" -}}
{{- if not .Values.knowledge.existingSecret -}}
{{- fail "knowledge.slack or knowledge.jira is set, knowledge.existingSecret is not: name the Secret that holds the tokens by which they are read" -}}
{{- end -}}
{{- $reads := dict -}}
{{- $s := .Values.knowledge.slack -}}
{{- if or $s.channels $s.privateChannels -}}
{{- $slack := dict "tokenFile" (printf "%s/%s" (include "unpend.knowledgeDir" .) $s.key) -}}
{{- with $s.appKey -}}
{{- $_ := set $slack "appTokenFile" (printf "%s/%s" (include "unpend.knowledgeDir" $) .) -}}
{{- end -}}
{{- range $key, $value := omit $s "key" "appKey" -}}
{{- if $value -}}
{{- $_ := set $slack $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $reads "slack" $slack -}}
{{- end -}}
{{- if .Values.knowledge.jira.url -}}
{{- $jira := dict "tokenFile" (printf "%s/%s" (include "unpend.knowledgeDir" .) .Values.knowledge.jira.key) -}}
{{- range $key, $value := omit .Values.knowledge.jira "key" -}}
{{- if $value -}}
{{- $_ := set $jira $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $reads "jira" $jira -}}
{{- end -}}
{{- with .Values.knowledge.embeddings -}}
{{- if .url -}}
{{- if not .model -}}
{{- fail "knowledge.embeddings.url is set, knowledge.embeddings.model is not: name the model as the server calls it" -}}
{{- end -}}
{{- $asked := dict "url" .url "model" .model -}}
{{- with .key -}}
{{- $_ := set $asked "keyFile" (printf "%s/%s" (include "unpend.knowledgeDir" $) .) -}}
{{- end -}}
{{- $_ := set $reads "embeddings" $asked -}}
{{- end -}}
{{- end -}}
{{- toYaml $reads -}}
{{- end -}}

{{- define "unpend.pagingDir" -}}/etc/unpend-paging{{- end -}}

{{/* Whether the executor hears what people click in Slack. */}}
{{- define "unpend.slackHeard" -}}
{{- if and (eq .Values.mode "approve") .Values.slack.channel (or .Values.slack.appKey .Values.slack.signingKey) -}}true{{- end -}}
{{- end -}}

{{/* Whose pod hears them: where people are told by a pod of its own, that one. Before 1.36 who may
act as somebody may do all that they may, and that right two pods do not get. */}}
{{- define "unpend.notifierHears" -}}
{{- if and (include "unpend.slackHeard" .) (include "unpend.separate" .) -}}
{{- if not (include "unpend.executor.constrained" .) -}}
{{- fail (printf "layout is separate and slack.appKey or slack.signingKey is set, on Kubernetes %s: the notifier would have to act as approvers, which before 1.36 means with all their rights; leave slack.appKey and slack.signingKey out, or use layout: one, where the executor hears what people click" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- define "unpend.executorHears" -}}
{{- if and (include "unpend.slackHeard" .) (not (include "unpend.separate" .)) -}}true{{- end -}}
{{- end -}}

{{/* Whether Slack comes with them: to a port of the pod that hears them. */}}
{{- define "unpend.slackComes" -}}
{{- if and (include "unpend.slackHeard" .) .Values.slack.signingKey -}}true{{- end -}}
{{- end -}}

{{- define "unpend.hooksDir" -}}/etc/unpend-hooks{{- end -}}

{{- define "unpend.hooks" -}}
{{- $h := .Values.hooks -}}
{{- if not (or $h.tokenKey $h.secretKey $h.pagerDutyKey) -}}
{{- fail "hooks.existingSecret is set, hooks.tokenKey, hooks.secretKey and hooks.pagerDutyKey are not: anybody could call; name the key of an Alertmanager's token, of the webhooks' secrets, or of PagerDuty's" -}}
{{- end -}}
{{- $takes := dict "listen" (printf ":%d" (int $h.port)) -}}
{{- range $key, $file := dict "tokenKey" "tokenFile" "secretKey" "secretFile" "pagerDutyKey" "pagerDutySecretFile" -}}
{{- with get $h $key -}}
{{- $_ := set $takes $file (printf "%s/%s" (include "unpend.hooksDir" $) .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $takes -}}
{{- end -}}

{{/* The kinds of owners that are named, as JSON: in the configuration too. */}}
{{- define "unpend.ownerKinds" -}}
{{- $config := default dict (get (default dict .Values.config) "rca") -}}
{{- concat (default list (get (default dict .Values.rca) "ownerKinds")) (default list (get $config "ownerKinds")) | uniq | toJson -}}
{{- end -}}

{{- define "unpend.config" -}}
{{- $config := deepCopy (default dict .Values.config) -}}
{{- with fromJsonArray (include "unpend.ownerKinds" .) -}}
{{- $_ := set $config "rca" (merge (dict "ownerKinds" .) (default dict (get $config "rca"))) -}}
{{- end -}}
{{- range $place, $file := dict "pagerduty" "keyFile" "opsgenie" "keyFile" "webhook" "secretFile" -}}
{{- if hasKey $config $place -}}
{{- if not $.Values.paging.existingSecret -}}
{{- fail (printf "config.%s is set, paging.existingSecret is not: name the Secret that holds what it is told with under the key %s" $place $place) -}}
{{- end -}}
{{- $_ := set $config $place (merge (dict $file (printf "%s/%s" (include "unpend.pagingDir" $) $place)) (default dict (get $config $place))) -}}
{{- end -}}
{{- end -}}
{{- if .Values.slack.channel -}}
{{- if not .Values.slack.existingSecret -}}
{{- fail "slack.channel is set, slack.existingSecret is not: name the Secret that holds the bot's token" -}}
{{- end -}}
{{- $told := dict "channel" .Values.slack.channel "tokenFile" (printf "%s/%s" (include "unpend.slackDir" .) .Values.slack.key) -}}
{{- with .Values.slack.cluster -}}
{{- $_ := set $told "cluster" . -}}
{{- end -}}
{{- if include "unpend.slackHeard" . -}}
{{- if and .Values.slack.appKey .Values.slack.signingKey -}}
{{- fail "slack.appKey and slack.signingKey are two ways for clicks to come: name one" -}}
{{- end -}}
{{- with .Values.slack.appKey -}}
{{- $_ := set $told "appTokenFile" (printf "%s/%s" (include "unpend.slackDir" $) .) -}}
{{- end -}}
{{- if include "unpend.notifierHears" . -}}
{{- $_ := set $told "heardBy" "notify" -}}
{{- end -}}
{{- with .Values.slack.signingKey -}}
{{- $_ := set $told "signingSecretFile" (printf "%s/%s" (include "unpend.slackDir" $) .) -}}
{{- $_ := set $told "listen" (printf ":%d" (int $.Values.slack.port)) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $config "slack" $told -}}
{{- end -}}
{{- if .Values.hooks.existingSecret -}}
{{- $_ := set $config "hooks" (fromYaml (include "unpend.hooks" .)) -}}
{{- end -}}
{{- if .Values.jira.url -}}
{{- if not .Values.jira.existingSecret -}}
{{- fail "jira.url is set, jira.existingSecret is not: name the Secret that holds the account's token" -}}
{{- end -}}
{{- $told := dict "tokenFile" (printf "%s/%s" (include "unpend.jiraDir" .) .Values.jira.key) -}}
{{- range $key, $value := omit .Values.jira "existingSecret" "key" -}}
{{- if $value -}}
{{- $_ := set $told $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $config "jira" $told -}}
{{- end -}}
{{- if .Values.narrate.url -}}
{{- if not .Values.narrate.model -}}
{{- fail "narrate.url is set, narrate.model is not: name the model as the server calls it" -}}
{{- end -}}
{{- $asked := dict -}}
{{- range $key, $value := omit .Values.narrate "existingSecret" "key" -}}
{{- if $value -}}
{{- $_ := set $asked $key $value -}}
{{- end -}}
{{- end -}}
{{- if include "unpend.narrateKey" . -}}
{{- $_ := set $asked "keyFile" (printf "%s/%s" (include "unpend.narrateDir" .) .Values.narrate.key) -}}
{{- end -}}
{{- $_ := set $config "narrate" $asked -}}
{{- end -}}
{{- if and .Values.knowledge.embeddings.url (not (include "unpend.knowledgeKeys" .)) -}}
{{- fail "knowledge.embeddings.url is set, and nothing is read: name channels in knowledge.slack, or knowledge.jira.url" -}}
{{- end -}}
{{- if include "unpend.knowledgeKeys" . -}}
{{- $_ := set $config "knowledge" (merge (fromYaml (include "unpend.knowledge" .)) (default dict $config.knowledge)) -}}
{{- end -}}
{{- if or .Values.kubectl.events .Values.kubectl.annotations -}}
{{- $_ := set $config "kubectl" .Values.kubectl -}}
{{- end -}}
{{- $_ := set $config "bus" (merge (dict "storeDir" (include "unpend.storeDir" .)) (fromYaml (include "unpend.nats" .)) (default dict $config.bus)) -}}
{{- $_ := set $config "web" (merge (dict "metrics" (include "unpend.metricsAddress" .)) (default dict $config.web)) -}}
{{- if .Values.web.enabled -}}
{{- $_ := set $config.web "listen" (printf "127.0.0.1:%d" (int .Values.web.port)) -}}
{{- end -}}
{{- if eq .Values.mode "approve" -}}
{{- $told := dict "audit" (printf "%s/audit/trail.jsonl" (include "unpend.storeDir" .)) -}}
{{- with .Values.remediate.approvers.groups -}}
{{- $_ := set $told "groups" . -}}
{{- end -}}
{{- $_ := set $config "remediate" (merge $told (default dict $config.remediate)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
