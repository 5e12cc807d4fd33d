package world

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *conform) evictPreconditions(t *testing.T) {
	p := c.holder(t)
	uid, version := other, "1"
	conflict(t, "eviction of another uid", c.evict(t, p.Name, &metav1.Preconditions{UID: &uid}))
	conflict(t, "eviction of a stale version", c.evict(t, p.Name, &metav1.Preconditions{UID: &p.UID, ResourceVersion: &version}))
	is, err := c.pods().Get(t.Context(), p.Name, metav1.GetOptions{})
	same(t, p, is, err)
	if err := c.evict(t, p.Name, &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}); err != nil {
		t.Errorf("eviction of what it is: %v", err)
	}
	c.gone(t, p)
}

func (c *conform) gone(t *testing.T, p *corev1.Pod) {
	t.Helper()
	c.eventually(t, p.Name+" is gone", func() bool {
		is, err := c.pods().Get(t.Context(), p.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && is.UID != p.UID
	})
}

func (c *conform) evictBudget(t *testing.T) {
	p := c.holder(t)
	c.budget(t, "keep-holder", "holder", 1, 1)
	for _, dry := range [][]string{nil, {metav1.DryRunAll}} {
		err := c.evict(t, p.Name, &metav1.Preconditions{UID: &p.UID}, dry...)
		refusal(t, "eviction against a budget", err, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Details == nil {
			t.Fatalf("no details: %v", err)
		}
		want := []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget keep-holder needs 1 healthy pods and has 1 currently"}}
		if d := status.Status().Details; !slices.Equal(d.Causes, want) || d.RetryAfterSeconds != 0 {
			t.Errorf("details %+v, want the causes %+v", d, want)
		}
	}
	is, err := c.pods().Get(t.Context(), p.Name, metav1.GetOptions{})
	same(t, p, is, err)
}

func (c *conform) evictTwoBudgets(t *testing.T) {
	p := c.holder(t)
	c.budget(t, "one", "holder", 0, 1)
	c.budget(t, "two", "holder", 0, 1)
	if err := c.evict(t, p.Name, nil); !apierrors.IsInternalError(err) && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || err == nil {
		t.Errorf("eviction under two budgets: %v", err)
	} else if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != http.StatusInternalServerError {
		t.Errorf("eviction under two budgets: %v", err)
	}
	is, err := c.pods().Get(t.Context(), p.Name, metav1.GetOptions{})
	same(t, p, is, err)
}

func (c *conform) evictPending(t *testing.T) {
	p := c.idle(t)
	c.budget(t, "keep-idle", "idle", 1, 0)
	if err := c.evict(t, p.Name, &metav1.Preconditions{UID: &p.UID}); err != nil {
		t.Errorf("eviction of a pending pod: %v", err)
	}
	c.gone(t, p)
}

func (c *conform) evictReplicaSet(t *testing.T) {
	c.deployment(t, "inference", 2)
	var running []corev1.Pod
	counts := func() bool {
		list, err := c.pods().List(t.Context(), metav1.ListOptions{LabelSelector: "app=inference"})
		if err != nil {
			t.Fatal(err)
		}
		running = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil })
		return len(running) == 2
	}
	c.eventually(t, "two run", counts)
	before := slices.Clone(running)
	c.budget(t, "keep-one", "inference", 1, 2)
	if err := c.evict(t, before[0].Name, nil, metav1.DryRunAll); err != nil {
		t.Errorf("dry run of an allowed eviction: %v", err)
	}
	if err := c.evict(t, before[0].Name, &metav1.Preconditions{UID: &before[0].UID}); err != nil {
		t.Fatalf("an allowed eviction: %v", err)
	}
	// The first has used the budget up, whatever its controller has seen by then, until another runs in
	// its place.
	if err := c.evict(t, before[1].Name, nil); err != nil {
		refusal(t, "a second eviction", err, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	} else if counts(); !slices.ContainsFunc(running, func(p corev1.Pod) bool { return p.UID != before[0].UID && p.UID != before[1].UID }) {
		t.Error("a second eviction was allowed")
	}
	c.gone(t, &before[0])
	c.eventually(t, "two run again", counts)
	for _, p := range running {
		if p.Spec.NodeName != c.node || p.UID == before[0].UID {
			t.Errorf("pod %s, uid %s, on %q", p.Name, p.UID, p.Spec.NodeName)
		}
	}
}

func (c *conform) evictJob(t *testing.T) {
	c.job(t, "training")
	first := c.await(t, "the pod runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if err := c.evict(t, first.Name, &metav1.Preconditions{UID: &first.UID}); err != nil {
		t.Fatal(err)
	}
	second := c.await(t, "another pod runs", func(p *corev1.Pod) bool { return p.UID != first.UID && p.Status.Phase == corev1.PodRunning })
	if second.Spec.NodeName != c.node || metav1.GetControllerOf(second).Name != "training" {
		t.Errorf("pod on %q of %v", second.Spec.NodeName, second.OwnerReferences)
	}
}
