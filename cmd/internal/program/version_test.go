package program

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/unpend/unpend/cmd/internal/program/console"
)

// What the Makefile links in wins over what Go has noted; each is shown where it is
// known, and nothing in its place where it is not.
func TestVersionSaysWhatItWasBuiltFrom(t *testing.T) {
	noted := debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260102030405-0123456789ab"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}}
	here := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		name, version, commit, date string
		info                        debug.BuildInfo
		want                        string
	}{
		{"nothing is known", "", "", "", debug.BuildInfo{}, "unpend (devel) (" + here + ")"},
		{"Go has noted it", "", "", "", noted, "unpend v0.0.0-20260102030405-0123456789ab (commit 0123, modified, 2026-01-02T03:04:05Z, " + here + ")"},
		{"installed as a module", "", "", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "unpend v1.2.3 (" + here + ")"},
		{"all linked in", "v2.0.0", "4567", "2026-02-03T04:05:06Z", noted, "unpend v2.0.0 (commit 4567, 2026-02-03T04:05:06Z, " + here + ")"},
		{"changed since", "v2.0.0-dirty", "4567-dirty", "2026-02-03T04:05:06Z", debug.BuildInfo{}, "unpend v2.0.0-dirty (commit 4567, modified, 2026-02-03T04:05:06Z, " + here + ")"},
		{"no tag", "", "4567", "2026-02-03T04:05:06Z", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unpend (devel) (commit 4567, 2026-02-03T04:05:06Z, " + here + ")"},
	} {
		linkIn(t, c.version, c.commit, c.date)
		if got := buildOf(&c.info).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The command and the flag print the same line, for machines there is JSON, whose fields
// have their names for good.
func TestVersionIsACommandAndAFlag(t *testing.T) {
	linkIn(t, "v2.0.0", "4567", "2026-02-03T04:05:06Z")
	line := "unpend v2.0.0 (commit 4567, 2026-02-03T04:05:06Z, " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
	object := `{"version":"v2.0.0","revision":"4567","date":"2026-02-03T04:05:06Z","go":"` + runtime.Version() + `","platform":"` + runtime.GOOS + "/" + runtime.GOARCH + "\"}\n"
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"version"}, 0, line, ""},
		{[]string{"--version"}, 0, line, ""},
		{[]string{"version", "-o", "json"}, 0, object, ""},
		{[]string{"version", "-o", "yaml"}, console.ExitUsage, "", "unpend: output \"yaml\" is not known: use json\n"},
		{[]string{"why", "--version"}, console.ExitUsage, "", "unpend: unknown flag: --version; see 'unpend why --help'\n"},
	} {
		if code, out, errs := call(t, c.args...); code != c.code || out != c.out || errs != c.errs {
			t.Errorf("%q: exit %d, %q, %q; want %d, %q, %q", c.args, code, out, errs, c.code, c.out, c.errs)
		}
	}
}

// linkIn sets what the Makefile does.
func linkIn(t *testing.T, tag, revision, made string) {
	t.Cleanup(func() { version, commit, date = "", "", "" })
	version, commit, date = tag, revision, made
}
