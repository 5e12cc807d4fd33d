package parts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// failedToPull begins the kubelet's Event about an image that does not come (pkg/kubelet/images/image_manager.go).
const failedToPull = "Failed to pull image "

// passedOn are the words of the calls that a registry's answer comes through, the kubelet's first and then containerd's, and the
// address that was asked. Without them the answer itself stands where a reader sees it.
var passedOn = regexp.MustCompile(`^(?:(?:Back-off pulling|Failed to pull|failed to pull and unpack) image "[^"]*": |ErrImagePull: |rpc error: code = \w+ desc = |failed to resolve reference "[^"]*": |failed to copy: |httpReadSeeker: |failed open: |failed to do request: |(?:Head|Get) "[^"]*": |unexpected status (?:code|from \w+ request to) https?://\S+: )+`)

// answered is what came back for an image that does not come; other messages as they are.
func answered(message string) string { return passedOn.ReplaceAllString(message, "") }

// unanswered says whether a container waits for its image and does not say why: kubelets before 1.32 tell it by an Event alone.
func unanswered(message string) bool {
	return strings.HasPrefix(message, "Back-off pulling image ") && answered(message) == message
}

// limited and unreached are how registries, runtimes and resolvers say that an image cannot be had now, wherever it is published.
var (
	limited   = []string{"429 too many requests", "toomanyrequests", "rate limit"}
	unreached = []string{"i/o timeout", "no such host", "connection refused", "connection reset", "no route to host", "network is unreachable", "tls handshake timeout", "server misbehaving"}
)

// Barred is what else is to be done about an image that its registry has, or may have, and does not give to this node: it limits
// its pulls, or is not reached. Ok is false where neither is said.
func Barred(pod *corev1.Pod, image, words string) (why string, steps, commands []string, ok bool) {
	said := func(signs []string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(strings.ToLower(words), sign) })
	}
	switch {
	case said(limited):
		server, _, _ := strings.Cut(image, "/")
		if !strings.ContainsAny(server, ".:") {
			server = "docker.io"
		}
		return "its registry limits how many pulls it serves", []string{"wait, where the limit is one by time: the kubelet asks again by itself, at most 5 min apart",
				"else have it ask with an account, whose limit may be higher: by a pull secret, which whatever makes the pod is to name; or have the image come from a mirror or a registry of one's own"},
			[]string{fmt.Sprintf("kubectl -n %s create secret docker-registry pulls --docker-server=%s --docker-username=USER --docker-password=PASSWORD  # and name it in imagePullSecrets", pod.Namespace, server)}, true
	case said(unreached):
		return "its registry is not reached", []string{"see from the node itself whether it resolves and reaches the registry: DNS, a proxy that its container runtime has to know, a firewall", "or have the image come from a mirror that it reaches"}, nil, true
	}
	return "", nil, nil, false
}
