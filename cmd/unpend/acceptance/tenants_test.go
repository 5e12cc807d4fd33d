package acceptance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/testdata/controlplane"
)

// What one tenant may write in a namespace: Events with as many annotations as the API
// takes, in the name of a controller that is read.
const (
	heavyEvents  = 100
	wholeHeavy   = 400
	soakedEvents = 3_500
	heavyBytes   = 250_000
	attackMemory = 300 << 20
)

// A tenant's Events cost us a bounded amount, and the API server at most twice what
// listing them once in pages costs it. With UNPEND_SOAK=1 they are 875 MB.
func TestATenantsEventsCostLittle(t *testing.T) {
	needsControlPlane(t)
	n := controlplane.Of(heavyEvents, wholeHeavy)
	if soak() {
		n = soakedEvents
	}
	once := costs(t, n, func(t *testing.T, c *controlplane.ControlPlane) {
		writeEvents(t, c, n, n/10+1)
		listPaged(t, c)
	})
	var ours int64
	service := costs(t, n, func(t *testing.T, c *controlplane.ControlPlane) {
		p := startService(t, c)
		writeEvents(t, c, n, n/10) // and more come while it watches
		_, err := c.Client().BatchV1().Jobs("attacker").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: wants2g().Containers}}}}, metav1.CreateOptions{})
		must(t, err)
		writeEvents(t, c, n+n/10, 1) // it tells of that Job
		controlplane.Eventually(t, time.Minute, "the Job is diagnosed", func() (bool, string) {
			said := strings.Join(p.out.all(), "\n")
			return strings.Contains(said, `"workload":{"kind":"Job","namespace":"attacker","name":"x"}`), said
		})
		_, ours = controlplane.MemoryOf(t, p.cmd.Process.Pid)
	})
	t.Logf("%d events of %d kB: RSS at most %d MiB; the API server allocated %d MiB, %d MiB for one paged list", n, heavyBytes/1000, ours>>20, service>>20, once>>20)
	if ours > attackMemory {
		t.Errorf("%d MiB, want at most %d", ours>>20, attackMemory>>20)
	}
	if service > 2*once {
		t.Errorf("the API server allocated %d MiB, one paged list costs %d", service>>20, once>>20)
	}
}

// costs is how many bytes an API server with so many heavy Events allocates while something
// is done to it. Its peak says less: that depends on when it last collected garbage.
func costs(t *testing.T, n int, do func(*testing.T, *controlplane.ControlPlane)) (bytes int64) {
	t.Helper()
	t.Run("an API server", func(t *testing.T) {
		c := start(t, controlplane.Extras{Alone: true})
		_, err := c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attacker"}}, metav1.CreateOptions{})
		must(t, err)
		writeEvents(t, c, 0, n)
		before := bytesAllocated(t, c)
		do(t, c)
		bytes = bytesAllocated(t, c) - before
	})
	return bytes
}

// bytesAllocated is what the API server says it has allocated since it began, in bytes.
func bytesAllocated(t *testing.T, c *controlplane.ControlPlane) int64 {
	t.Helper()
	text, err := c.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "go_memstats_alloc_bytes_total "); is {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			must(t, err)
			return int64(bytes)
		}
	}
	t.Fatal("the API server does not say what it has allocated")
	return 0
}

// writeEvents makes some heavy Events, numbered from a number on.
func writeEvents(t *testing.T, c *controlplane.ControlPlane, from, n int) {
	t.Helper()
	config := c.Config()
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	notes := map[string]string{"a": strings.Repeat("x", heavyBytes)}
	inParallel(t, n, func(i int) error {
		_, err := client.CoreV1().Events("attacker").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e-%05d", from+i), Annotations: notes},
			InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "attacker", Name: "x"}, Reason: "FailedCreate", Type: corev1.EventTypeWarning,
			Message: "quota", Source: corev1.EventSource{Component: "job-controller"}, LastTimestamp: metav1.Now()}, metav1.CreateOptions{})
		return err
	})
}

// listPaged reads all Events as kubectl does, and keeps nothing.
func listPaged(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	client, opts := c.Client(), metav1.ListOptions{Limit: 500}
	for {
		list, err := client.CoreV1().Events("").List(t.Context(), opts)
		must(t, err)
		if opts.Continue = list.Continue; opts.Continue == "" {
			return
		}
	}
}
