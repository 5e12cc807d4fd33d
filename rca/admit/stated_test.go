package admit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// limiting is a quota of namespace a on limits of CPU and memory.
func limiting(cpu, usedCPU, memory, usedMemory string) *corev1.ResourceQuota {
	hard, used := list("limits.cpu", cpu, "limits.memory", memory), list("limits.cpu", usedCPU, "limits.memory", usedMemory)
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

// What a container may take, where nobody has said what it needs, is its GPUs' part of the node
// that has most of them, shared among its containers: whole GiB of memory, no less than what is
// usual, and no more than the quota has left.
func TestPortionsOfANode(t *testing.T) {
	type node struct {
		gpus        int
		cpu, memory string
	}
	plenty := limiting("500", "0", "900Gi", "0")
	gpus := list("nvidia.com/gpu", "2")
	four := []node{{4, "64", "257Gi"}}
	for name, tc := range map[string]struct {
		nodes      []node
		asks       corev1.ResourceList
		containers int
		quota      *corev1.ResourceQuota
		want       string
	}{
		"no node":                  {nil, gpus, 1, plenty, "1 2Gi"},
		"half of one":              {four, gpus, 1, plenty, "32 128Gi"},
		"shared by two":            {four, gpus, 2, plenty, "16 64Gi"},
		"of the node with most":    {[]node{{4, "64", "256Gi"}, {8, "64", "256Gi"}, {2, "64", "256Gi"}}, gpus, 1, plenty, "16 64Gi"},
		"of the first of equals":   {[]node{{4, "64", "256Gi"}, {4, "32", "128Gi"}}, gpus, 1, plenty, "32 128Gi"},
		"no GPU is offered":        {[]node{{0, "64", "256Gi"}}, gpus, 1, plenty, "1 2Gi"},
		"less than what is usual":  {[]node{{4, "1", "2Gi"}}, gpus, 1, plenty, "1 2Gi"},
		"of MIG devices":           {[]node{{0, "64", "256Gi"}}, list("nvidia.com/mig-1g.5gb", "1"), 1, plenty, "1 2Gi"},
		"of two sorts":             {four, list("nvidia.com/gpu", "1", "nvidia.com/mig-1g.5gb", "1"), 1, plenty, "1 2Gi"},
		"of none":                  {four, nil, 1, plenty, "1 2Gi"},
		"more than the quota has":  {four, gpus, 1, limiting("10", "4", "10Gi", "4Gi"), "6 6Gi"},
		"not all of it is whole":   {four, gpus, 1, limiting("10", "4500m", "10Gi", "4608Mi"), "5500m 5Gi"},
		"the quota is used up":     {four, gpus, 1, limiting("10", "10", "10Gi", "10Gi"), "32 128Gi"},
		"more is used than may be": {four, gpus, 1, limiting("10", "11", "10Gi", "11Gi"), "32 128Gi"},
		"half of what is usual":    {nil, nil, 1, limiting("10", "9500m", "10Gi", "9728Mi"), "500m 512Mi"},
		"in the quota's notation":  {nil, nil, 1, limiting("10", "9", "1073741824", "0"), "1 1073741824"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for i, n := range tc.nodes {
				o := sim.Node{Name: fmt.Sprint("n", i), Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}
				if o.GPUs = n.gpus; n.gpus > 0 {
					o.Layouts = nil
				}
				for g := range n.gpus {
					o.MIGOff = append(o.MIGOff, g)
				}
				w.AddNode(o, func(o *corev1.Node, _ *nodeprobe.NodeGeometry) {
					o.Status.Allocatable["cpu"], o.Status.Allocatable["memory"] = list("cpu", n.cpu)["cpu"], list("memory", n.memory)["memory"]
				})
			}
			w.Quotas = []*corev1.ResourceQuota{tc.quota}
			w.Asking(tc.asks)
			for i := 1; i < tc.containers; i++ {
				w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i)})
			}
			c := w.unborn(t, "ReplicaSet")
			q := c.Refused.Refusing()[0]
			if got := portion(c, lack{"c", "limits.cpu", q}) + " " + portion(c, lack{"c", "limits.memory", q}); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A person is told what to write where: requests and limits of each container that states
// none, once, however many quotas want it; or the defaults that a LimitRange would fill in.
func TestWhatIsToBeStated(t *testing.T) {
	quota := func(name string, limits ...string) *corev1.ResourceQuota {
		hard := list()
		for _, l := range limits {
			hard[corev1.ResourceName(l)] = list("x", "900Gi")["x"]
		}
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard}}
	}
	const byRange = "echo '{apiVersion: v1, kind: LimitRange, metadata: {name: defaults}, spec: {limits: [{type: Container%s}]}}' | kubectl -n a create -f -"
	for name, tc := range map[string]struct {
		quotas          []*corev1.ResourceQuota
		containers      []string
		title, defaults string
		steps, commands []string
	}{
		"a limit": {[]*corev1.ResourceQuota{quota("q", "limits.cpu")}, []string{"c"}, "state limits.cpu of container c in replicaset/w", `, default: {cpu: "1"}`,
			[]string{"have container c state limits=cpu=1"}, []string{"kubectl -n a set resources replicaset/w -c c --limits=cpu=1  # adapt the amounts"}},
		"a request": {[]*corev1.ResourceQuota{quota("q", "requests.memory")}, []string{"c"}, "state requests.memory of container c in replicaset/w", `, defaultRequest: {memory: "2Gi"}`,
			[]string{"have container c state requests=memory=2Gi"}, []string{"kubectl -n a set resources replicaset/w -c c --requests=memory=2Gi  # adapt the amounts"}},
		"both, by two quotas that want the same": {[]*corev1.ResourceQuota{quota("q", "limits.cpu", "limits.memory"), quota("r", "limits.cpu", "memory")}, []string{"c"}, "state limits.cpu, limits.memory, memory of container c in replicaset/w", `, default: {cpu: "1", memory: "2Gi"}, defaultRequest: {memory: "2Gi"}`,
			[]string{"have container c state requests=memory=2Gi limits=cpu=1,memory=2Gi"}, []string{"kubectl -n a set resources replicaset/w -c c --requests=memory=2Gi --limits=cpu=1,memory=2Gi  # adapt the amounts"}},
		"of two containers": {[]*corev1.ResourceQuota{quota("q", "limits.cpu")}, []string{"c", "d"}, "state limits.cpu of container c, d in replicaset/w", `, default: {cpu: "1"}`,
			[]string{"have container c state limits=cpu=1", "have container d state limits=cpu=1"},
			[]string{"kubectl -n a set resources replicaset/w -c c --limits=cpu=1  # adapt the amounts", "kubectl -n a set resources replicaset/w -c d --limits=cpu=1  # adapt the amounts"}},
	} {
		for _, kind := range []string{"ReplicaSet", "Job"} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				w := newWorld()
				w.Quotas = tc.quotas
				w.Wait.Spec.Containers = nil
				for _, name := range tc.containers {
					w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: name})
				}
				c := w.unborn(t, kind)
				got := StateRequests(c)
				if len(got) != 2 {
					t.Fatalf("%d changes", len(got))
				}
				title, commands := tc.title, tc.commands
				if kind == "Job" { // whose template nobody can set
					title, commands = strings.Replace(title, "replicaset/w", "job/w", 1), []string{c.EditByHand(strings.Join(tc.steps, "; "))}
				}
				if got[0].Title != title || !slices.Equal(got[0].Steps, tc.steps) || !slices.Equal(got[0].Commands, commands) {
					t.Errorf("%q\n%q\n%q\nwant %q\n%q\n%q", got[0].Title, got[0].Steps, got[0].Commands, title, tc.steps, commands)
				}
				if want := fmt.Sprintf(byRange, tc.defaults); len(got[1].Commands) != 1 || got[1].Commands[0] != want {
					t.Errorf("%q, want %q", got[1].Commands, want)
				}
			})
		}
	}
}

