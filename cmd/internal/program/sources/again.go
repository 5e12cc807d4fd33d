package sources

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
)

// repeated are the flags that a printed command carries on: which cluster, and as who. A
// token is none of them, for it would be on the screen.
var repeated = []string{"kubeconfig", "context", "cluster", "user", "server", "as", "as-uid", "as-group", "as-user-extra",
	"certificate-authority", "client-certificate", "client-key", "insecure-skip-tls-verify", "tls-server-name", "proxy-url"}

// again are those of them that were given, to be copied to a shell.
func (k *KubeFlags) again() string {
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
				out = append(out, "--"+name, console.Quoted(v))
			}
		}
	}
	return strings.Join(out, " ")
}

// Again says how another command finds what was found in a state.
func (s *Source) Again(st *cluster.State, find ...string) terminal.Again {
	a := terminal.Again{Find: strings.Join(find, " ")}
	if !st.Live {
		a.Offline = true
		for _, f := range s.Files {
			if f == "-" {
				a.Files = ""
				return a
			}
			a.Files += " -f " + console.Quoted(f)
		}
		return a
	}
	a.Flags, a.Mark = s.Kube.again(), ClusterMark(st)
	if ns := s.Kube.Namespace(); ns != "" {
		a.Find += " -n " + console.Quoted(ns)
	}
	if f := s.Kube.flags.Lookup("owner-kinds"); f != nil && f.Changed { // not kubectl's
		a.Find += " --owner-kinds " + console.Quoted(strings.Join(s.Kube.OwnerKinds, ","))
	}
	return a
}
