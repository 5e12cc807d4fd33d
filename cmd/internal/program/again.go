package program

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
)

// repeated are the flags that a printed command carries on: which cluster, and as who. A
// token is none of them, for it would be on the screen.
var repeated = []string{"kubeconfig", "context", "cluster", "user", "server", "as", "as-uid", "as-group", "as-user-extra",
	"certificate-authority", "client-certificate", "client-key", "insecure-skip-tls-verify", "tls-server-name", "proxy-url"}

// again are those of them that were given, to be copied to a shell.
func (k *kubeFlags) again() string {
	var out []string
	for _, name := range repeated {
		f := k.flags.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if f.NoOptDefVal == v {
				out = append(out, "--"+name)
			} else {
				out = append(out, "--"+name, quoted(v))
			}
		}
	}
	return strings.Join(out, " ")
}

// plainWord are the characters that a shell leaves alone.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, plainWord) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// again says how another command finds what was found in a state.
func (s *source) again(st *cluster.State, find ...string) terminal.Again {
	a := terminal.Again{Find: strings.Join(find, " ")}
	if !st.Live {
		a.Offline = true
		for _, f := range s.files {
			if f == "-" {
				a.Files = ""
				return a
			}
			a.Files += " -f " + quoted(f)
		}
		return a
	}
	a.Flags, a.Mark = s.kube.again(), clusterMark(st)
	if ns := s.kube.namespace(); ns != "" {
		a.Find += " -n " + quoted(ns)
	}
	if f := s.kube.flags.Lookup("owner-kinds"); f != nil && f.Changed { // not kubectl's
		a.Find += " --owner-kinds " + quoted(strings.Join(s.kube.ownerKinds, ","))
	}
	return a
}

// executorAt is the flag that names where the service runs, unless that is the usual place.
func executorAt(namespace string) string {
	if namespace == "" || namespace == usualNamespace {
		return ""
	}
	return "--executor-namespace " + quoted(namespace)
}
