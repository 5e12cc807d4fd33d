package incident

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// The kubelet's event has a pod wait that has its node, a claim and no sandbox; no
// other pod, and no event of anybody else's.
func TestWhoseDevicesAreNotPreparedWaits(t *testing.T) {
	rebooted := func(p *corev1.Pod, e *corev1.Event, after time.Duration) {
		p.Status.Phase, p.Status.Conditions[1].LastTransitionTime = corev1.PodRunning, metav1.NewTime(Seen(e).Add(after))
	}
	for name, c := range map[string]struct {
		edit  func(p *corev1.Pod, e *corev1.Event)
		waits bool
	}{
		"as it is":                {func(*corev1.Pod, *corev1.Event) {}, true},
		"a dump without a source": {func(_ *corev1.Pod, e *corev1.Event) { e.Source = corev1.EventSource{} }, true},
		"a dump without uids":     {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.UID = "" }, true},
		"the new API's event": {func(_ *corev1.Pod, e *corev1.Event) {
			e.Source, e.ReportingController = corev1.EventSource{}, "kubelet"
		}, true},
		"an extended resource": {func(p *corev1.Pod, _ *corev1.Event) {
			p.Spec.ResourceClaims, p.Status.ExtendedResourceClaimStatus = nil, &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}
		}, true},
		"without conditions": {func(p *corev1.Pod, _ *corev1.Event) { p.Status.Conditions = nil }, true},
		"it runs": {func(p *corev1.Pod, _ *corev1.Event) {
			p.Status.Phase, p.Status.Conditions[1].Status = corev1.PodRunning, corev1.ConditionTrue
		}, false},
		"it ran before a boot":          {func(p *corev1.Pod, e *corev1.Event) { rebooted(p, e, -time.Minute) }, true},
		"that was said before the boot": {func(p *corev1.Pod, e *corev1.Event) { rebooted(p, e, time.Minute) }, false},
		"a container of it runs": {func(p *corev1.Pod, e *corev1.Event) {
			rebooted(p, e, -time.Minute)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, false},
		"it has a sandbox": {func(p *corev1.Pod, _ *corev1.Event) { p.Status.Conditions[1].Status = corev1.ConditionTrue }, false},
		"it is being deleted": {func(p *corev1.Pod, _ *corev1.Event) {
			at := metav1.NewTime(incidenttest.Start)
			p.DeletionTimestamp = &at
		}, false},
		"no claims":                 {func(p *corev1.Pod, _ *corev1.Event) { p.Spec.ResourceClaims = nil }, false},
		"another reason":            {func(_ *corev1.Pod, e *corev1.Event) { e.Reason = "BackOff" }, false},
		"what is no pod":            {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.Kind = "ResourceClaim" }, false},
		"another pod of its name":   {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.UID = "former" }, false},
		"another pod":               {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.Name = "other" }, false},
		"another namespace":         {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.Namespace = "other" }, false},
		"somebody else's words":     {func(_ *corev1.Pod, e *corev1.Event) { e.Source.Component = "chaos" }, false},
		"it waits for a node again": {func(p *corev1.Pod, _ *corev1.Event) { p.Spec.NodeName = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := incidenttest.StartingPod("train")
			e := incidenttest.UnpreparedEvent(p)
			c.edit(p, e)
			before := p.DeepCopy()
			got := Group(WithKubelet([]*corev1.Pod{p}, []*corev1.Event{e}, time.Time{}), incidenttest.Owners{}.Find)
			if !reflect.DeepEqual(p, before) {
				t.Errorf("the pod given was changed: %+v", p)
			}
			if len(got) != 0 != c.waits {
				t.Fatalf("incidents %+v", got)
			}
			if c.waits && p.Spec.NodeName != "" && (got[0].Waiting != 1 || !reflect.DeepEqual(got[0].Pods, []PodRef{{"train", "u-train", FailedPrepare}}) || !got[0].Since.Equal(incidenttest.Start)) {
				t.Errorf("got %+v", got[0])
			}
		})
	}
}

