package sources

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/watcher/owners"
)

// KubeFlags say which cluster is meant and who asks, by kubectl's flags. They are bound
// here and not by k8s.io/cli-runtime, which links kustomize; a test holds them to it.
type KubeFlags struct {
	loader    clientcmd.ClientConfig
	overrides clientcmd.ConfigOverrides
	extra     []string // KEY=VALUE, of who is impersonated
	flags     *pflag.FlagSet
	// OwnerKinds are the kinds of owners that are read beside Kubernetes' own.
	OwnerKinds []string
}

// NewKubeFlags binds kubectl's flags.
func NewKubeFlags(flags *pflag.FlagSet) *KubeFlags {
	k := &KubeFlags{flags: flags, overrides: clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults, Timeout: "0"}}
	files := clientcmd.NewDefaultClientConfigLoadingRules()
	files.DefaultClientConfig = &clientcmd.DefaultClientConfig // else a pod's own service account is never asked
	k.loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(files, &k.overrides)
	flags.StringVar(&files.ExplicitPath, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	flags.String("cache-dir", cmp.Or(os.Getenv("KUBECACHEDIR"), filepath.Join(homedir.HomeDir(), ".kube", "cache")), "Default cache directory") // nothing is cached
	k.bindUser(flags)
	k.bindCluster(flags)
	return k
}

func (k *KubeFlags) bindUser(flags *pflag.FlagSet) {
	user, context := &k.overrides.AuthInfo, &k.overrides.Context
	flags.StringVar(&user.ClientCertificate, "client-certificate", "", "Path to a client certificate file for TLS")
	flags.StringVar(&user.ClientKey, "client-key", "", "Path to a client key file for TLS")
	flags.StringVar(&user.Token, "token", "", "Bearer token for authentication to the API server")
	flags.StringVar(&user.Impersonate, "as", "", "Username to impersonate for the operation. User could be a regular user or a service account in a namespace.")
	flags.StringVar(&user.ImpersonateUID, "as-uid", "", "UID to impersonate for the operation.")
	flags.StringArrayVar(&user.ImpersonateGroups, "as-group", nil, "Group to impersonate for the operation, this flag can be repeated to specify multiple groups.")
	flags.StringArrayVar(&k.extra, "as-user-extra", nil, "User extras to impersonate for the operation, this flag can be repeated to specify multiple values for the same key.")
	flags.StringVar(&k.overrides.CurrentContext, "context", "", "The name of the kubeconfig context to use")
	flags.StringVar(&context.AuthInfo, "user", "", "The name of the kubeconfig user to use")
	flags.StringVar(&context.Cluster, "cluster", "", "The name of the kubeconfig cluster to use")
	flags.StringVarP(&context.Namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request")
}

func (k *KubeFlags) bindCluster(flags *pflag.FlagSet) {
	cluster := &k.overrides.ClusterInfo
	flags.StringVarP(&cluster.Server, "server", "s", "", "The address and port of the Kubernetes API server")
	flags.StringVar(&cluster.TLSServerName, "tls-server-name", "", "Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used")
	flags.BoolVar(&cluster.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "If true, the server's certificate will not be checked for validity. This will make your HTTPS connections insecure")
	flags.StringVar(&cluster.CertificateAuthority, "certificate-authority", "", "Path to a cert file for the certificate authority")
	flags.StringVar(&k.overrides.Timeout, "request-timeout", k.overrides.Timeout, "The length of time to wait before giving up on a single server request. Non-zero values should contain a corresponding time unit (e.g. 1s, 2m, 3h). A value of zero means don't timeout requests.")
	flags.BoolVar(&cluster.DisableCompression, "disable-compression", false, "If true, opt-out of response compression for all requests to the server")
	flags.StringVar(&cluster.ProxyURL, "proxy-url", "", "Proxy URL to use for requests to the API server")
}

// ownerKindsEnv has what --owner-kinds says for every command.
const ownerKindsEnv = "UNPEND_OWNER_KINDS"

// BindOwners adds a flag that is not kubectl's. Incidents are named after topmost owners, so it
// has to say what the service's configuration does.
func (k *KubeFlags) BindOwners(flags *pflag.FlagSet) {
	known := strings.FieldsFunc(os.Getenv(ownerKindsEnv), func(r rune) bool { return r == ',' })
	flags.StringSliceVar(&k.OwnerKinds, "owner-kinds", known, "kinds of owners to read beside Kubernetes' own, as rca.ownerKinds of the service names them (workflows.argoproj.io); "+ownerKindsEnv+" has them for all commands")
}

// owners reads these kinds.
func (k *KubeFlags) owners(config *rest.Config) (owners.Reader, error) {
	names, err := owners.Names(k.OwnerKinds)
	if err != nil {
		return owners.Reader{}, console.Usage("--owner-kinds: %v", err)
	}
	return owners.New(config, names)
}

// Namespace is what -n says; empty without it.
func (k *KubeFlags) Namespace() string { return k.overrides.Context.Namespace }

// rest is how the API server is spoken to. The error is clientcmd's: a file that cannot
// be read, a context that is not there.
func (k *KubeFlags) rest() (*rest.Config, error) {
	extra := map[string][]string{}
	for _, e := range k.extra {
		if key, value, ok := strings.Cut(e, "="); ok {
			extra[key] = append(extra[key], value)
		}
	}
	k.overrides.AuthInfo.ImpersonateUserExtra = extra
	return k.loader.ClientConfig()
}
