package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// TestScenariosServed has an API server serve every sixteenth scenario's objects, as a whole
// each: as they stand in the dump, what kubelets, controllers and clouds write included, and as old.
// Who may what the chart lets read is told the same as of the dump.
func TestScenariosServed(t *testing.T) {
	needsControlPlane(t)
	dirs, err := os.ReadDir(scenarios)
	must(t, err)
	var names []string
	for _, dir := range dirs {
		if readWant(t, dir.Name()).Unserved == "" {
			names = append(names, dir.Name())
		}
	}
	unserved := len(dirs) - len(names)
	names = controlplane.Some(names, 16)
	s := newShelf(start(t, controlplane.Extras{AsGiven: true, APIs: []string{"scheduling.k8s.io/v1beta1", "resource.k8s.io/v1beta1"}, // off by default, as the gates are of what some dumps ask
		Gates: []string{"GenericWorkload=true", "TaintTolerationComparisonOperators=true"}}))
	s.InstallCRDs(t, crds)
	s.prepare(t, names)
	began, served := time.Now(), 0
	for _, name := range names {
		if t.Run(name, func(t *testing.T) { s.hold(t, name) }) {
			served++
		}
	}
	t.Logf("%d scenarios served in %.0f s, %d cannot be; the API server had %.0f s of a processor, etcd %.0f s", served, time.Since(began).Seconds(), unserved,
		s.Processor(t, "kube-apiserver").Seconds(), s.Processor(t, "etcd").Seconds())
}

// hold serves a scenario, and holds what is said of it to what is wanted and to what is said of
// its dump.
func (s *shelf) hold(t *testing.T, name string) {
	t.Helper()
	st, err := dump.Read([]string{filepath.Join(scenarios, name)}, nil)
	must(t, err)
	shift := time.Now().Truncate(time.Second).Sub(st.Now)
	d := readDump(t, name, st.Now, shift)
	s.serve(t, d)
	asked, measured := time.Now(), recorded(t, name, shift)
	args := append([]string{"why", "-A", "-o", "json", "--kubeconfig", s.reader}, measured...)
	if owners := d.owners(); len(owners) > 0 {
		args = append(args, "--owner-kinds", strings.Join(owners, ","))
	}
	code, out, errs := call(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	s.wanted(t, name, out, st.Taken, shift)
	var diff string
	for at := asked.Truncate(time.Second); at.Before(time.Now().Add(time.Second)); at = at.Add(time.Second) { // texts tell ages to the second
		code, told, errs := call(t, append([]string{"why", "-o", "json", "-f", d.with(t, s.bare, at)}, measured...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if diff = cmp.Diff(strings.Split(linesOf(t, told), "\n"), strings.Split(linesOf(t, out), "\n")); diff == "" {
			return
		}
	}
	t.Errorf("the dump (-) and the server (+) differ:\n%s", diff)
}

// wanted holds what is said of a served scenario to its want.yaml, with the moments in it moved.
func (s *shelf) wanted(t *testing.T, name, out string, taken bool, shift time.Duration) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(scenarios, name, "want.yaml"))
	must(t, err)
	read := func(shift time.Duration) (w want) {
		must(t, yaml.UnmarshalStrict([]byte(moved(string(text), shift)), &w))
		w.Unread = nil // a dump lacks other kinds than a cluster
		return w
	}
	w := read(shift)
	d := oneOf(t, w.Of, out)
	if !strings.Contains(d.Causes[0].Says, w.Says) { // what is told to the minute may have passed into the next
		w = read(shift + time.Minute - time.Second)
	}
	if !taken && w.Certainty == diagnosis.Likely { // of a dump that does not say when it was taken no age is sure
		w.Certainty = d.Causes[0].Certainty
	}
	w.check(t, d)
}

func linesOf(t *testing.T, out string) string {
	t.Helper()
	var list diagnosis.List
	must(t, json.Unmarshal([]byte(out), &list))
	return said(list.Items)
}