// What a kubelet says of sandboxes and volumes passes by itself on a node that has just come: who asks for devices
// waits when it is still said two minutes after it was given the node, and for the word that says most.
func TestWhoIsNotBegunWaits(t *testing.T) {
	const (
		attach = "Multi-Attach error for volume \"v\""
		mount  = "MountVolume.SetUp failed for volume \"v\" : no"
		late   = "Unable to attach or mount volumes: unmounted volumes=[v]: timed out waiting for the condition"
	)
	type said struct {
		after             time.Duration
		reason, by, words string
	}
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	for name, c := range map[string]struct {
		asks   corev1.ResourceList
		events []said
		want   string // reason and words; empty: it does not wait
	}{
		"a sandbox":                      {gpu, []said{{2 * time.Minute, FailedSandbox, "kubelet", "no runtime"}}, "FailedCreatePodSandBox no runtime"},
		"a sandbox a moment before":      {gpu, []said{{2*time.Minute - 1, FailedSandbox, "kubelet", "no runtime"}}, ""},
		"somebody else's sandbox":        {gpu, []said{{time.Hour, FailedSandbox, "chaos", "no runtime"}}, ""},
		"no GPU":                         {corev1.ResourceList{"cpu": resource.MustParse("1")}, []said{{time.Hour, FailedSandbox, "kubelet", "no runtime"}}, ""},
		"no GPU any more":                {corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}, []said{{time.Hour, FailedSandbox, "kubelet", "no runtime"}}, ""},
		"a resource of Kubernetes' own":  {corev1.ResourceList{"x.kubernetes.io/y": resource.MustParse("1")}, []said{{time.Hour, FailedSandbox, "kubelet", "no runtime"}}, ""},
		"a volume":                       {gpu, []said{{time.Hour, FailedMount, "kubelet", mount}}, "FailedMount " + mount},
		"attached elsewhere, and late":   {gpu, []said{{0, FailedAttach, "attachdetach-controller", attach}, {2 * time.Minute, FailedMount, "kubelet", late}}, "FailedAttachVolume " + attach},
		"attached elsewhere a while ago": {gpu, []said{{0, FailedAttach, "attachdetach-controller", attach}, {time.Minute, FailedMount, "kubelet", late}}, ""},
		"why before that it was late":    {gpu, []said{{time.Minute, FailedMount, "kubelet", mount}, {time.Hour, FailedMount, "kubelet", late}}, "FailedMount " + mount},
		"that it was late alone":         {gpu, []said{{time.Minute, FailedSandbox, "kubelet", "no"}, {time.Hour, FailedMount, "kubelet", late}}, "FailedMount " + late},
		"the volume came":                {gpu, []said{{time.Minute, FailedAttach, "attachdetach-controller", attach}, {time.Hour, FailedSandbox, "kubelet", "no"}}, "FailedCreatePodSandBox no"},
		"another volume since":           {gpu, []said{{0, FailedAttach, "attachdetach-controller", attach}, {time.Hour, FailedMount, "kubelet", mount}}, "FailedMount " + mount},
		"attached by a kubelet":          {gpu, []said{{time.Hour, FailedAttach, "kubelet", attach}}, ""},
		"devices, at once":               {gpu, []said{{0, FailedPrepare, "kubelet", "no"}}, "FailedPrepareDynamicResources no"},
		"nobody says anything":           {gpu, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := incidenttest.StartingPod("train")
			p.Spec.ResourceClaims, p.Spec.Containers[0].Resources.Limits = nil, c.asks
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(incidenttest.Start.Add(time.Minute))
			var events []*corev1.Event
			for _, s := range c.events {
				e := incidenttest.UnpreparedEvent(p)
				e.Reason, e.Source.Component, e.Message, e.LastTimestamp = s.reason, s.by, s.words, metav1.NewTime(incidenttest.Start.Add(time.Minute+s.after))
				events = append(events, e)
			}
			reason, says := Hindrance(WithKubelet([]*corev1.Pod{p}, events, time.Time{})[0])
			if got := strings.TrimSpace(reason + " " + says); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := len(Group(WithKubelet([]*corev1.Pod{p}, events, time.Time{}), incidenttest.Owners{}.Find)); got != 0 != (c.want != "") {
				t.Errorf("%d incidents", got)
			}
		})
	}
}

