package nodeprobe_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/nodeprobe"
)

// TestTableIsWhatDriversSay: each board that a probe was run on (nodeprobe
// --once -o json; only names of GPUs and nodes were changed) is in the table as
// its driver describes it.
func TestTableIsWhatDriversSay(t *testing.T) {
	files, err := filepath.Glob("testdata/drivers/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d reports of real drivers: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var geo nodeprobe.NodeGeometry
			if err := json.Unmarshal(data, &geo); err != nil {
				t.Fatal(err)
			}
			if found := nodeprobe.Check(geo.Report, geo.Report.ObservedAt.Add(time.Second)); len(found) > 0 {
				t.Errorf("a real driver is not believed: %v", found)
			}
			for _, g := range geo.Report.GPUs {
				m, known := nodeprobe.ModelOf(g.Product)
				if !known {
					t.Fatalf("%s is not in the table", g.Product)
				}
				if diff := gocmp.Diff(byID(g.Profiles), byID(m.Profiles)); diff != "" {
					t.Errorf("%s: driver -, table +:\n%s", g.Product, diff)
				}
			}
		})
	}
}

func byID(in []nodeprobe.Profile) []nodeprobe.Profile {
	return slices.SortedFunc(slices.Values(in), func(a, b nodeprobe.Profile) int { return cmp.Compare(a.ID, b.ID) })
}
