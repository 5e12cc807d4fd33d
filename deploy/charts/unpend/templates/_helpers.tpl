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
{{- get (default dict (get (default dict .Values.config) "bus")) "url" -}}
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

{{/* The addresses that the service speaks to. */}}
{{- define "unpend.addresses" -}}
{{- $c := default dict .Values.config -}}
{{- $all := list (include "unpend.bus" .) (get (default dict (get $c "rca")) "prometheus") .Values.jira.url .Values.narrate.url .Values.knowledge.embeddings.url -}}
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

{{/* The keys of the Secret by which Slack and Jira are read. */}}
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
{{- if and $keys .embeddings.url .embeddings.key -}}
{{- $keys = append $keys .embeddings.key -}}
{{- end -}}
{{- end -}}
{{- join " " $keys -}}
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

{{/* Whether Slack comes to it with them: to a port of the executor's. */}}
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

{{- define "unpend.config" -}}
{{- $config := deepCopy (default dict .Values.config) -}}
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
{{- $_ := set $config "bus" (merge (dict "storeDir" (include "unpend.storeDir" .)) (default dict $config.bus)) -}}
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
