package acceptance

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The story of the guide, from an empty cluster to a pod that runs, by the guide's own commands,
// word for word: as the demo is there is no room side by side, with two pods left only the layout is
// in the way, the answers say which is which, and what is approved is carried out.
func TestGuideFromAnEmptyClusterToAPodThatRuns(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	ctx, cancel := context.WithCancel(t.Context())
	stack := sim.New(c.Client(), c.Dynamic(), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 500 * time.Millisecond})
	ended := make(chan error, 1)
	go func() { ended <- stack.Run(ctx) }()
	defer func() {
		cancel()
		must(t, <-ended)
	}()
	c.AddNode(t, all1g("gpu-1"))
	l := &lane{ControlPlane: c}
	_, err := c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-operator"}}, metav1.CreateOptions{}) // the operator's
	must(t, err)
	for _, cmd := range shellOf(t, "../../../deploy/README.md", "## From an empty cluster", "On a laptop") {
		words := strings.Fields(cmd)
		switch {
		case words[0] == "helm":
			l.runHelm(t, words[1:])
		case strings.HasPrefix(cmd, "kubectl unpend why"):
			want := "MIGFragmented"
			if pods := l.runningIn(t, "mig-demo"); pods == 2 {
				want = "MIGLayoutMismatch"
			}
			l.answersWith(t, words[2:], want)
		case strings.HasPrefix(cmd, "kubectl unpend approve INCIDENT#1"):
			incident := why(t, "-n", "mig-demo", "--kubeconfig", c.Kubeconfig()).Incident
			args := append(strings.Fields(strings.ReplaceAll(strings.Join(words[2:], " "), "INCIDENT", incident)), "--yes", "--kubeconfig", c.Kubeconfig())
			if code, out, errs := call(t, args...); code != 0 || !strings.Contains(out, "runs (") {
				t.Fatalf("%s: exit %d: %s%s", cmd, code, out, errs)
			}
		case cmd == "kubectl get pods -n mig-demo":
			if n := l.runningIn(t, "mig-demo"); n != 3 {
				t.Errorf("%d pods run", n)
			}
		default:
			t.Errorf("nobody here runs %s", cmd)
		}
	}
}

// shellOf are the lines of the shell blocks of a guide between two texts, those that go on put
// together.
func shellOf(t *testing.T, file, from, to string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	_, part, found := strings.Cut(string(text), "\n"+from)
	ends := true
	if to != "" {
		part, _, ends = strings.Cut(part, to)
	}
	if !found || !ends {
		t.Fatalf("%s has no part from %q to %q", file, from, to)
	}
	var out []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no commands there", file)
	}
	return out
}

// runHelm does what `helm install` and `helm upgrade` of a chart of ours do, and then waits until
// the demo's pods have come and gone.
func (l *lane) runHelm(t *testing.T, words []string) {
	t.Helper()
	name, path, ns, values := words[1], words[2], "", map[string]any{}
	for i, w := range words {
		switch w {
		case "--namespace":
			ns = words[i+1]
		case "--set":
			must(t, strvals.ParseInto(words[i+1], values))
		}
	}
	h := l.helm(t, ns, "")
	c, err := loader.Load(filepath.Join("../../..", path))
	must(t, err)
	if words[0] == "install" {
		i := action.NewInstall(h.config)
		i.ReleaseName, i.Namespace, i.CreateNamespace = name, ns, strings.Contains(strings.Join(words, " "), "--create-namespace")
		_, err = i.RunWithContext(t.Context(), c, values)
	} else {
		u := action.NewUpgrade(h.config)
		u.Namespace = ns
		_, err = u.RunWithContext(t.Context(), name, c, values)
	}
	must(t, err)
	if name != "mig-demo" {
		return
	}
	want := 6
	if words[0] == "upgrade" {
		want = 2
	}
	controlplane.Eventually(t, time.Minute, "the demo's pods are there", func() (bool, string) {
		waits, err := l.Client().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodPending)})
		must(t, err)
		return l.runningIn(t, ns) == want && len(waits.Items) == 1, "not yet"
	})
}

func (l *lane) runningIn(t *testing.T, ns string) int {
	t.Helper()
	pods, err := l.Client().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
	must(t, err)
	return len(pods.Items)
}

// answersWith runs a command again until it names a cause: reports and holders come a moment later.
func (l *lane) answersWith(t *testing.T, args []string, cause string) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, strings.Join(args, " ")+" says "+cause, func() (bool, string) {
		code, out, errs := call(t, append(append([]string{}, args...), "--kubeconfig", l.Kubeconfig())...)
		return code == 0 && strings.Contains(out, cause), out + errs
	})
}

// Every other command of the guides names a command and flags that there are.
func TestCommandsOfTheGuidesAreKnown(t *testing.T) {
	known := 0
	for _, file := range []string{"../../../README.md", "../../../deploy/README.md"} {
		for _, cmd := range shellOf(t, file, "", "") {
			_, args, is := strings.Cut(" "+cmd, "unpend ")
			if words := strings.Fields(cmd); !is || !strings.HasSuffix(words[0], "unpend") && !strings.HasPrefix(cmd, "kubectl unpend ") {
				continue
			}
			known++
			if code, _, errs := call(t, append(strings.Fields(strings.ReplaceAll(args, `"`, "")), "--help")...); code != 0 {
				t.Errorf("%s: %s: %d %s", file, cmd, code, errs)
			}
		}
	}
	if known < 10 {
		t.Errorf("%d commands were found", known)
	}
}
