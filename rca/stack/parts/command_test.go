package parts

import "testing"

// What the image does not have is named; what the machine lacks, or a file within a program, is not of the image.
func TestNoCommand(t *testing.T) {
	for words, want := range map[string]string{
		`starting container process caused: exec: "--fail-on-init-error=false": executable file not found in $PATH: unknown`: "--fail-on-init-error=false",
		`exec: "/bin/plugin": stat /bin/plugin: no such file or directory`:                                                   "/bin/plugin",
		`exec: "nvidia-container-runtime": executable file not found in $PATH`:                                               "",
		`open /etc/config: no such file or directory`:                                                                        "",
	} {
		if got := NoCommand(words); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}
