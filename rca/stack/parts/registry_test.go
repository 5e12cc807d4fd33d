package parts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of an image that does not come the registry's own answer is quoted, wherever the kubelet tells it; and what to do goes by that.
func TestWhatRegistriesAnswer(t *testing.T) {
	const image = "nvcr.io/nvidia/driver:1"
	back, wrapped := `Back-off pulling image "`+image+`"`, `failed to pull and unpack image "`+image+`": failed to resolve reference "`+image+`": `
	for name, row := range map[string]struct{ waiting, event, words, why string }{
		"its limit, by a new kubelet":  {back + ": ErrImagePull: " + `failed to pull and unpack image "` + image + `": failed to copy: httpReadSeeker: failed open: unexpected status code https://nvcr.io/v2/nvidia/driver/blobs/sha256:1a: 429 Too Many Requests`, "", "ImagePullBackOff: 429 Too Many Requests", "its registry limits how many pulls it serves"},
		"its limit, by an older one":   {back, failedToPull + `"` + image + `": rpc error: code = Unknown desc = ` + wrapped + "unexpected status from HEAD request to https://nvcr.io/v2/nvidia/driver/manifests/1: 429 Too Many Requests", "ImagePullBackOff: 429 Too Many Requests", "its registry limits how many pulls it serves"},
		"Docker Hub's limit":           {"toomanyrequests: You have reached your pull rate limit", "", "ImagePullBackOff: toomanyrequests: You have reached your pull rate limit", "its registry limits how many pulls it serves"},
		"nothing, as it isn't reached": {back, failedToPull + `"` + image + `": ` + wrapped + `failed to do request: Head "https://nvcr.io/v2/nvidia/driver/manifests/1": dial tcp: lookup nvcr.io: i/o timeout`, "ImagePullBackOff: dial tcp: lookup nvcr.io: i/o timeout", "its registry is not reached"},
		"that it is not there":         {back, failedToPull + `"` + image + `": rpc error: code = NotFound desc = ` + wrapped + image + ": not found", "ImagePullBackOff: " + image + ": not found", ""},
		"of another image":             {back, failedToPull + `"other": 429 Too Many Requests`, "ImagePullBackOff: " + back, ""},
		"and no word of it":            {back, "", "ImagePullBackOff: " + back, ""},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: row.waiting}}}}
		k := &Kit{unpulled: map[string]*corev1.Event{}}
		if row.event != "" {
			k.hear(&corev1.Event{Reason: "Failed", Message: row.event, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "g", Name: "p"}})
		}
		l := k.Look(p)
		why, steps, commands, ok := Barred(p, image, l.Whole)
		if l.Words != row.words || why != row.why || ok != (row.why != "") || ok != (len(steps) > 0) {
			t.Errorf("%s: %q, %q %q", name, l.Words, why, steps)
		}
		if limited := strings.Contains(why, "limits"); limited != (len(commands) == 1 && strings.Contains(commands[0], "-n g create secret docker-registry pulls --docker-server=nvcr.io ")) {
			t.Errorf("%s: %q", name, commands)
		}
	}
	if _, _, commands, _ := Barred(&corev1.Pod{}, "nvidia/cuda:1", "429 Too Many Requests"); !strings.Contains(commands[0], "--docker-server=docker.io ") {
		t.Errorf("an image of Docker Hub is asked for at %q", commands)
	}
}
