package decisions

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/terminal"
)

// answers of pods at /readyz; one that has none refuses.
type answers map[string]struct {
	code int
	text string
}

func (a answers) serve(t *testing.T) kubernetes.Interface {
	t.Helper()
	var pods corev1.PodList
	for _, name := range []string{"unpend-a", "unpend-b", "unpend-c", "unpend-d"} {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "unpend", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9191}}}}}}
		if name == "unpend-d" {
			p.Status.Phase = corev1.PodPending
		}
		pods.Items = append(pods.Items, p)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, of, asked := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/unpend/pods/http:"), ":9191/proxy/")
		is, known := a[name]
		switch {
		case r.URL.Path == "/api/v1/namespaces/unpend/pods" && r.URL.Query().Get("labelSelector") == ofTheService:
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(pods)
		case asked && of == "readyz" && known:
			w.WriteHeader(is.code)
			fmt.Fprintln(w, is.text)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "you may not"})
		}
	}))
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Each pod of the service is asked; which places are not told, and why, is told of a pod that
// does its work; one that is not ready says why, and so does one that does not run.
func TestStatusAsksTheService(t *testing.T) {
	all, err := processes(t.Context(), answers{"unpend-a": {200, "ok\nslack is not told since 2026-11-22T12:00:00Z: the bot is not in channel C1: invite it there"},
		"unpend-b": {503, "store-full since 2026-11-22T12:00:00Z"}, "unpend-c": {200, "ok, standby"}}.serve(t), "unpend")
	if err != nil {
		t.Fatal(err)
	}
	var s standing
	s.tellProcesses(all)
	want := []terminal.Line{{Alarm: true, Key: "not told", Text: "unpend-a: slack is not told since 2026-11-22T12:00:00Z: the bot is not in channel C1: invite it there"},
		{Alarm: true, Key: "service", Text: "unpend-b is not ready: store-full since 2026-11-22T12:00:00Z"}, {Key: "service", Text: "unpend-c does its work"},
		{Alarm: true, Key: "service", Text: "unpend-d is not ready: the pod is Pending"}}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Error(diff)
	}
}

// Who may not ask is told so: nothing is said to be fine.
func TestStatusThatMayNotAsk(t *testing.T) {
	all, err := processes(t.Context(), answers{"unpend-a": {200, "ok"}}.serve(t), "unpend")
	if want := "what pod unpend/unpend-b says: you may not get pods/proxy there"; fmt.Sprint(err) != want || len(all) != 1 {
		t.Errorf("%v, %v", err, all)
	}
	if all, err := processes(t.Context(), answers{}.serve(t), "other"); err == nil || !strings.HasPrefix(err.Error(), "the service's pods in namespace other: ") || all != nil {
		t.Errorf("%v, %v", err, all)
	}
}
