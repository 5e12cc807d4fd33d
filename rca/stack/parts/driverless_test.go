package parts

import "testing"

// A driver's root is at fault only where a container says that it finds no driver below it.
func TestFindsNoDriver(t *testing.T) {
	for words, want := range map[string]bool{
		"CrashLoopBackOff (31 restarts; last exit 1)":                    false,
		"unable to unmarshal checkpoint":                                 false,
		"failed to locate driver libraries: libnvidia-ml.so.1 not found": true,
		"ERROR_LIBRARY_NOT_FOUND":                                        true,
	} {
		if FindsNoDriver(words) != want {
			t.Errorf("%q: not %v", words, want)
		}
	}
	if got := (Look{Where: "init"}).In() + (Look{}).In(); got != " -c init" {
		t.Errorf("%q", got)
	}
	if (Look{Loops: true}).Before() != " --previous" || (Look{}).Before() != "" {
		t.Error("the log of the one before")
	}
}
