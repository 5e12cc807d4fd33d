package dump

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/cluster"
)

const node1 = "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-1}\n"

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func fromText(t *testing.T, text string) *cluster.State {
	t.Helper()
	s, err := Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBadDumpsNameFileDocumentAndLine(t *testing.T) {
	cases := []struct{ name, dump, want string }{
		{"malformed YAML in the second document", node1 + "---\napiVersion: v1\nkind: Node\nmetadata:\n\tname: x\n", "document 2, line 8: "},
		{"malformed YAML in the first document", "apiVersion: v1\nkind: {Node\nmetadata: x: y\n", "document 1, line 2: "},
		{"malformed JSON", "{\"apiVersion\": \"v1\",\n\"kind\": \"Node\",\n\"metadata\": {name: 1}}", "document 1, line 3: "},
		{"malformed JSON in the second document", "{\"apiVersion\": \"v1\",\n\"kind\": \"Node\",\n\"metadata\": {\"name\": \"n\"}}\n{\"apiVersion\": \"v1\",\n\"kind\": oops,\n\n\n\n\n\"x\": 1}", "document 2, line 5: "},
		{"wrong type in the second JSON document", "{\"apiVersion\": \"v1\",\n\"kind\": \"X\"}\n{\"apiVersion\": \"v1\",\n\"kind\": 3}", "document 2, line 3: "},
		{"JSON cut short", "{\"apiVersion\": \"v1\",\n\"kind\": \"Node\",", "document 1, line 1: "},
		{"no name", node1 + "---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: ml}\n", "document 2, line 4: Pod: metadata.name is missing"},
		{"no name in a list", "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n- metadata: {}\n", "document 1, line 1: item 1: Pod: metadata.name is missing"},
		{"no kind", "apiVersion: v1\nmetadata: {name: x}\n", "document 1, line 1: apiVersion or kind is missing"},
		{"no apiVersion", "kind: Node\nmetadata: {name: x}\n", "document 1, line 1: apiVersion or kind is missing"},
		{"a scalar", "just words\n", "document 1, line 1: "},
		{"GPUs that are no list", node1 + "---\napiVersion: unpend.dev/v1alpha1\nkind: NodeGeometry\nmetadata: {name: gpu-1}\nreport: {gpus: 8}\n", "document 2, line 4: NodeGeometry: "},
		{"a start that is no number", "apiVersion: unpend.dev/v1alpha1\nkind: NodeGeometry\nmetadata: {name: gpu-1}\nreport:\n  gpus: [{instances: [{start: two}]}]\n", "document 1, line 1: NodeGeometry: "},
		{"a quantity that is none", "apiVersion: v1\nkind: Node\nmetadata: {name: x}\nstatus: {capacity: {cpu: many}}\n", "document 1, line 1: Node: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, t.TempDir(), "dump.yaml", c.dump)
			s, err := Read([]string{path}, nil)
			if err == nil || !strings.HasPrefix(err.Error(), path+": "+c.want) {
				t.Errorf("got %v\nwant %s: %s…", err, path, c.want)
			}
			if s != nil {
				t.Error("a bad dump gave a state")
			}
		})
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	if _, err := Read([]string{"no-such-file"}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Read([]string{"-"}, io.MultiReader(strings.NewReader(node1), failing{})); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("broken stdin: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// What a dump does not hold proves nothing; an empty list proves that there is none.
func TestUnread(t *testing.T) {
	s := fromText(t, node1+`---
# a comment alone
---
apiVersion: v1
kind: PodList
items: []
---
apiVersion: v1
kind: Secret
metadata: {name: password}
---
apiVersion: example.com/v1
kind: Node
metadata: {name: of-another-group}
---
null
`)
	want := map[string]string{}
	for _, k := range cluster.Kinds() {
		if k.Name != "Node" && k.Name != "Pod" {
			want[k.Name] = "the dump holds none"
		}
	}
	if !maps.Equal(s.Unread, want) {
		t.Errorf("unread %v, want %v", s.Unread, want)
	}
	if len(s.Nodes) != 1 || s.Nodes[0].Name != "gpu-1" || len(s.Pods) != 0 || s.Live {
		t.Errorf("nodes %v, pods %v, live %v", s.Nodes, s.Pods, s.Live)
	}
}

func TestListsInsideLists(t *testing.T) {
	s := fromText(t, `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: NodeList
  items:
  - metadata: {name: b}
  - {apiVersion: v1, kind: Node, metadata: {name: a}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: Pod, metadata: {namespace: z, name: a}}
  - {apiVersion: v1, kind: Pod, metadata: {namespace: a, name: z}}
- apiVersion: nvidia.com/v1
  kind: ClusterPolicyList
  items:
  - metadata: {name: cluster-policy}
- apiVersion: events.k8s.io/v1
  kind: Event
  metadata: {namespace: z, name: e}
  regarding: {kind: Pod, namespace: z, name: a}
  note: 0/2 nodes
`)
	var names []string
	for _, k := range cluster.Kinds() {
		for _, o := range k.Objects(s) {
			names = append(names, k.Name+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	want := []string{"Node /a", "Node /b", "Pod a/z", "Pod z/a", "Event z/e", "ClusterPolicy /cluster-policy"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if e := s.Events[0]; e.InvolvedObject.Name != "a" || e.Message != "0/2 nodes" {
		t.Errorf("event %+v", e)
	}
	if err := Write(io.Discard, s, "yaml"); err != nil {
		t.Error(err)
	}
}

func TestNowIsTheNewestTime(t *testing.T) {
	const at = "2026-01-02T03:04:05Z"
	const old = "apiVersion: v1\nkind: Node\nmetadata: {name: gpu, creationTimestamp: '2026-01-01T00:00:00Z'}\n---\n"
	cases := map[string]string{
		"creation":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: x, creationTimestamp: '" + at + "'}\n",
		"transition": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nstatus: {conditions: [{type: PodScheduled, lastTransitionTime: '" + at + "'}]}\n",
		"heartbeat":  "apiVersion: v1\nkind: Node\nmetadata: {name: x}\nstatus: {conditions: [{type: Ready, lastHeartbeatTime: '" + at + "'}]}\n",
		"event":      "apiVersion: v1\nkind: Event\nmetadata: {name: x}\nlastTimestamp: '" + at + "'\n",
		"event time": "apiVersion: v1\nkind: Event\nmetadata: {name: x}\neventTime: '2026-01-02T03:04:05.000000Z'\n",
		"series":     "apiVersion: v1\nkind: Event\nmetadata: {name: x}\nseries: {count: 2, lastObservedTime: '2026-01-02T03:04:05.000000Z'}\n",
		"deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nstatus: {conditions: [{type: Progressing, lastUpdateTime: '" + at + "'}]}\n",
		"job":        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nstatus: {conditions: [{type: Failed, lastTransitionTime: '" + at + "'}]}\n",
		"new event":  "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: x}\ndeprecatedLastTimestamp: '" + at + "'\nregarding: {kind: Node, name: gpu}\n",
		"report":     "apiVersion: unpend.dev/v1alpha1\nkind: NodeGeometry\nmetadata: {name: gpu}\nreport: {observedAt: '" + at + "'}\n",
	}
	for name, dump := range cases {
		if now := fromText(t, old+dump).Now.UTC().Format(time.RFC3339); now != at {
			t.Errorf("%s: now is %s", name, now)
		}
	}
	if now := fromText(t, node1).Now; !now.IsZero() {
		t.Errorf("a dump without times: now is %v", now)
	}
}

// A folder may hold other YAML; a file that is named must be a dump.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", node1)
	write(t, dir, "sub/b.yml", "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-2}\n")
	write(t, dir, "sub/deep/c.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-3"}}`)
	other := write(t, dir, "values.yaml", "replicas: 3\n")
	write(t, dir, "notes.txt", "{not a dump")
	link := filepath.Join(t.TempDir(), "latest")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, dir + "/", link} {
		s, err := Read([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range s.Nodes {
			names = append(names, n.Name)
		}
		if want := []string{"gpu-1", "gpu-2", "gpu-3"}; !slices.Equal(names, want) {
			t.Errorf("%s: got %q, want %q", path, names, want)
		}
	}
	if _, err := Read([]string{dir, other}, nil); err == nil {
		t.Error("a named file that is no dump was taken")
	}
}

// Of an object that is met twice the later one stands.
func TestTheLaterOneStands(t *testing.T) {
	path := write(t, t.TempDir(), "a.yaml", node1)
	s, err := Read([]string{path, "-"}, strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {name: gpu-1, labels: {later: 'yes'}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes) != 1 || s.Nodes[0].Labels["later"] != "yes" {
		t.Errorf("nodes %v", s.Nodes)
	}
}

// Pods of one uid, which only a dump written by hand has, are told apart by their names; one
// that is met twice is one, and keeps its uid.
func TestNoUIDIsTwoPods(t *testing.T) {
	pod := func(namespace, name, uid string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {namespace: " + namespace + ", name: " + name + ", uid: " + uid + "}}"
	}
	list := func(items ...string) string {
		return "apiVersion: v1\nkind: List\nitems: [" + strings.Join(items, ", ") + "]\n"
	}
	for name, tc := range map[string]struct{ dump, want string }{
		"in one list":       {list(pod("ml", "a", "u"), pod("ml", "b", "u")), "ml/a: ml/b:"},
		"in two documents":  {pod("ml", "a", "u") + "\n---\n" + list(pod("ml", "b", "u")), "ml/a: ml/b:"},
		"another namespace": {list(pod("ml", "a", "u"), pod("of", "a", "u")), "ml/a: of/a:"},
		"two of three":      {list(pod("ml", "a", "u"), pod("ml", "b", "v"), pod("ml", "c", "u")), "ml/a: ml/b:v ml/c:"},
		"one met twice":     {list(pod("ml", "a", "u"), pod("ml", "a", "u")), "ml/a:u"},
		"made again":        {list(pod("ml", "a", "u"), pod("ml", "a", "v")), "ml/a:v"},
		"another kind":      {list(pod("ml", "a", "u"), strings.Replace(pod("ml", "b", "u"), "Pod", "PersistentVolumeClaim", 1)), "ml/a:u"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read([]string{"-"}, strings.NewReader(tc.dump))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range s.Pods {
				got = append(got, p.Namespace+"/"+p.Name+":"+string(p.UID))
			}
			if is := strings.Join(got, " "); is != tc.want {
				t.Errorf("pods are read as %q, want %q", is, tc.want)
			}
		})
	}
}

// Whichever file comes last, an older resourceVersion never replaces a newer one.
func TestTheNewerVersionStands(t *testing.T) {
	version := func(v, label string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-1, resourceVersion: '" + v + "', labels: {is: " + label + "}}\n"
	}
	for _, c := range []struct{ first, second, want string }{
		{version("1000", "new"), version("999", "old"), "new"},
		{version("999", "old"), version("1000", "new"), "new"},
		{version("7", "first"), version("7", "second"), "second"},
		{version("7", "first"), "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-1, labels: {is: bare}}\n", "bare"},
	} {
		s := fromText(t, c.first+"---\n"+c.second)
		if len(s.Nodes) != 1 || s.Nodes[0].Labels["is"] != c.want {
			t.Errorf("%q stands, want %q", s.Nodes[0].Labels["is"], c.want)
		}
	}
}

// No document of a stream is lost, however its authors mark where it begins.
func TestStreams(t *testing.T) {
	second := "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-2}\n"
	for name, dump := range map[string]string{
		"a mark with a comment":      node1 + "--- # from another cluster\n" + second,
		"a mark with content":        node1 + "--- {apiVersion: v1, kind: Node, metadata: {name: gpu-2}}\n",
		"a mark at the end":          node1 + "...\n" + second,
		"both marks":                 node1 + "...\n---\n" + second,
		"a directive":                "%YAML 1.1\n---\n" + node1 + "---\n" + second + "---\n",
		"carriage returns":           strings.ReplaceAll(node1+"---\n"+second, "\n", "\r\n"),
		"JSON between marks":         `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1"}}` + "\n---\n" + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2"}}` + "\n",
		"JSON after JSON":            `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1"}} {"kind":"Node","apiVersion":"v1","metadata":{"name":"gpu-2"}}`,
		"YAML that begins with {":    "{apiVersion: v1, kind: Node, metadata: {name: gpu-1}}\n---\n" + second,
		"a comment before the first": "# two nodes\n---\n" + node1 + "---\n# the second\n" + second,
	} {
		s := fromText(t, dump)
		if len(s.Nodes) != 2 || s.Nodes[0].Name != "gpu-1" || s.Nodes[1].Name != "gpu-2" {
			t.Errorf("%s: nodes %v", name, s.Nodes)
		}
	}
	path := write(t, t.TempDir(), "dump.json", "{apiVersion: v1, kind: Node, metadata: {name: gpu-1}}")
	if _, err := Read([]string{path}, nil); err == nil {
		t.Error("a .json file that is no JSON was taken")
	}
}

func FuzzDump(f *testing.F) {
	f.Add([]byte(node1 + "---\n" + node1))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}},null]}]}`))
	f.Add([]byte("apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p, annotations: [1], managedFields: [{fieldsV1: 3}]}\n"))
	f.Add([]byte("apiVersion: unpend.dev/v1alpha1\nkind: NodeGeometry\nmetadata: {name: gpu}\nreport: {gpus: [{instances: [{holder: {pod: x}}]}]}\n"))
	f.Add([]byte("apiVersion: v1\nkind: Node\nmetadata: {name: gpu, managedFields: [{fieldsV1: {'f:nvidia.com/mig.config.state': {}}}]}\n"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: \"\\u202egnp\\u200b<!channel>\\e[31m🦄\", namespace: \"\\u0085\", labels: {a: \"\\xff\"}, annotations: {b: \"\\0\"}}\n"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n? [complex]\n: key\n--- !!binary aGk=\n"))
	f.Add([]byte("kind: Node\r\napiVersion: v1\r\nmetadata: {name: n}\r\nstatus: {allocatable: {cpu: 1e99, memory: -1, nvidia.com/gpu: 0.5}}\r\n"))
	scenarios, err := filepath.Glob("../../../testdata/scenarios/*/cluster.yaml")
	if err != nil || len(scenarios) < 50 {
		f.Fatalf("%d scenarios, %v", len(scenarios), err)
	}
	for _, path := range scenarios {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 4<<10 { // a larger one only slows the search
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read([]string{"-"}, bytes.NewReader(data))
		if (s == nil) == (err == nil) {
			t.Fatalf("state %v, error %v", s, err)
		}
		if err != nil {
			return
		}
		if err := Write(io.Discard, s, "json"); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