// What is missing is limited to what is requested only where each container that lacks a limit
// requests it, and nothing but limits is missing.
func TestLimitsAsRequested(t *testing.T) {
	container := func(name string, requests corev1.ResourceList) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	of := func(lacks ...string) []lack { // container and resource in turn
		var out []lack
		for i := 0; i < len(lacks); i += 2 {
			out = append(out, lack{container: lacks[i], name: corev1.ResourceName(lacks[i+1])})
		}
		return out
	}
	for name, tc := range map[string]struct {
		lacks []lack
		want  string
	}{
		"one":              {of("c", "limits.cpu"), "c: cpu 2/2"},
		"of each":          {of("c", "limits.cpu", "d", "limits.cpu"), "c: cpu 2/2; d: cpu 3/3"},
		"two of one":       {of("d", "limits.cpu", "d", "limits.memory"), "d: cpu 3/3, memory 1Gi/1Gi"},
		"one not":          {of("d", "limits.memory", "c", "limits.memory"), "no"},
		"a request":        {of("c", "requests.cpu"), "no"},
		"of none there is": {of("init", "limits.cpu"), "no"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.Containers = []corev1.Container{container("c", list("cpu", "2")), container("d", list("cpu", "3", "memory", "1Gi"))}
			sets, ok := asRequested(w.unborn(t, "ReplicaSet"), tc.lacks)
			var got []string
			for _, k := range []string{"c", "d"} {
				var texts []string
				for _, name := range []corev1.ResourceName{"cpu", "memory"} {
					if p, set := sets[k][name]; set {
						texts = append(texts, fmt.Sprintf("%s %s/%s", name, p.Request.String(), p.Limit.String()))
					}
				}
				if len(texts) > 0 {
					got = append(got, k+": "+strings.Join(texts, ", "))
				}
			}
			if text := strings.Join(got, "; "); ok != (tc.want != "no") || ok && text != tc.want {
				t.Errorf("%v, %q; want %q", ok, text, tc.want)
			}
		})
	}
}

