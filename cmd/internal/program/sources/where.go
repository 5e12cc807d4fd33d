package sources

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// Where says to a person which cluster is meant, and as who: the context, the server, and
// the mark that ids of this cluster carry outside of it.
func (k *KubeFlags) Where(st *cluster.State) string {
	var parts []string
	if context := k.context(); context != "" {
		parts = append(parts, "context "+context)
	}
	if config, err := k.rest(); err == nil {
		parts = append(parts, "server "+config.Host)
	}
	if mark := ClusterMark(st); mark != "" {
		parts = append(parts, "cluster "+mark)
	}
	if as := k.overrides.AuthInfo.Impersonate; as != "" {
		parts = append(parts, "as "+as)
	}
	return strings.Join(parts, ", ")
}

// context is the one in use; empty inside a cluster.
func (k *KubeFlags) context() string {
	if k.overrides.CurrentContext != "" {
		return k.overrides.CurrentContext
	}
	raw, err := k.loader.RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// markLength is how many hex of its uid tell one cluster from another.
const markLength = 8

// ClusterMark is the beginning of the uid of kube-system, which lives as long as the
// cluster; empty where that was not read.
func ClusterMark(st *cluster.State) string {
	for _, n := range st.Namespaces {
		if uid := string(n.UID); n.Name == metav1.NamespaceSystem && len(uid) >= markLength {
			return uid[:markLength]
		}
	}
	return ""
}
