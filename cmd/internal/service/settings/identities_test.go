package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func configured(t *testing.T, text string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := ReadConfig(path)
	return path, err
}

// Who somebody is, is said once, by ids, and what is wrong with it by the lines of the file.
func TestIdentitiesAreHeldToTheirLines(t *testing.T) {
	const head = "watcher: {sweep: 60s}\nremediate:\n  groups: [gpu-admins]\n  identities:\n"
	if _, err := configured(t, head+`  - {slack: U0ADA, pagerduty: PADA, user: ada@example.com, groups: [gpu-admins]}
  - {slack: W0ADA, user: ada@example.com}
  - slack: PADA
    web: ada@example.com
    user: ada@example.com
`); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ list, want string }{
		"twice":            {"  - {slack: U0ADA, user: ada}\n  # somebody else\n  - {slack: U0MIA, user: mia}\n  - {pagerduty: PADA, slack: U0ADA, user: root}\n", "lines 5 and 8: both say who slack U0ADA is: ada, and root"},
		"twice the same":   {"  - {web: ada, user: ada}\n  - {web: ada, user: ada}\n", "lines 5 and 6: both say who web ada is: ada, and ada"},
		"three times":      {"  - {web: ada, user: ada}\n  - {web: ada, user: mia}\n  - user: eve\n    web: ada\n", "lines 5 and 6: both say who web ada is: ada, and mia\nlines 5 and 7: both say who web ada is: ada, and eve"},
		"nobody":           {"  - {user: ada}\n", "line 5: it names nobody: give slack, pagerduty or web"},
		"as nobody":        {"  - {slack: U0ADA}\n", "line 5: user is missing"},
		"by e-mail":        {"  - {web: ada, user: ada}\n  - {slack: ada@example.com, user: ada}\n", `line 6: slack id "ada@example.com" is an e-mail address, which others can take: write the id`},
		"a blank":          {"  - {slack: 'U0ADA ', user: ada}\n", `line 5: slack id "U0ADA " has a space in it`},
		"a ServiceAccount": {"  - {slack: U0ADA, user: 'system:serviceaccount:unpend:unpend-executor'}\n", `line 5: "system:serviceaccount:unpend:unpend-executor" is not a user or a group that people are`},
		"the masters":      {"  - {slack: U0ADA, user: ada, groups: ['system:masters']}\n", `line 5: "system:masters" is not a user or a group that people are`},
		"everybody":        {"  - {slack: U0ADA, user: '*'}\n", `line 5: "*" is not a user or a group that people are`},
	} {
		path, err := configured(t, head+c.list)
		if want := path + ": remediate.identities: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
		}
	}
	if _, err := configured(t, head+"  - {slack: U0ADA, user: ada, email: ada@example.com}\n"); err == nil || !strings.HasSuffix(err.Error(), "remediate.identities[0].email: there is no such key") {
		t.Errorf("an unknown key: %v", err)
	}
}
