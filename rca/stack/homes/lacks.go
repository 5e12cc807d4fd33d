package homes

import "regexp"

// lacks are the words of a container runtime, or of what it runs, for a program that is not on the machine: Go's os/exec, by name or
// by path, and runc's of a hook.
var lacks = regexp.MustCompile(`exec: "([^"]*nvidia[^"]*)": (?:executable file not found|stat)|(?:fork/exec|exec|stat|hook) ([^\s:"]*nvidia[^\s:"]*): no such file or directory`)

// Lacks is the program of NVIDIA's that these words say the machine does not have; empty where they say that of none.
func Lacks(words string) string {
	m := lacks.FindStringSubmatch(words)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}

// Runtime is NVIDIA's container runtime, by the end of its path.
const Runtime = "nvidia-container-runtime"
