package acceptance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

// untyped are the commands of the guides that nobody types here, by how they begin, and why.
var untyped = map[string]string{
	"make ":                               "it is what CI calls; image and release are made by the tests of deploy/release",
	"helm install gpu-operator ":          "the chart is NVIDIA's, and comes from its registry",
	"kubectl krew install ":               "it downloads a release; the tests of deploy/release install what they have made",
	"cosign ":                             "it verifies a release; the tests of deploy/release verify what they have signed",
	"unpend knowledge import --slack --":  "it asks Slack; the tests of import ask a stand-in",
	"unpend knowledge import --jira-url ": "it asks Jira; the tests of import ask a stand-in",
	"kubectl -n unpend port-forward ":     "it takes a kubelet",
	"kubectl -n unpend logs ":             "it takes a kubelet",
}

// What people type who follow the guides, word for word, by the real kubectl and helm on a real
// control plane: each command of both guides, and those that helm's notes name, does what is said
// there. What nobody can type here is named, with why; any other command is typed.
func TestGuidesAsTyped(t *testing.T) {
	needsControlPlane(t)
	p := newTypist(t)
	for _, file := range []string{operations, readme} {
		for _, cmd := range shellOf(t, file) {
			p.follows(t, cmd)
		}
	}
	for _, file := range []string{operations, readme} {
		for _, cmd := range inPassing(t, file) {
			p.follows(t, cmd)
		}
	}
	for begins := range untyped {
		if !p.left[begins] {
			t.Errorf("no guide has %q: take it off the list", begins)
		}
	}
	for cmd := range scenes {
		if !p.met[cmd] {
			t.Errorf("no guide has %q any more, for which there is a scene", cmd)
		}
	}
}

// typist is a person at a terminal, with a cluster that has one node with an A100 and MIG manager.
type typist struct {
	*lane
	dir  string // where the guides' paths are
	env  []string
	stop func()          // ends what simulates MIG manager
	met  map[string]bool // commands of the guides
	left map[string]bool // of untyped, what was met
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	clients := controlplane.Clients(t)
	p := &typist{lane: &lane{ControlPlane: start(t, controlplane.Extras{})}, dir: t.TempDir(), met: map[string]bool{}, left: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	stack := sim.New(p.Client(), p.Dynamic(), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 500 * time.Millisecond})
	ended := make(chan error, 1)
	go func() { ended <- stack.Run(ctx) }()
	p.stop = func() {
		cancel()
		if err, first := <-ended; first {
			must(t, err)
			close(ended)
		}
	}
	t.Cleanup(p.stop)
	p.AddNode(t, all1g("gpu-1"))
	p.WaitForServiceAccount(t, "default")
	_, err := p.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-operator"}}, metav1.CreateOptions{}) // NVIDIA's
	must(t, err)
	p.volumes(t, 12)
	p.env = []string{"KUBECONFIG=" + p.Kubeconfig(), "HOME=" + p.dir, "WORK=" + p.dir, "XDG_DATA_HOME=" + filepath.Join(p.dir, "data"),
		"PATH=" + strings.Join([]string{filepath.Dir(clients["kubectl"]), os.Getenv("PATH")}, string(os.PathListSeparator))}
	p.files(t)
	return p
}

// volumes are there for claims, as a cluster has them.
func (p *typist) volumes(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		_, err := p.Client().CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("volume-", i)},
			Spec: corev1.PersistentVolumeSpec{Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}}}}, metav1.CreateOptions{})
		must(t, err)
	}
}

// files are what the guides' commands name.
func (p *typist) files(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	must(t, err)
	program, err := exec.LookPath("unpend")
	must(t, err)
	must(t, os.Mkdir(filepath.Join(p.dir, "bin"), 0o755))
	must(t, os.Mkdir(filepath.Join(p.dir, "runbooks"), 0o755))
	for name, to := range map[string]string{"deploy": filepath.Join(root, "deploy"), "bin/unpend": program} {
		must(t, os.Symlink(to, filepath.Join(p.dir, name)))
	}
	for name, text := range map[string]string{
		"runbooks/layout.md": "# A pod waits for a slice\n\n2g.10gb is pending on an a100: cut the GPU again with nvidia.com/mig.config.\n",
		"gpu.json":           `{"issues":[{"key":"GPU-118","self":"https://acme.atlassian.net/rest/api/2/issue/10118","fields":{"summary":"2g slice pending on the a100s","description":"Trainer asks for nvidia.com/mig-2g.10gb.","created":"2026-10-20T12:30:00.000+0000","project":{"key":"GPU","name":"GPU platform"}}}]}`,
	} {
		must(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	zipped(t, filepath.Join(p.dir, "export.zip"), map[string]string{
		"channels.json": `[{"id":"C1","name":"lunch"}]`, "groups.json": `[{"id":"G1","name":"gpu-oncall"}]`, "users.json": "[]",
		"gpu-oncall/2026-10-20.json": `[{"type":"message","user":"U1","ts":"1792500000.000100","text":"2g.10gb pending on the a100, we cut it again"}]`,
	})
}

// types has a shell do what a line says.
func (p *typist) types(t *testing.T, line string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", line)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

func (p *typist) typed(t *testing.T, line string) string {
	t.Helper()
	out, err := p.types(t, line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// noted are the commands in what helm prints.
var noted = regexp.MustCompile(`(?m)^  (kubectl .*)$`)

// follows types a command, after what is said around it, and looks at what comes of it.
func (p *typist) follows(t *testing.T, cmd string) {
	t.Helper()
	p.met[cmd] = true
	for begins := range untyped {
		if strings.HasPrefix(cmd, begins) {
			p.left[begins] = true
			return
		}
	}
	s := scenes[cmd]
	if s.before != nil {
		s.before(t, p)
	}
	line := cmd
	if s.means != nil {
		line = s.means(t, p, cmd)
	}
	if s.until != nil {
		want := s.until(t, p)
		controlplane.Eventually(t, time.Minute, cmd+" says "+want, func() (bool, string) {
			out, err := p.types(t, line)
			return err == nil && strings.Contains(out, want), out
		})
		return
	}
	out := p.typed(t, line)
	if s.after != nil {
		s.after(t, p, out)
	}
	for _, next := range noted.FindAllStringSubmatch(out, -1) {
		if !s.unnoted && strings.HasPrefix(cmd, "helm ") && !strings.Contains(next[1], "INCIDENT#N") {
			controlplane.Eventually(t, time.Minute, next[1]+", of helm's notes", func() (bool, string) {
				out, err := p.types(t, next[1])
				return err == nil, out
			})
		}
	}
}