// When the pod was given its node its condition says, else when it was made; words without a time are as old as need be.
func TestSinceWhenAPodHasItsNode(t *testing.T) {
	late := metav1.NewTime(incidenttest.Start.Add(time.Hour))
	for name, c := range map[string]struct {
		placed corev1.PodCondition
		said   metav1.Time
		waits  bool
	}{
		"long before":           {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(incidenttest.Start)}, late, true},
		"a moment before":       {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: late}, late, false},
		"no time in it":         {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, late, true},
		"another condition":     {corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: late}, late, true},
		"it was refused before": {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: late}, late, true},
		"words without a time":  {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: late}, metav1.Time{}, true},
	} {
		p := incidenttest.StartingPod("train")
		p.Status.Conditions[0] = c.placed
		e := incidenttest.UnpreparedEvent(p)
		e.Reason, e.LastTimestamp = FailedSandbox, c.said
		if got, _ := Hindrance(WithKubelet([]*corev1.Pod{p}, []*corev1.Event{e}, time.Time{})[0]); got == FailedSandbox != c.waits {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// These are the reasons of pods that have their node, and no others are.
func TestUnstarted(t *testing.T) {
	for reason, want := range map[string]bool{FailedPrepare: true, FailedSandbox: true, FailedMount: true, FailedAttach: true, FailedContainer: true, FailedRun: true, "StartError": true, "ContainerCannotRun": true, "Unschedulable": false, "NoCondition": false, FailedCreate: false, "": false} {
		if Unstarted(reason) != want {
			t.Error(reason)
		}
	}
}

// A container that the runtime cannot make has its pod wait, though its sandbox is there; one that
// ran, or whose image does not come, does not.
func TestWhoseContainerIsNotMadeWaits(t *testing.T) {
	for reason, waits := range map[string]bool{FailedContainer: true, FailedRun: true, "ImagePullBackOff": false, "CrashLoopBackOff": false, "ContainerCreating": false} {
		for _, gpu := range []bool{true, false} {
			p := incidenttest.StartingPod("train")
			p.Spec.ResourceClaims, p.Status.Conditions[1].Status = nil, corev1.ConditionTrue
			if gpu {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
			}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "side"}, {Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no CDI"}}}}
			got, _, ok := Waiting(p)
			if want := waits && gpu; ok != want || ok && got != reason {
				t.Errorf("%s, GPU %v: waits %v for %q", reason, gpu, ok, got)
			}
		}
	}
}

// A pod counts as Running once a container was tried, or ran before a boot: it waits while the one that asks for devices is not
// begun. One that crashes was begun, and one that asks for none is no matter of devices.
func TestWhoCountsAsRunningAndIsNotBegunWaits(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "says so"}}
	}
	ended := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: 128, Message: "no such file"}}
	}
	for name, c := range map[string]struct {
		status      corev1.ContainerStatus
		reason, why string // empty: it does not wait
	}{
		"not made again after a boot": {corev1.ContainerStatus{Name: "main", State: waiting(FailedContainer), LastTerminationState: ended("Unknown")}, FailedContainer, "says so"},
		"tried, and backed off":       {corev1.ContainerStatus{Name: "main", RestartCount: 1, State: waiting("CrashLoopBackOff"), LastTerminationState: ended("StartError")}, "StartError", "no such file"},
		"tried just now":              {corev1.ContainerStatus{Name: "main", State: ended("ContainerCannotRun")}, "ContainerCannotRun", "no such file"},
		"it crashes":                  {corev1.ContainerStatus{Name: "main", RestartCount: 9, State: waiting("CrashLoopBackOff"), LastTerminationState: ended("Error")}, "", ""},
		"it runs":                     {corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: ended("StartError")}, "", ""},
		"its image does not come":     {corev1.ContainerStatus{Name: "main", State: waiting("ImagePullBackOff"), LastTerminationState: ended("StartError")}, "", ""},
		"one without devices":         {corev1.ContainerStatus{Name: "side", State: waiting(FailedRun)}, "", ""},
	} {
		p := incidenttest.StartingPod("train")
		p.Spec.ResourceClaims, p.Status.Phase = nil, corev1.PodRunning
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side"})
		p.Status.ContainerStatuses = []corev1.ContainerStatus{c.status}
		reason, _, waits := Waiting(p)
		if waits != (c.reason != "") || reason != c.reason {
			t.Errorf("%s: waits %v for %q", name, waits, reason)
		}
		if c.reason == "" {
			continue
		}
		if why, says := Hindrance(p); why != c.reason || says != c.why {
			t.Errorf("%s: %q %q", name, why, says)
		}
		p.Status.Phase = corev1.PodFailed
		if _, _, waits := Waiting(p); waits {
			t.Errorf("%s: it waits though it has failed", name)
		}
	}
}

// A kubelet notes at once that it has seen a pod. One that it was given ten minutes ago without that waits, and says so; a pod that
// it has begun with, one without devices, and all of them where no time is known, do not.
func TestWhomNoKubeletTakesUpWaits(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*corev1.Pod)
		after time.Duration
		waits bool
	}{
		"long ago":       {func(*corev1.Pod) {}, takes, true},
		"just now":       {func(*corev1.Pod) {}, takes - time.Second, false},
		"it is begun":    {func(p *corev1.Pod) { p.Status.StartTime = new(p.CreationTimestamp) }, takes, false},
		"a container is": {func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}} }, takes, false},
		"no devices":     {func(p *corev1.Pod) { p.Spec.ResourceClaims = nil }, takes, false},
		"no node":        {func(p *corev1.Pod) { p.Spec.NodeName = "" }, takes, true}, // for its own reason
		"it runs":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning; p.Status.Conditions = nil }, takes, false},
	} {
		p := incidenttest.StartingPod("train")
		c.edit(p)
		got := WithKubelet([]*corev1.Pod{p}, nil, placed(p).Add(c.after))[0]
		reason, since, waits := Waiting(got)
		if waits != c.waits || waits && p.Spec.NodeName != "" && (reason != Untaken || !Unstarted(reason) || !since.Equal(p.CreationTimestamp.Time)) {
			t.Errorf("%s: waits %t for %q since %s", name, waits, reason, since)
		}
		if WithKubelet([]*corev1.Pod{p}, nil, time.Time{})[0] != p {
			t.Errorf("%s: another pod where no time is known", name)
		}
	}
}
