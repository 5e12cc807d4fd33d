package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/unpend/unpend/testdata/oracle"
)

// What a diagnosis says of nodes is so, by each node's own YAML: somebody who knows nothing
// of the rules reads it again.
func TestNoFalseSentence(t *testing.T) {
	dirs, err := os.ReadDir(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			folder := filepath.Join(scenarios, dir.Name())
			dump, err := oracle.Read(folder)
			if err != nil {
				t.Fatal(err)
			}
			code, out, errs := call(t, append([]string{"why", "-o", "json", "-f", folder}, recorded(t, dir.Name(), 0)...)...)
			var list struct{ Items []oracle.Said }
			if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil {
				t.Fatal(code, errs, err)
			}
			for _, said := range list.Items {
				against, statements := dump.Held(said)
				for _, a := range against {
					t.Error(a)
				}
				all += statements
			}
		})
	}
	t.Logf("%d statements held against %d dumps", all, len(dirs))
}
