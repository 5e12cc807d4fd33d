package acceptance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// openIncidents were met by people and are not told rightly yet: each want.yaml says what
// would be right, as its thread settled it.
const openIncidents = "../../../testdata/open"

// What is told rightly by now is no longer open: it belongs among the scenarios.
func TestOpenIncidents(t *testing.T) {
	dirs, err := os.ReadDir(openIncidents)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // git keeps no empty folder
		t.Fatal(err)
	}
	for _, dir := range dirs {
		folder := filepath.Join(openIncidents, dir.Name())
		w := readWantIn(t, folder)
		d := whyOf(t, w.Of, "-f", folder)
		if w.met(d) {
			t.Errorf("%s is told rightly: move it to the scenarios", dir.Name())
		}
	}
	t.Logf("%d incidents are open", len(dirs))
}

// met says whether a diagnosis has the causes that were wanted and the fix that worked, and
// none that cannot help.
func (w want) met(d diagnosis.Diagnosis) bool {
	var causes []diagnosis.CauseID
	for _, c := range d.Causes {
		causes = append(causes, c.ID)
	}
	return slices.Equal(causes, w.Causes) && strings.Contains(d.Causes[0].Says, w.Says) && w.Fix.is(d.Fixes[0]) &&
		!slices.ContainsFunc(d.Fixes, func(f diagnosis.Fix) bool {
			return slices.ContainsFunc(f.Kinds, func(k diagnosis.FixKind) bool { return slices.Contains(w.Never, k) })
		})
}
