//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
)

// command runs the program as a shell would.
func command(t *testing.T, env map[string]string, args ...string) (code int, out, complaints string) {
	t.Helper()
	var o, c bytes.Buffer
	code = run(t.Context(), args, func(name string) string { return env[name] }, &o, &c)
	return code, o.String(), c.String()
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		env  map[string]string
		code int
		says string
	}{
		{nil, nil, exitUsage, "nodeprobe: which node is this: --node or $NODE_NAME\n"},
		{[]string{"--nodes", "a"}, nil, exitUsage, "nodeprobe: flag provided but not defined: -nodes\n"},
		{[]string{"a"}, nil, exitUsage, "nodeprobe: unexpected argument \"a\"\n"},
		{[]string{"--once", "-o", "xml"}, nil, exitUsage, "nodeprobe: -o xml: yaml or json\n"},
		{[]string{"--kubeconfig", "/nowhere"}, map[string]string{"NODE_NAME": "a"}, exitError, "nodeprobe: find the cluster: stat /nowhere: no such file or directory\n"},
	} {
		if code, out, says := command(t, tc.env, tc.args...); code != tc.code || out != "" || says != tc.says {
			t.Errorf("%q: exit %d, %q, %q", tc.args, code, out, says)
		}
	}
	if code, out, says := command(t, nil, "--help"); code != exitDone || out != "" || !strings.Contains(says, "-pod-resources-socket path") {
		t.Errorf("--help: exit %d, %q, %q", code, out, says)
	}
}

// TestOnce: what can be said is printed, wherever it runs; what is missing is one
// line beside it. Machines with a driver print more.
func TestOnce(t *testing.T) {
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(data []byte, into any) error { return yaml.UnmarshalStrict(data, into) },
	} {
		code, out, says := command(t, nil, "--once", "-o", format, "--node", "gpu-node-1", "--pod-resources-socket", filepath.Join(t.TempDir(), "none"))
		var got nodeprobe.NodeGeometry
		if err := decode([]byte(out), &got); err != nil || code != exitDone {
			t.Fatalf("exit %d, %v: %s", code, err, out)
		}
		if got.Name != "gpu-node-1" || got.GroupVersionKind() != nodeprobe.Kind || got.Report.ObservedAt.IsZero() {
			t.Errorf("%s", out)
		}
		if !strings.HasPrefix(out, map[string]string{"json": "{\n", "yaml": "apiVersion: unpend.dev/v1alpha1\n"}[format]) {
			t.Errorf("not %s: %s", format, out)
		}
		want := map[nodeprobe.Source]string{nodeprobe.SourceLabels: "driver", nodeprobe.SourceNVML: "no kubelet socket"}[got.Report.Source]
		if strings.Count(says, "\n") < 1 || !strings.Contains(says, want) {
			t.Errorf("source %s, and it says %q", got.Report.Source, says)
		}
	}
}

// TestWhatIsLinked: neither the scheduler nor the diagnosis runs on every GPU node, nor
// what makes the program larger for nothing. The tag is the Makefile's: grpc's trace pages
// are templates, for which the linker would keep every method of every type.
func TestWhatIsLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "grpcnotrace", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		other := strings.HasPrefix(dep, "github.com/unpend/unpend/") && !strings.Contains(dep, "nodeprobe")
		heavy := strings.HasPrefix(dep, "k8s.io/kubernetes/") || strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime/") ||
			slices.Contains([]string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "text/template", "html/template"}, dep)
		if other || heavy {
			t.Errorf("%s is linked", dep)
		}
	}
}
