package dump

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca/cluster"
)

// taken is what a state holds of a dump, in short.
func taken(s *cluster.State) []string {
	var out []string
	for _, k := range cluster.Kinds() {
		for _, o := range k.Objects(s) {
			out = append(out, k.Name+" "+o.GetName())
		}
	}
	for _, r := range s.Remediations {
		out = append(out, "Remediation "+string(r))
	}
	return out
}

// A usual list is read item by item, and says the same as when it is read at once; what is
// no such list, or is broken, is left to who reads it at once.
func TestListIsReadItemByItem(t *testing.T) {
	var pods []string
	for i := range 3*share + 5 {
		pods = append(pods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","annotations":{"a":"}]\\\"[{"}}}`, i))
	}
	const node, rem = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`, `{"apiVersion":"unpend.dev/v1alpha1","kind":"Remediation","metadata":{"name":"x"}}`
	list := func(items ...string) string {
		return `{"apiVersion":"v1","items":[` + strings.Join(items, ",\n") + `],"kind":"List","metadata":{"resourceVersion":""}}`
	}
	for name, tc := range map[string]struct {
		text  string
		usual bool
	}{
		"many":                       {list(pods...), true},
		"several kinds":              {list(node, pods[0], rem, `{"apiVersion":"x/v1","kind":"Other"}`), true},
		"none":                       {list(), true},
		"with space":                 {" \n" + strings.ReplaceAll(list(node), ",", " ,\n\t") + "\n ", true},
		"an empty list of a kind":    {`{"kind":"PodList","apiVersion":"v1","metadata":{"n":1,"t":true},"items":[ ]}`, true},
		"items that lack their kind": {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"}}]}`, false},
		"a list in a list":           {list(list(node)), false},
		"one object":                 {node, false},
		"two lists":                  {list(node) + list(pods[0]), false},
		"yaml behind it":             {list(node) + "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", false},
		"yaml":                       {"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n", false},
		"cut off":                    {list(pods...)[:5000], false},
		"a broken item":              {list(node, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}`), false},
		"an item that is none":       {list(`7`), false},
		"no kind":                    {`{"apiVersion":"v1","items":[]}`, false},
		"nothing":                    {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			byItem := newFileReader()
			if usual := byItem.list(strings.NewReader(tc.text)); usual != tc.usual {
				t.Fatalf("read item by item: %v", usual)
			}
			if !tc.usual {
				if got := taken(byItem.state); len(got) > 0 || len(byItem.held) > 0 {
					t.Errorf("taken in all the same: %q, %v", got, byItem.held)
				}
				return
			}
			atOnce := newFileReader()
			if err := atOnce.stream("x.json", []byte(tc.text)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(taken(atOnce.state), taken(byItem.state)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(atOnce.held, byItem.held); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is wrong with a list is told with its place, as ever.
func TestBrokenListTellsItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(path, []byte("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + ": document 1, line 1: item 0: Pod: metadata.name is missing"
	if _, err := Read([]string{path}, nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// endless is a list of so many items that nobody reads, made as it is read.
type endless struct {
	left int
	rest []byte
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		switch e.left--; {
		case e.left > 0:
			e.rest = []byte(`,{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"x"},"spec":"` + strings.Repeat("x", 10_000) + `"}`)
		case e.left == 0:
			e.rest = []byte(`]}`)
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// What nobody reads of a list is not kept while the rest is read: 100 MB cost less than half of it.
func TestListIsNotKept(t *testing.T) {
	const items = 10_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := newFileReader()
	first := []byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)
	if !r.list(&endless{left: items, rest: first}) || len(r.state.Nodes) != 1 {
		t.Fatalf("not read item by item, %d nodes", len(r.state.Nodes))
	}
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapSys) - int64(before.HeapSys); kept > items*10_000/2 {
		t.Errorf("the heap has grown by %d MB", kept>>20)
	}
}
