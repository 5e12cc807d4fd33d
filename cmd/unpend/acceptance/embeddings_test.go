package acceptance

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unpend/unpend/knowledge/embedtest"
)

// With an endpoint, a runbook in another language is found by what it means; when the
// endpoint is gone, the words find, and it is said.
func TestSearchByMeaning(t *testing.T) {
	s, runbooks, dir := embedtest.New(t), t.TempDir(), t.TempDir()
	key := filepath.Join(dir, "key")
	for name, text := range map[string]string{
		filepath.Join(runbooks, "a.md"): "# Wartung\n\nTreiber Neustart Knoten Wartung", filepath.Join(runbooks, "b.md"): "# Risers\n\nThe riser was loose.",
		filepath.Join(runbooks, "c.md"): "# Coffee\n\nThe machine on the third floor.", filepath.Join(runbooks, "d.md"): "# Postgres\n\nReplica lags behind.",
		filepath.Join(runbooks, "e.md"): "# Invoices\n\nSend them on friday.", filepath.Join(runbooks, "f.md"): "# Badges\n\nAsk at the desk.", key: "k3y\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := []string{"--library", filepath.Join(dir, "library"), "--embeddings-url", s.URL, "--embeddings-model", "hashed", "--embeddings-key-file", key}
	code, out, errs := call(t, append([]string{"knowledge", "import", "--folder", runbooks}, flags...)...)
	if code != exitDone || !strings.Contains(out, "hashed: 6 vectors new, 0 as before, 0 removed") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if asked := s.Asked(); len(asked) != 1 || asked[0].Authorization != "Bearer k3y" || len(asked[0].Input) != 6 {
		t.Errorf("%+v", asked)
	}
	code, out, errs = call(t, append([]string{"search", "loose riser"}, flags...)...)
	if code != exitDone || !strings.HasPrefix(out, "Risers\n") || errs != "" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	s.Answer = func(w http.ResponseWriter, _ embedtest.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	code, out, errs = call(t, append([]string{"search", "loose riser"}, flags...)...)
	if code != exitDone || !strings.HasPrefix(out, "Risers\n") || !strings.Contains(errs, "found by words alone") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, wrong := range [][]string{{"--embeddings-model", "m"}, {"--embeddings-url", s.URL}, {"--embeddings-key-file", key}} {
		if code, _, errs := call(t, append([]string{"search", "x", "--library", filepath.Join(dir, "library")}, wrong...)...); code != exitUsage || !strings.Contains(errs, "--embeddings-") {
			t.Errorf("%q: exit %d: %s", wrong, code, errs)
		}
	}
}
