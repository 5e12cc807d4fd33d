package controlplane

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ControlPlane is a running control plane.
type ControlPlane struct {
	dir   string
	bin   string
	procs *processes
	host  string
}

const token = "admin-token"

// Start starts a control plane and stops it when the test ends, leaving nothing
// behind. With -short the test is skipped.
func Start(tb testing.TB) *ControlPlane {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs the real control plane, which -short leaves out")
	}
	bin, err := Build(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "unpend-controlplane-")
	if err != nil {
		tb.Fatal(err)
	}
	c := &ControlPlane{dir: dir, bin: bin, procs: newProcesses(dir)}
	tb.Cleanup(func() {
		if tb.Failed() {
			c.showLogs(tb)
		}
		c.procs.kill()
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("remove %s: %v", dir, err)
		}
	})
	began := time.Now()
	if err := c.start(); err != nil {
		c.showLogs(tb)
		tb.Fatalf("start the control plane: %v", err)
	}
	c.installCRDs(tb)
	tb.Logf("control plane ready in %.1f s", time.Since(began).Seconds())
	return c
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) start() error {
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	c.host = "https://127.0.0.1:" + ports[2]
	if err := c.writeFiles(); err != nil {
		return err
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := c.procs.start(filepath.Join(c.bin, "etcd"), "--data-dir", c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--log-level", "warn"); err != nil {
		return err
	}
	if err := c.procs.start(filepath.Join(c.bin, "kube-apiserver"), "--etcd-servers", client, "--secure-port", ports[2],
		"--bind-address", "127.0.0.1", "--cert-dir", c.path("certs"), "--endpoint-reconciler-type", "none",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", c.path("sa.key"),
		"--service-account-signing-key-file", c.path("sa.key"), "--token-auth-file", c.path("tokens.csv"),
		"--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/16", "--allow-privileged",
		"--audit-policy-file", c.path("audit.yaml"), "--audit-log-path", c.path("audit.log"), "--audit-log-mode", "blocking"); err != nil {
		return err
	}
	if err := c.waitReady(); err != nil {
		return err
	}
	kubeconfig := "--kubeconfig=" + c.Kubeconfig()
	if err := c.procs.start(filepath.Join(c.bin, "kube-scheduler"), kubeconfig, "--authentication-kubeconfig="+c.Kubeconfig(),
		"--authorization-kubeconfig="+c.Kubeconfig(), "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+ports[3], "--cert-dir="+c.path("scheduler")); err != nil {
		return err
	}
	if err := c.procs.start(filepath.Join(c.bin, "kube-controller-manager"), kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1",
		"--secure-port="+ports[4], "--cert-dir="+c.path("manager"), "--service-account-private-key-file="+c.path("sa.key"),
		"--use-service-account-credentials=false", "--controllers=*,-node-ipam-controller"); err != nil {
		return err
	}
	src, err := source()
	if err != nil {
		return err
	}
	return c.procs.start(filepath.Join(c.bin, "kwok"), kubeconfig, "--config", filepath.Join(src, "stages", "stages.yaml"),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds=40")
}

// writeFiles makes keys, tokens and the audit policy.
func (c *ControlPlane) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for name, text := range map[string]string{
		"sa.key":     string(pemKey),
		"tokens.csv": token + `,admin,admin,"system:masters"` + "\n",
		"audit.yaml": "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: Metadata}\n",
	} {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return c.writeKubeconfig(c.Kubeconfig(), clientcmdapi.AuthInfo{Token: token})
}

func (c *ControlPlane) writeKubeconfig(path string, user clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.host, InsecureSkipTLSVerify: true}
	config.AuthInfos["user"] = &user
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user"}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, path)
}

func (c *ControlPlane) waitReady() error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
}

func (c *ControlPlane) showLogs(tb testing.TB) {
	logs, err := filepath.Glob(c.path("*.log"))
	if err != nil {
		return
	}
	for _, f := range logs {
		if data, err := os.ReadFile(f); err == nil && filepath.Base(f) != "audit.log" {
			lines := bytes.Split(data, []byte("\n"))
			tb.Logf("%s, last lines:\n%s", filepath.Base(f), bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
		}
	}
}

// Kubeconfig is the path of a kubeconfig for a cluster admin.
func (c *ControlPlane) Kubeconfig() string { return c.path("kubeconfig") }

// KubeconfigFor is the path of a kubeconfig that acts as another user: RBAC
// decides what that one may.
func (c *ControlPlane) KubeconfigFor(tb testing.TB, user string, groups ...string) string {
	tb.Helper()
	path := c.path("kubeconfig-" + user)
	if err := c.writeKubeconfig(path, clientcmdapi.AuthInfo{Token: token, Impersonate: user, ImpersonateGroups: groups}); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Config is a cluster admin's.
func (c *ControlPlane) Config() *rest.Config {
	return &rest.Config{Host: c.host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 500, Burst: 1000}
}

// Client speaks protobuf, as the product does.
func (c *ControlPlane) Client() kubernetes.Interface {
	config := c.Config()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfigOrDie(config)
}

// Dynamic speaks JSON: custom resources know nothing else.
func (c *ControlPlane) Dynamic() dynamic.Interface { return dynamic.NewForConfigOrDie(c.Config()) }
