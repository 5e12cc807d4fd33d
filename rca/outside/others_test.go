package outside_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/outside/refused"
	"github.com/unpend/unpend/rca/rcatest"
)

// A gate is opened by who owns it, and a scheduler that nobody runs is started; where the
// default one speaks, that one may take the pod.
func TestWhoHasToLetThePodGo(t *testing.T) {
	run(t, map[string]row{
		"gates": {outside.OpenGates, func(w *edittest.World) {
			w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a/b"}, {Name: "c"}}
		}, `Manual for "", 0 min, by hand, none risk: ask who owns the gates a/b, c to remove them
until the gates a/b, c are removed
  kubectl -n a get pod w -o jsonpath='{.spec.schedulingGates}'
`},
		"no scheduler speaks": {outside.StartScheduler, edittest.RefusedBy("mine", ""), `Manual for "", 0 min, by hand, none risk: start the scheduler "mine"
until its scheduler runs
  kubectl get pods -A -o wide | grep -i scheduler
`},
		"the default one is not there": {outside.StartScheduler, func(*edittest.World) {}, `Manual for "", 0 min, by hand, none risk: start the scheduler "default-scheduler"
until its scheduler runs
  kubectl get pods -A -o wide | grep -i scheduler
`},
		"the default one speaks": {outside.StartScheduler, func(w *edittest.World) {
			edittest.RefusedBy("mine", "")(w)
			w.Deployed()
			says(w, "default-scheduler", "Scheduled", "to n", 0)
			w.Events[0].InvolvedObject.Name, w.Events[0].InvolvedObject.UID = "other", "other"
		}, `ChangeRequest for "", 1 min, by plan, medium risk: schedule deployment/w by default-scheduler
  kubectl -n a patch deployment/w --type=strategic -p '{"spec":{"template":{"spec":{"schedulerName":"default-scheduler"}}}}'
`},
	})
}

// A scheduler that places others and is silent about the pod is asked why; one that has spoken is
// not.
func TestASilentScheduler(t *testing.T) {
	const want = `Manual for "SchedulerMissing", 0 min, by hand, none risk: see why volcano has not looked at it (volcano decides by its own rules, which are not run here)
  kubectl get pods -A -o wide | grep -i volcano  # then its log: is it stuck on pods before this one
  kubectl -n a get pod w -o jsonpath='{.status.conditions}'
`
	for want, since := range map[string]time.Duration{want: time.Hour, "": 0} {
		w := edittest.New()
		w.Wait.Spec.SchedulerName, w.Wait.Status.Conditions = "volcano", nil
		says(w, "volcano", "Scheduled", "to n", 0)
		w.Events[0].InvolvedObject.Name, w.Events[0].InvolvedObject.UID = "other", "other"
		k := w.Case(t, "Deployment")
		k.Queue.Incident.Since = rcatest.Noon.Add(-since)
		if got := whole(outside.AskSilent(edit.New(k))); got != want {
			t.Errorf("after %s: %s", since, got)
		}
	}
}

