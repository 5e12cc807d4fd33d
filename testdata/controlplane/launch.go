package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/unpend/unpend/testdata/built"
)

// component is one program of the control plane.
type component struct {
	name   string
	health string // the URL that answers 200 when it is ready
	args   []string
}

// The components, in two steps: nothing works before the API server does.
func (c *ControlPlane) components(stages string, ports []string) [2][]component {
	api, others := c.servers(ports), c.controllers(stages, ports)
	if c.extras.Alone || c.extras.AsGiven {
		others = nil
	}
	return [2][]component{api, others}
}

func at(scheme, port string) string { return scheme + "://127.0.0.1:" + port }

// serve is how every component of Kubernetes is told where it listens, and its gates.
func (c *ControlPlane) serve() []string {
	return append([]string{"--bind-address=127.0.0.1", "--tls-cert-file=" + c.path("server.crt"), "--tls-private-key-file=" + c.path("server.key")}, c.extras.gates()...)
}

func (c *ControlPlane) servers(ports []string) []component {
	client, peer := c.etcd, at("http", ports[1])
	return []component{
		{"etcd", client + "/health", []string{"--data-dir=" + c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--max-txn-ops=" + maxOperations}},
		{"kube-apiserver", c.host + "/readyz", slices.Concat(c.serve(), c.extras.apis(), c.tokens(), c.extras.asGiven(), []string{"--etcd-servers=" + client, "--secure-port=" + ports[2],
			"--endpoint-reconciler-type=none", // with any other 1.37 refuses 127.0.0.1 as its address
			"--authorization-mode=RBAC", "--client-ca-file=" + c.path("ca.crt"), "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged",
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + c.path("sa.key"), "--service-account-signing-key-file=" + c.path("sa.key"),
			"--audit-policy-file=" + c.path("audit.yaml"), "--audit-log-path=" + c.path("audit.log"), "--audit-log-mode=blocking", "--audit-log-maxsize=10000"})}, // MB: it is read from its beginning,
	}
}

// tokens is the flag by which the API server takes people's.
func (c *ControlPlane) tokens() []string {
	if len(c.extras.Tokens) == 0 {
		return nil
	}
	return []string{"--token-auth-file=" + c.path(tokensFile)}
}

// tokensFile is in the form that the API server's static token file has.
const tokensFile = "tokens.csv"

func (x Extras) tokensCSV() (out []byte) {
	for token, user := range x.Tokens {
		out = fmt.Appendf(out, "%s,%s,%s\n", token, user, user)
	}
	return out
}

func (c *ControlPlane) controllers(stages string, ports []string) []component {
	// Limits that suit a test that makes a thousand nodes, not a shared server.
	common := append([]string{"--kubeconfig=" + c.Kubeconfig(), "--authentication-kubeconfig=" + c.Kubeconfig(), "--authorization-kubeconfig=" + c.Kubeconfig(),
		"--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000"}, c.serve()...)
	return []component{
		{"kube-scheduler", at("https", ports[3]) + "/readyz", slices.Concat(common, []string{"--secure-port=" + ports[3]})},
		{"kube-controller-manager", at("https", ports[4]) + "/healthz", slices.Concat(common, []string{"--secure-port=" + ports[4],
			"--service-account-private-key-file=" + c.path("sa.key"), "--controllers=*,-node-ipam-controller"})},
		{"kwok", at("http", ports[5]) + "/readyz", []string{"--kubeconfig=" + c.Kubeconfig(), "--config=" + stages,
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds=40", "--server-address=127.0.0.1:" + ports[5]}},
	}
}

func (e Extras) gates() []string {
	if len(e.Gates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + strings.Join(e.Gates, ",")}
}

func (e Extras) apis() []string {
	var served []string
	for _, version := range e.APIs {
		served = append(served, version+"=true")
	}
	for _, version := range e.Off {
		served = append(served, version+"=false")
	}
	if len(served) == 0 {
		return nil
	}
	return []string{"--runtime-config=" + strings.Join(served, ",")}
}

// launch starts everything in a folder of its own; what it started is gone when
// it fails, and the last log lines are in the error.
func launch(ctx context.Context, with Extras) (*ControlPlane, error) {
	bin, err := programs(ctx)
	if err != nil {
		return nil, err
	}
	if err := sweep(time.Minute); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		c, err := launchOnce(ctx, bin, with)
		if err == nil || try == 3 || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return c, err
		} // somebody has taken a port between our look and its program's
	}
}

func launchOnce(ctx context.Context, bin map[string]string, with Extras) (*ControlPlane, error) {
	dir, hold, err := newFolder()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: dir, bin: bin, hold: hold, procs: newProcesses(dir), extras: with}
	began := time.Now()
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w\n%s", err, c.logs()), c.stop())
	}
	c.Ready = time.Since(began)
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	ports, err := freePorts(6)
	if err != nil {
		return err
	}
	c.host, c.etcd = at("https", ports[2]), at("http", ports[0])
	if err := c.writeFiles(); err != nil {
		return err
	}
	stages, err := built.Beside("stages", "stages.yaml")
	if err != nil {
		return err
	}
	crds, err := built.Beside("..", "..", "deploy", "charts", "unpend", "crds")
	if err != nil {
		return err
	}
	steps := c.components(stages, ports)
	if err := errors.Join(c.run(steps[0]), c.await(ctx, steps[0])); err != nil {
		return err
	}
	if err := c.run(steps[1]); err != nil {
		return err
	}
	if err := c.installCRDs(ctx, crds); err != nil {
		return err
	}
	return c.await(ctx, steps[1])
}

func (c *ControlPlane) run(step []component) error {
	for _, p := range step {
		if err := c.procs.start(c.bin[p.name], p.args...); err != nil {
			return err
		}
	}
	return nil
}

// startsWithin is how long a part of the control plane may take to be ready: seconds on a machine that is free, and more than a minute
// on two cores where ten others start.
const startsWithin = 3 * time.Minute

// await waits until all are healthy; one that ends by itself is an error at once.
func (c *ControlPlane) await(ctx context.Context, step []component) error {
	client, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	defer client.CloseIdleConnections()
	for _, p := range step {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startsWithin, true, func(ctx context.Context) (bool, error) {
			if c.procs.gone(p.name) {
				return false, errors.New("it ended")
			}
			return healthy(ctx, client, p.health), nil
		})
		if err != nil {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
	return nil
}

func healthy(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// writeFiles makes the authority, keys, the audit policy and the admin's kubeconfig.
func (c *ControlPlane) writeFiles() error {
	var err error
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	cert, key, err := c.ca.server()
	if err != nil {
		return err
	}
	_, tokens, err := newKey()
	if err != nil {
		return err
	}
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: Metadata}\n"
	for name, data := range map[string][]byte{"ca.crt": c.ca.pem, "server.crt": cert, "server.key": key, "sa.key": tokens, "audit.yaml": []byte(policy), tokensFile: c.extras.tokensCSV()} {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if c.admin.CertData, c.admin.KeyData, err = c.ca.user("admin", "system:masters"); err != nil {
		return err
	}
	c.admin.CAData = c.ca.pem
	return c.writeKubeconfig(c.Kubeconfig(), c.admin.CertData, c.admin.KeyData)
}

func (c *ControlPlane) writeKubeconfig(path string, cert, key []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.host, CertificateAuthorityData: c.ca.pem}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
