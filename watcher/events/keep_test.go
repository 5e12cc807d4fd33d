package events

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// event is one that is kept: of a Job whose pod was refused.
func event(namespace, name string, at time.Time) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(at)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, Name: "train", UID: "j"}, Reason: "FailedCreate", Type: "Warning",
		Message: "quota", Count: 3, Source: corev1.EventSource{Component: "job-controller"}, ReportingController: "job-controller", FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at)}
}

// heavy is the same with everything around it that a tenant can add.
func heavy(e *corev1.Event) *corev1.Event {
	e = e.DeepCopy()
	e.Annotations = map[string]string{"a": strings.Repeat("x", 250_000)}
	e.Labels = map[string]string{"l": "x"}
	e.OwnerReferences = []metav1.OwnerReference{{Name: "x"}}
	e.Finalizers = []string{"example.com/x"}
	e.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}}
	e.Source.Host, e.ReportingInstance, e.Action = strings.Repeat("h", 10_000), strings.Repeat("i", 10_000), strings.Repeat("a", 10_000)
	e.Related = &corev1.ObjectReference{Name: strings.Repeat("r", 10_000)}
	e.InvolvedObject.FieldPath, e.InvolvedObject.ResourceVersion = strings.Repeat("f", 10_000), "1"
	return e
}

func TestTrim(t *testing.T) {
	want := event("ml", "e", noon)
	if diff := cmp.Diff(want, Trim(heavy(want))); diff != "" {
		t.Error(diff)
	}
	long := heavy(want)
	long.Message = strings.Repeat("é", 100_000) // two bytes each: an odd limit would cut one in half
	got := Trim(long)
	if got.Message != strings.Repeat("é", maxMessage/2) || got.Size() > 2<<10 {
		t.Errorf("%d bytes are kept, %d of the message", got.Size(), len(got.Message))
	}
	long.Message = "x" + long.Message
	if got := Trim(long).Message; got != "x"+strings.Repeat("é", maxMessage/2-1) {
		t.Errorf("cut within a character: %q", got[len(got)-4:])
	}
}

func TestWanted(t *testing.T) {
	with := func(change func(*corev1.Event)) *corev1.Event {
		e := event("ml", "e", noon)
		change(e)
		return e
	}
	by := func(reason, reporter string) *corev1.Event {
		return with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.Source.Component = reason, reporter, ""
		})
	}
	long := strings.Repeat("x", maxWord+1)
	for name, c := range map[string]struct {
		e    *corev1.Event
		want bool
	}{
		"a refused pod":                     {event("ml", "e", noon), true},
		"by its source alone":               {with(func(e *corev1.Event) { e.ReportingController = "" }), true},
		"a pod that Volcano was refused":    {by("FailedCreate", "vc-controller-manager"), true},
		"a head that KubeRay was refused":   {by("FailedToCreateHeadPod", "raycluster-controller"), true},
		"a worker that KubeRay was refused": {by("FailedToCreateWorkerPod", "raycluster-controller"), true},
		"as if KubeRay's":                   {by("FailedToCreateWorkerPod", "evil"), false},
		"a Workload without a place":        {by("SecondPassFailed", "kueue-admission"), true},
		"a claim that is bound wrongly":     {by("ClaimMisbound", "persistentvolume-controller"), true},
		"a volume that is not made":         {by("ProvisioningFailed", "ebs.csi.aws.com_ebs-csi-controller-0_1f2e"), true},
		"a volume that is not there yet":    {by("FailedBinding", "persistentvolume-controller"), true},
		"a boot":                            {by("Rebooted", "kubelet"), true},
		"an image that was refused": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.InvolvedObject.Kind, e.Message = "Failed", "kubelet", "Pod", `Failed to pull image "x": 429 Too Many Requests`
		}), true},
		"that it will be tried again": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.InvolvedObject.Kind, e.Message = "Failed", "kubelet", "Pod", "Error: ImagePullBackOff"
		}), false},
		"what a driver's startup probe says": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.InvolvedObject.Kind, e.Message = "Unhealthy", "kubelet", "Pod", "Startup probe failed: No devices were found"
		}), true},
		"that nobody answers yet": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.InvolvedObject.Kind, e.Message = "Unhealthy", "kubelet", "Pod", "Startup probe failed: HTTP probe failed with statuscode: 503"
		}), false},
		"that a probe said nothing": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.InvolvedObject.Kind, e.Message = "Unhealthy", "kubelet", "Pod", "Startup probe failed: "
		}), false},
		"a probe of one that had started": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.InvolvedObject.Kind, e.Message = "Unhealthy", "kubelet", "Pod", "Readiness probe failed: No devices were found"
		}), false},
		"a Job that failed": {with(func(e *corev1.Event) {
			e.Reason, e.ReportingController, e.Message = "Failed", "kubelet", `Failed to pull image "x"`
		}), false},
		"by nobody":                         {by("FailedCreate", ""), false},
		"by somebody unknown":               {by("FailedCreate", "evil"), false},
		"of another reason":                 {by("SuccessfulCreate", "job-controller"), false},
		"a kubelet's":                       {by("FailedPrepareDynamicResources", "kubelet"), true},
		"as if a kubelet's":                 {by("FailedPrepareDynamicResources", "job-controller"), false},
		"a claim":                           {by("FailedResourceClaimCreation", "resource_claim"), true},
		"a sandbox that does not start":     {by("FailedCreatePodSandBox", "kubelet"), true},
		"as if one":                         {by("FailedCreatePodSandBox", "evil"), false},
		"a volume that is not there":        {by("FailedMount", "kubelet"), true},
		"a volume that is elsewhere":        {by("FailedAttachVolume", "attachdetach-controller"), true},
		"as if it were":                     {by("FailedAttachVolume", "kubelet"), false},
		"a driver's upgrade":                {by("GPUDriverUpgrade", "nvidia-gpu-operator"), true},
		"an autoscaler that helps":          {by("TriggeredScaleUp", "cluster-autoscaler"), true},
		"an autoscaler that does not":       {by("NotTriggerScaleUp", "cluster-autoscaler"), true},
		"one that GKE's could not":          {by("FailedScaleUp", "cluster-autoscaler"), true},
		"as if GKE's":                       {by("FailedScaleUp", "evil"), false},
		"a pod of an old TFJob's":           {by("FailedCreatePod", "tf-operator"), true},
		"a pod of an old PyTorchJob's":      {by("FailedCreatePod", "pytorch-operator"), true},
		"as if of a TFJob's":                {by("FailedCreatePod", "evil"), false},
		"a node to come":                    {by("Nominated", "karpenter"), true},
		"the default scheduler's no":        {by("FailedScheduling", "default-scheduler"), false},
		"another scheduler's no":            {by("FailedScheduling", "volcano"), true},
		"a scheduler's yes":                 {by("Scheduled", "volcano"), false},
		"a gang's no":                       {by("NotReady", "kai-scheduler"), true},
		"a reporter of no name that can be": {by("FailedScheduling", long), false},
		"about a name that no object has":   {with(func(e *corev1.Event) { e.InvolvedObject.Name = long }), false},
		"about a kind that is none":         {with(func(e *corev1.Event) { e.InvolvedObject.Kind = long }), false},
		"of a type that is none":            {with(func(e *corev1.Event) { e.Type = long }), false},
	} {
		if got := wanted(c.e); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
