package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// agent is a program that asks: it is connected by the protocol's own client.
type agent struct{ *mcp.ClientSession }

func connect(t *testing.T, to mcp.Transport) agent {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), to, nil)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return agent{s}
}

// agentOn starts `unpend mcp` in this process.
func agentOn(t *testing.T, args ...string) agent {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- program.Run(t.Context(), append([]string{"unpend", "mcp"}, args...), program.Stdio{In: in, Out: out, Err: io.Discard})
	}()
	t.Cleanup(func() {
		toServer.Close()
		if code := <-ended; code != 0 {
			t.Errorf("mcp ended with %d", code)
		}
	})
	return connect(t, &mcp.IOTransport{Reader: fromServer, Writer: toServer})
}

// told is an answer of a tool: what is beside its data, and the data as JSON.
func (a agent) told(t *testing.T, tool string, with map[string]any) (besides string, data []byte, failed bool) {
	t.Helper()
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: with})
	must(t, err)
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok || len(r.Content) != 1 {
		t.Fatalf("%s: %+v", tool, r.Content)
	}
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(text.Text), &fields))
	data = fields["data"]
	delete(fields, "data")
	rest, err := json.Marshal(fields)
	must(t, err)
	return string(rest), data, r.IsError
}

// asks is told, of what may not fail.
func (a agent) asks(t *testing.T, tool string, with map[string]any) []byte {
	t.Helper()
	_, data, failed := a.told(t, tool, with)
	if failed {
		t.Fatalf("%s %v: %s", tool, with, data)
	}
	return data
}

// What an agent is told of a dump is what the commands print as JSON.
func TestAgentsAreToldWhatCommandsPrint(t *testing.T) {
	const dump = "../../../testdata/scenarios/all-1g"
	a := agentOn(t, "-f", dump)
	for _, tc := range []struct {
		tool string
		with map[string]any
		args []string
	}{
		{"why", map[string]any{"target": "job/training"}, []string{"why", "job/training"}},
		{"why", map[string]any{"target": "gpu-cf3482cc7b", "cause": "MIGLayoutMismatch"}, []string{"why", "gpu-cf3482cc7b"}},
		{"incidents", map[string]any{}, []string{"incidents"}},
		{"show", map[string]any{"incident": "gpu-cf3482cc7b", "fix": 1}, []string{"show", "gpu-cf3482cc7b#1"}},
		{"capacity", map[string]any{"resources": map[string]any{"nvidia.com/mig-2g.10gb": 1}}, []string{"capacity", "nvidia.com/mig-2g.10gb=1"}},
	} {
		code, out, errs := call(t, append(tc.args, "-f", dump, "-o", "json")...)
		var want, got any
		must(t, json.Unmarshal([]byte(out), &want))
		must(t, json.Unmarshal(a.asks(t, tc.tool, tc.with), &got))
		if diff := cmp.Diff(want, got); diff != "" || code != 0 {
			t.Errorf("%s %v: exit %d %s %s", tc.tool, tc.with, code, errs, diff)
		}
	}
	for want, with := range map[string]map[string]any{
		"job/nobody is not there":                     {"target": "job/nobody"},
		`"a/b/c" names nothing`:                       {"target": "a/b/c"},
		`"Gremlins" is no cause of the catalogue`:     {"cause": "Gremlins"},
		"no incident gpu-0000000000 is known":         {"target": "gpu-0000000000"},
		"is of cluster 01234567, and this is cluster": {"target": "gpu-cf3482cc7b.01234567"},
	} {
		if _, data, failed := a.told(t, "why", with); !failed || !strings.Contains(string(data), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%v: %s", with, data)
		}
	}
}

// An agent finds what its user has imported, as `unpend search` prints it; where nothing is, it
// is told what makes a library.
func TestAgentsSearchWhatWasImported(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	a := agentOn(t, "-f", "../../../testdata/scenarios/all-1g")
	if _, data, failed := a.told(t, "search", map[string]any{"text": "2g.10gb pending"}); !failed || !strings.Contains(string(data), "make one with 'unpend knowledge import'") {
		t.Errorf("without a library: %s", data)
	}
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "layout.md"), []byte("# No GPU has a 2g.10gb\n\nThe node was laid out as all-1g.5gb: all-balanced helped.\n"), 0o600))
	if code, _, errs := call(t, "knowledge", "import", "--folder", folder); code != 0 {
		t.Fatalf("exit %d %s", code, errs)
	}
	code, out, errs := call(t, "search", "2g.10gb pending", "-o", "json")
	var want, got struct {
		Kind  string
		Items []map[string]any
	}
	must(t, json.Unmarshal([]byte(out), &want))
	must(t, json.Unmarshal(a.asks(t, "search", map[string]any{"text": "2g.10gb pending"}), &got))
	if diff := cmp.Diff(want, got); diff != "" || code != 0 || got.Kind != "KnowledgeList" || len(got.Items) != 1 || got.Items[0]["title"] != "No GPU has a 2g.10gb" {
		t.Errorf("exit %d %s: %v %s", code, errs, got, diff)
	}
}

