package whatif

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// draManager is the scheduler's own, with pending allocations that a fork can
// take back.
type draManager struct {
	fwk.SharedDRAManager
	claims *claimTracker
}

// ResourceClaims returns the tracker (fwk.SharedDRAManager).
func (m *draManager) ResourceClaims() fwk.ResourceClaimTracker { return m.claims }

// claimTracker remembers what the plugin's Reserve set aside: a claim made for
// extended resources has a uid that is told nowhere else.
type claimTracker struct {
	fwk.ResourceClaimTracker
	pending []types.UID
}

// SignalClaimPendingAllocation is the scheduler's, noted.
func (t *claimTracker) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	err := t.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
	if err == nil {
		t.pending = append(t.pending, uid)
	}
	return err
}

// trackable gives claims what the scheduler's cache tells them apart by: dumps
// written by hand have neither uids nor versions.
func trackable(others []runtime.Object) []runtime.Object {
	out := slices.Clone(others)
	for i, o := range out {
		claim, ok := o.(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		_, err := strconv.ParseInt(claim.ResourceVersion, 10, 64)
		if err == nil && claim.UID != "" {
			continue
		}
		claim = claim.DeepCopy()
		if err != nil {
			claim.ResourceVersion = "1"
		}
		if claim.UID == "" {
			claim.UID = types.UID("claim/" + key(claim.Namespace, claim.Name))
		}
		out[i] = claim
	}
	return out
}

// consumers lists the claims that are reserved for each pod.
func consumers(others []runtime.Object) map[string][]string {
	out := map[string][]string{}
	for _, o := range others {
		claim, ok := o.(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		for _, r := range claim.Status.ReservedFor {
			if r.APIGroup == "" && r.Resource == "pods" {
				k := key(claim.Namespace, r.Name)
				out[k] = append(out[k], claim.Name)
			}
		}
	}
	return out
}

// SetClaim replaces a claim of the same name in a fork: its spec, or what is
// allocated to it. It fails where there is no such claim.
func (s *Snapshot) SetClaim(claim *resourcev1.ResourceClaim) error {
	tracker := s.plugins.claims
	old, err := tracker.Get(claim.Namespace, claim.Name)
	if err != nil {
		return fmt.Errorf("set claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	claim = claim.DeepCopy()
	claim.UID, claim.ResourceVersion = old.UID, old.ResourceVersion
	if err := tracker.AssumeClaimAfterAPICall(claim); err != nil {
		return fmt.Errorf("set claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	// The cache takes an object of the same version back.
	s.remember(func() { _ = tracker.AssumeClaimAfterAPICall(old) })
	return nil
}

// release takes the pod off the claims it uses. What nobody else uses is
// deallocated, as the resource claim controller does (resourceclaim/controller.go,
// syncClaim, 1.32 and later).
func (s *Snapshot) release(namespace, pod string) {
	for _, name := range s.consumers[key(namespace, pod)] {
		claim, err := s.plugins.claims.Get(namespace, name)
		if err != nil {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.APIGroup == "" && r.Resource == "pods" && r.Name == pod
		})
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation, claim.Status.Devices = nil, nil
		}
		_ = s.SetClaim(claim) // it was there a moment ago
	}
}

// FreeDevices deallocates every claim of a fork: what a pod is refused then is
// not refused because of others.
func (s *Snapshot) FreeDevices() error {
	claims, err := s.plugins.claims.List()
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status = resourcev1.ResourceClaimStatus{}
		if err := s.SetClaim(claim); err != nil {
			return err
		}
	}
	return nil
}

// AllowedBy names those of the nodes on which one plugin accepts the pod,
// whatever the others say.
func (s *Snapshot) AllowedBy(ctx context.Context, plugin string, pod *corev1.Pod, nodes []string) ([]string, error) {
	pod = waiting(pod)
	one := *s.plugins
	one.filters = slices.DeleteFunc(slices.Clone(one.filters), func(f fwk.FilterPlugin) bool { return f.Name() != plugin })
	one.preOnly = nil
	p := s.prepareBy(ctx, &one, pod, false)
	if len(p.blockers) > 0 {
		return nil, ctx.Err()
	}
	var out []string
	for _, name := range nodes {
		if info, err := s.lister.Get(name); err == nil && p.accepts(ctx, pod, info) {
			out = append(out, name)
		}
	}
	return out, ctx.Err()
}

// reserve sets aside the devices that Filter found for the pod.
func (s *Snapshot) reserve(ctx context.Context, p pass, pod *corev1.Pod, node string) error {
	if s.plugins.dra == nil {
		return nil
	}
	tracker := s.plugins.claims
	tracker.pending = nil
	if status := s.plugins.dra.Reserve(ctx, p.state, pod, node); !status.IsSuccess() {
		return fmt.Errorf("reserve devices for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	for _, uid := range tracker.pending {
		s.remember(func() { tracker.MaybeRemoveClaimPendingAllocation(uid, true) })
	}
	return nil
}