// Where the API server wants a quota it is made for all pods that are missing, or for the
// priority class; for critical DaemonSets of the device stack that mends it, of whatever maker.
func TestQuotasThatAreWanted(t *testing.T) {
	const scoped = "echo '{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {hard: {pods: \"1000\"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [%s]}]}}}' | kubectl -n a create -f -"
	critical := fmt.Sprintf(scoped, "system-node-critical", "system-node-critical")
	for name, tc := range map[string]struct {
		asks           corev1.ResourceList
		class, kind    string
		title, command string
		fix            diagnosis.FixKind
		image          string // of the DaemonSet's container
	}{
		"for GPUs":               {list("nvidia.com/gpu", "2"), "", "ReplicaSet", "give a a quota that covers its pods", "kubectl -n a create quota gpus --hard=requests.nvidia.com/gpu=10", diagnosis.Manual, ""},
		"for two sorts":          {list("nvidia.com/gpu", "2", "nvidia.com/mig-1g.5gb", "1"), "", "ReplicaSet", "give a a quota that covers its pods", "kubectl -n a create quota gpus --hard=requests.nvidia.com/gpu=10,requests.nvidia.com/mig-1g.5gb=5", diagnosis.Manual, ""},
		"for pods":               {nil, "", "ReplicaSet", "give a a quota that covers its pods", "kubectl -n a create quota gpus --hard=pods=5", diagnosis.Manual, ""},
		"for a class":            {nil, "high", "DaemonSet", "give a a quota for priority class high", fmt.Sprintf(scoped, "high", "high"), diagnosis.Manual, ""},
		"for critical pods":      {nil, "system-node-critical", "ReplicaSet", "give a a quota for priority class system-node-critical", critical, diagnosis.Manual, ""},
		"for a device plugin":    {nil, "system-node-critical", "DaemonSet", "give a a quota for priority class system-node-critical", critical, diagnosis.RepairDeviceStack, "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"},
		"for AMD's":              {nil, "system-node-critical", "DaemonSet", "give a a quota for priority class system-node-critical", critical, diagnosis.RepairDeviceStack, "rocm/k8s-device-plugin:1.31"},
		"for a log shipper":      {nil, "system-node-critical", "DaemonSet", "give a a quota for priority class system-node-critical", critical, diagnosis.Manual, "registry.example/shipper:4"},
		"for a plugin's class":   {nil, "high", "DaemonSet", "give a a quota for priority class high", fmt.Sprintf(scoped, "high", "high"), diagnosis.Manual, "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"},
		"for a Deployment of it": {nil, "system-node-critical", "Deployment", "give a a quota for priority class system-node-critical", critical, diagnosis.Manual, "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(tc.asks)
			w.Wait.Spec.PriorityClassName = tc.class
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w"}}
			ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: tc.image}}
			w.DaemonSets = append(w.DaemonSets, ds)
			c := w.unborn(t, tc.kind)
			c.Refused.All[0].Says = "insufficient quota to match these scopes"
			c.Refused.All = append(c.Refused.All, incident.Refusal{Pod: w.Wait, Missing: 2})
			got := StateRequests(c)
			if len(got) != 1 || got[0].Title != tc.title || got[0].Kind != tc.fix || !slices.Equal(got[0].Commands, []string{tc.command}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A refusal that nobody owns needs nothing done; what names a ServiceAccount names the usual one
// where the template does not.
func TestRefusalsToLookAt(t *testing.T) {
	for account, want := range map[string]string{"": "default", "robot": "robot"} {
		w := newWorld()
		w.Wait.Spec.ServiceAccountName = account
		c := w.unborn(t, "ReplicaSet")
		c.Refused.All[0].Says = "unable to validate against any security context constraint"
		got := LookAtRefusal(c)
		if len(got) != 1 || got[0].Commands[0] != "oc adm policy add-scc-to-user privileged -n a -z "+want || got[0].Risk != diagnosis.MediumRisk {
			t.Errorf("%+v", got)
		}
		if c.Refused.All = nil; LookAtRefusal(c) != nil {
			t.Error("of none that is refused")
		}
	}
}

// A RuntimeClass is made where one is named that is not there.
func TestRuntimeClassesAreMade(t *testing.T) {
	for name, want := range map[string]int{"": 0, "nvidia": 1} {
		w := newWorld()
		if name != "" {
			w.Wait.Spec.RuntimeClassName = &name
		}
		got := MakeRuntimeClass(w.unborn(t, "ReplicaSet"))
		if len(got) != want || want > 0 && got[0].Title != "make RuntimeClass nvidia, as the GPU Operator does" {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// A class that is misspelled is named right, and not made.
func TestClassesAreNamedRight(t *testing.T) {
	w := newWorld()
	w.Wait.Spec.PriorityClassName = "system-cluster-criticalx"
	got := LookAtRefusal(w.unborn(t, "Deployment"))
	if len(got) != 1 || got[0].Title != "name PriorityClass system-cluster-critical in deployment/w: there is no system-cluster-criticalx" || len(got[0].Commands) != 2 {
		t.Errorf("%+v", got)
	}
}
