package sources

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
)

const twoClusters = `apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: a, user: ada, namespace: ml}}
- {name: there, context: {cluster: b, user: bob}}
clusters:
- {name: a, cluster: {server: "https://a.example:6443", tls-server-name: a.internal}}
- {name: b, cluster: {server: "https://b.example", insecure-skip-tls-verify: true}}
users:
- {name: ada, user: {token: of-ada}}
- {name: bob, user: {token: of-bob, as: carol}}
`

// kubectlFlags are the flags as kubectl binds them.
func kubectlFlags() (*pflag.FlagSet, *genericclioptions.ConfigFlags) {
	flags, theirs := pflag.NewFlagSet("kubectl", pflag.ContinueOnError), genericclioptions.NewConfigFlags(true)
	theirs.AddFlags(flags)
	return flags, theirs
}

// The flags have kubectl's names, short names, types, defaults and words, and none is
// missing.
func TestFlagsAreKubectls(t *testing.T) {
	for _, cache := range []string{"", "/elsewhere"} {
		t.Setenv("KUBECACHEDIR", cache)
		ours := pflag.NewFlagSet("unpend", pflag.ContinueOnError)
		NewKubeFlags(ours)
		theirs, _ := kubectlFlags()
		if diff := cmp.Diff(theirs.FlagUsages(), ours.FlagUsages()); diff != "" {
			t.Errorf("kubectl's flags -, ours +:\n%s", diff)
		}
	}
}

// Every flag does what it does in kubectl: the same connection comes out, the same
// namespace and the same error.
func TestFlagsDoWhatKubectlDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(twoClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	t.Setenv("HOME", t.TempDir())
	for _, args := range [][]string{
		{}, {"--context", "there"}, {"--context", "nowhere"}, {"--kubeconfig", file + ".gone"}, {"--kubeconfig", os.DevNull},
		{"--kubeconfig", os.DevNull, "-s", "https://c.example"}, {"--kubeconfig", os.DevNull, "--cluster", "a"},
		{"-n", "other"}, {"--namespace", "other", "--context", "there"}, {"--cluster", "b"}, {"--cluster", "c"}, {"--user", "bob"}, {"--user", "eve"},
		{"-s", "https://c.example"}, {"--server", "c.example:80"}, {"--token", "mine"}, {"--as", "dora"}, {"--as", "dora", "--as-uid", "7"}, {"--as-uid", "7"},
		{"--as", "dora", "--as-group", "x,y", "--as-group", "z"}, {"--as-group", "x"},
		{"--as", "dora", "--as-user-extra", "a=1", "--as-user-extra", "a=2=3", "--as-user-extra", "b"}, {"--as-user-extra", "a=1"},
		{"--client-certificate", "/c.pem", "--client-key", "/k.pem"}, {"--client-key", "/k.pem"}, {"--certificate-authority", "/ca.pem"},
		{"--insecure-skip-tls-verify"}, {"--insecure-skip-tls-verify", "--certificate-authority", "/ca.pem"}, {"--insecure-skip-tls-verify=false", "--context", "there"},
		{"--tls-server-name", "c.internal"}, {"--disable-compression"}, {"--proxy-url", "http://proxy.example"}, {"--proxy-url", "::"},
		{"--request-timeout", "3s"}, {"--request-timeout", "7"}, {"--request-timeout", "soon"}, {"--cache-dir", "/elsewhere"},
	} {
		ours := pflag.NewFlagSet("unpend", pflag.ContinueOnError)
		k := NewKubeFlags(ours)
		flags, theirs := kubectlFlags()
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := ours.Parse(args); err != nil {
			t.Fatal(err)
		}
		want, wantErr := theirs.ToRESTConfig()
		for range 2 { // asking twice changes nothing
			got, err := k.rest()
			if diff := cmp.Diff(want, got, cmp.Transformer("proxied", proxied)); diff != "" || text(err) != text(wantErr) {
				t.Errorf("%q: error %q, kubectl's %q, connection (kubectl's -, ours +):\n%s", args, text(err), text(wantErr), diff)
			}
		}
		wantNS, wantSet, wantErr := theirs.ToRawKubeConfigLoader().Namespace()
		if ns, set, err := k.loader.Namespace(); ns != wantNS || set != wantSet || text(err) != text(wantErr) {
			t.Errorf("%q: namespace %q %v %q, kubectl's %q %v %q", args, ns, set, text(err), wantNS, wantSet, text(wantErr))
		}
		if ns := *theirs.Namespace; k.Namespace() != ns {
			t.Errorf("%q: -n is %q, kubectl's %q", args, k.Namespace(), ns)
		}
	}
}

// Where no file says anything the loader falls back on the service account of the pod:
// it does when what it has read is what it holds for the default.
func TestAPodNeedsNoKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", os.DevNull)
	k := NewKubeFlags(pflag.NewFlagSet("unpend", pflag.ContinueOnError))
	config, err := k.rest()
	if err != nil {
		t.Fatal(err)
	}
	if files := k.loader.ConfigAccess().(*clientcmd.ClientConfigLoadingRules); !files.IsDefaultConfig(config) {
		t.Errorf("%v is not taken for the default", config)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// proxied says by which proxy a connection goes.
func proxied(proxy func(*http.Request) (*url.URL, error)) string {
	if proxy == nil {
		return "none is set"
	}
	u, err := proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "a.example"}})
	return fmt.Sprint(u, err)
}
