package homes

import "testing"

// A program of NVIDIA's is named by what runs it; another's, and a file that is no program, say nothing of it.
func TestLacks(t *testing.T) {
	for words, want := range map[string]string{
		`exec: "nvidia-container-runtime": executable file not found in $PATH: unknown`:                                                                                    "nvidia-container-runtime",
		`unable to retrieve OCI runtime error (open log.json: no such file or directory): fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown`: "/usr/bin/nvidia-container-runtime",
		`error running createContainer hook #0: fork/exec /usr/bin/nvidia-ctk: no such file or directory`:                                                                  "/usr/bin/nvidia-ctk",
		`exec: "runc": executable file not found in $PATH`:                                                                                                                 "",
		`open /dev/nvidiactl: no such file or directory`:                                                                                                                   "",
	} {
		if got := Lacks(words); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}
