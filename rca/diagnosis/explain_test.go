package diagnosis

import "testing"

// Every cause of the catalogue is explained, none besides, and by kinds of fixes that there are.
func TestEveryCauseIsExplained(t *testing.T) {
	for _, id := range Catalogue() {
		e, ok := Explain(id)
		if !ok || e.Says == "" || e.Told == "" || e.Not == "" || e.Words == "" || len(e.Fixes) == 0 {
			t.Errorf("%s: %+v", id, e)
		}
		for _, f := range e.Fixes {
			if _, known := fixKinds[f.Kind]; !known || f.Does == "" {
				t.Errorf("%s: fix %+v", id, f)
			}
		}
	}
	if len(explanations()) != len(catalogue) {
		t.Errorf("%d explanations of %d causes", len(explanations()), len(catalogue))
	}
	if e, ok := Explain("Gremlins"); ok {
		t.Errorf("%+v", e)
	}
}