// Two people's agents are told different things, by their own rights, over both transports;
// what one proposes is recorded under their name, and nothing else is written.
func TestAgentsHaveTheRightsOfWhoCalls(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	ns := l.Namespace(t)
	l.install(t, ns, "ada", requester)
	c := l.cellFor(t, ns, ns)
	c.standsIn(t)
	l.readsAll(t, "ada")
	began := time.Now()
	ada := agentOn(t, "--kubeconfig", l.KubeconfigFor(t, "ada"), "--executor-namespace", ns)
	bob := agentOn(t, "--kubeconfig", l.KubeconfigFor(t, "bob"), "--executor-namespace", ns)

	var found diagnosis.List
	must(t, json.Unmarshal(ada.asks(t, "why", map[string]any{"target": "job/training", "namespace": ns}), &found))
	if len(found.Items) != 1 || found.Items[0].Workload.Namespace != ns {
		t.Fatalf("ada is told %+v", found)
	}
	d := found.Items[0]
	nothing := func(who string, a agent) {
		t.Helper()
		for tool, with := range map[string]map[string]any{"incidents": nil, "why": nil, "show": {"incident": d.Incident}, "capacity": {"resources": map[string]any{"nvidia.com/mig-2g.10gb": 1}}} {
			if _, data, _ := a.told(t, tool, with); strings.Contains(string(data), ns) || strings.Contains(string(data), c.node) || strings.Contains(string(data), "training") {
				t.Errorf("%s may read nothing, and %s says %s", who, tool, data)
			}
		}
	}
	nothing("bob", bob)

	fix := d.Fixes[slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool { return f.Automatic && f.Plan != c.rem.Name })]
	with := map[string]any{"incident": d.Incident, "fix": fix.ID, "plan": fix.Plan}
	if _, data, failed := bob.told(t, "propose", with); !failed {
		t.Errorf("bob proposes: %s", data)
	}
	stale := map[string]any{"incident": d.Incident, "fix": fix.ID, "plan": strings.Repeat("0", 64)}
	if _, data, failed := ada.told(t, "propose", stale); !failed || !strings.Contains(string(data), "plan") {
		t.Errorf("ada proposes what nobody has found: %s", data)
	}
	var says struct{ Plan, Requester, Phase, Approve string }
	must(t, json.Unmarshal(ada.asks(t, "propose", with), &says))
	rem, err := l.store().Get(t.Context(), fix.Plan)
	must(t, err)
	if rem.Spec.Requester != "ada" || rem.Spec.Incident != d.Incident || rem.Spec.Fix != fix.ID || says.Plan != fix.Plan || says.Requester != "ada" || says.Phase != string(v1alpha1.Pending) || !strings.HasSuffix(says.Approve, "--plan "+fix.Plan) {
		t.Errorf("recorded %+v, told %+v", rem.Spec, says)
	}
	if all, err := l.store().Approvals(t.Context(), fix.Plan); err != nil || len(all) != 0 {
		t.Errorf("approvals %+v, %v", all, err)
	}
	var wrote []string
	for _, e := range l.AuditEvents(t) {
		if (e.User.Username == "ada" || e.User.Username == "bob") && e.Received.After(began) && e.ResponseStatus.Code < 300 && !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !strings.HasSuffix(e.ObjectRef.Resource, "reviews") {
			wrote = append(wrote, e.User.Username+" "+e.Verb+" "+e.ObjectRef.Resource+" "+e.ObjectRef.Name)
		}
	}
	if diff := cmp.Diff([]string{"ada create remediations " + fix.Plan}, wrote); diff != "" {
		t.Error(diff)
	}

	l.readsAll(t, "system:serviceaccount:"+ns+":reads")
	at, page, config := controlplane.FreeAddress(t), controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: %s}\nbus: {storeDir: %s}\nweb: {metrics: %q, mcp: %q, listen: %q, hosts: [unpend.example.com]}\n", ns, t.TempDir(), controlplane.FreeAddress(t), at, page), 0o600))
	newProcess(t, nil, "unpend", "run", "--config", config, "--kubeconfig", l.Kubeconfig()).start(t)
	controlplane.Eventually(t, time.Minute, "the service answers agents, and nobody without a token", func() (bool, string) { return answers(at, "/", "send your Kubernetes token") })
	controlplane.Eventually(t, time.Minute, "so does its page", func() (bool, string) { return answers(page, "/mcp", "send your Kubernetes token") })
	tokenOf := func(account string) string {
		t.Helper()
		_, err := l.Client().CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		must(t, err)
		token, err := l.Client().CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		must(t, err)
		return token.Status.Token
	}
	over := func(endpoint string, brings http.RoundTripper) agent {
		t.Helper()
		return connect(t, &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: brings}, DisableStandaloneSSE: true})
	}
	reads, stranger := carries(tokenOf("reads")), carries(tokenOf("stranger"))
	for _, endpoint := range []string{"http://" + at, "http://" + page + "/mcp"} {
		if data := over(endpoint, reads).asks(t, "incidents", nil); !strings.Contains(string(data), d.Incident) {
			t.Errorf("%s: who may read is told %s", endpoint, data)
		}
		nothing("who may not", over(endpoint, stranger))
		nothing("a token of nobody", over(endpoint, carries("forged")))
	}
	if data := over("http://"+page+"/mcp", byName{reads, "unpend.example.com"}).asks(t, "incidents", nil); !strings.Contains(string(data), d.Incident) {
		t.Errorf("by the name of a proxy: %s", data)
	}
	for name, at := range map[string]string{"evil.example": page, "unpend.example.com": at} { // a name that was rebound
		s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + at + "/mcp", HTTPClient: &http.Client{Transport: byName{reads, name}}, DisableStandaloneSSE: true}, nil)
		if err == nil {
			s.Close()
			t.Errorf("%s answers as %s", at, name)
		}
	}
}

// byName brings a token, and asks by another name than the address has.
type byName struct {
	carries
	name string
}

// RoundTrip implements http.RoundTripper.
func (a byName) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = a.name
	return a.carries.RoundTrip(r)
}

// carries is a transport that brings a token.
type carries string

// RoundTrip implements http.RoundTripper.
func (c carries) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(c))
	return http.DefaultTransport.RoundTrip(r)
}