// What another scheduler refuses is looked at where its rule is seen: its queues, its cards, or
// its log.
func TestOtherSchedulersAreAsked(t *testing.T) {
	const quota = "queue resource quota insufficient"
	run(t, map[string]row{
		"nobody refuses": {refused.Ask, func(*edittest.World) {}, ""},
		"by a rule of its own": {refused.Ask, edittest.RefusedBy("volcano", "something"), `Manual for "SchedulerRefused", 0 min, by hand, none risk: see by which rule volcano refuses it (volcano decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get pods -A -o wide | grep -i volcano  # then its log
`},
		"by what cards have": {refused.Ask, edittest.RefusedBy("hami-scheduler", "1 nodes CardInsufficientMemory(n)"), `Manual for "SchedulerRefused", 0 min, by hand, none risk: see what hami-scheduler has given out of each card (hami-scheduler decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get nodes -o custom-columns='NAME:.metadata.name,CARDS:.metadata.annotations.hami\.io/node-nvidia-register'
  kubectl get pods -A -o wide | grep -i hami-scheduler  # then its log
ChangeRequest for "SchedulerRefused", 0 min, by hand, medium risk: ask for a smaller share: less nvidia.com/gpumem or nvidia.com/gpucores (none asked is all of the card), or fewer cards, in deployment/w (hami-scheduler decides by its own rules, which are not run here)
  kubectl -n a edit deployment/w  # ask for less
`},
		"by how many share a card": {refused.Ask, func(w *edittest.World) {
			edittest.RefusedBy("hami-scheduler", "1 nodes CardTimeSlicingExhausted(n)")(w)
			add(t, &w.Nodes, `{metadata: {name: n1, annotations: {hami.io/node-nvidia-register: '[{"id":"GPU-1","count":2,"devmem":24576}]'}}}`)
		}, `Manual for "SchedulerRefused", 0 min, by hand, none risk: let more pods share a card (now 2 on n1): raise deviceSplitCount of HAMi's device plugin; a smaller share helps nothing (hami-scheduler decides by its own rules, which are not run here)
  kubectl get configmaps -A | grep -i hami  # hami-scheduler-device: nvidia.deviceSplitCount; hami-device-plugin: devicesplitcount of one node
  helm upgrade RELEASE hami-charts/hami -n NAMESPACE --reuse-values --set devicePlugin.deviceSplitCount=10  # where helm made it
  kubectl get daemonsets -A | grep -i hami  # then rollout restart its device plugin; pods that run stay
Manual for "SchedulerRefused", 0 min, by hand, none risk: see by which rule hami-scheduler refuses it (hami-scheduler decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get pods -A -o wide | grep -i hami-scheduler  # then its log
`},
		"by cards, and a group may grow": {func(c *edit.Workload) []edit.Change { return refused.Ask(c)[:1] }, func(w *edittest.World) {
			edittest.RefusedBy("hami-scheduler", "1 nodes CardInsufficientMemory(n)")(w)
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			groups(w, group("aks-gpu-1", "cloudProviderTarget: 1, maxSize: 3, nodeCounts: {registered: {total: 1, ready: 1}}", ""))
			add(t, &w.Nodes, "{metadata: {name: n, labels: {agentpool: gpu}}, spec: {providerID: 'azure:///s'}, status: {capacity: {nvidia.com/gpu: 10}, allocatable: {nvidia.com/gpu: 10}}}")
		}, `ScaleNodePool for "SchedulerRefused", 0 min, by hand, low risk: scale node group aks-gpu-1 up by one machine by hand: its machines could hold the pod, and it may have more
until node group aks-gpu-1 has a node more
  az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name gpu --update-cluster-autoscaler --min-count 2 --max-count 3
  kubectl -n a get pod w -w
`},
		"by a queue of KAI's": {refused.Ask, edittest.RefusedBy("kai-scheduler", quota), `Manual for "SchedulerRefused", 0 min, by hand, none risk: let its queue of kai-scheduler have more, or see who uses what it may have (kai-scheduler decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get queues.scheduling.run.ai -o yaml  # spec.resources.gpu: quota and limit; status: allocated
  kubectl -n a get podgroups.scheduling.run.ai -o yaml
ChangeRequest for "SchedulerRefused", 0 min, by hand, medium risk: ask for less than its queue may have, in deployment/w (kai-scheduler decides by its own rules, which are not run here)
  kubectl -n a edit deployment/w  # ask for less
`},
		"by a queue of others'": {refused.Ask, edittest.RefusedBy("mine", quota), `Manual for "SchedulerRefused", 0 min, by hand, none risk: let its queue of mine have more, or see who uses what it may have (mine decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl -n a get resourcequotas
ChangeRequest for "SchedulerRefused", 0 min, by hand, medium risk: ask for less than its queue may have, in deployment/w (mine decides by its own rules, which are not run here)
  kubectl -n a edit deployment/w  # ask for less
`},
		"by YuniKorn's": {refused.Ask, edittest.RefusedBy("my-yunikorn", quota), `Manual for "SchedulerRefused", 0 min, by hand, none risk: let its queue of my-yunikorn have more, or see who uses what it may have (my-yunikorn decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get configmap -A --field-selector metadata.name=yunikorn-configs -o yaml  # queues and their resources.max
ChangeRequest for "SchedulerRefused", 0 min, by hand, medium risk: ask for less than its queue may have, in deployment/w (my-yunikorn decides by its own rules, which are not run here)
  kubectl -n a edit deployment/w  # ask for less
`},
		"by Volcano's": {refused.Ask, edittest.RefusedBy("volcano", quota), `Manual for "SchedulerRefused", 0 min, by hand, none risk: let its queue of volcano have more, or see who uses what it may have (volcano decides by its own rules, which are not run here)
  kubectl -n a describe pod w
  kubectl get queues.scheduling.volcano.sh -o yaml  # spec.capability, deserved; status.allocated
  kubectl get podgroups.scheduling.volcano.sh -A  # Inqueue counts as used
ChangeRequest for "SchedulerRefused", 0 min, by hand, medium risk: ask for less than its queue may have, in deployment/w (volcano decides by its own rules, which are not run here)
  kubectl -n a edit deployment/w  # ask for less
`},
	})
}

// A workload whose members hold what its others need gives way as a whole; a Deployment in turn.
func TestDeadlocksAreBroken(t *testing.T) {
	run(t, map[string]row{
		"a Deployment's rollout": {outside.BreakDeadlock, func(*edittest.World) {}, `Manual for "WorkloadDeadlock", 0 min, by hand, medium risk: have the rollout of deployment/w stop an old pod before it makes a new one (a person decides whether it may serve with a pod less for a while)
  kubectl -n a patch deployment/w --type merge -p '{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'
`},
	})
	w := edittest.New()
	got := whole(outside.BreakDeadlock(edit.New(w.Case(t, "PyTorchJob"))))
	for _, part := range []string{"let the members of pytorchjob/w ask for no more CPU and memory together", "add a node for the members of pytorchjob/w that wait", "stop pytorchjob/w until there is room", "  kubectl -n a edit pytorchjob/w\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in\n%s", part, got)
		}
	}
}
