package guard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// BreakerConfigMap keeps the state of the breaker, in unpend's own namespace.
const BreakerConfigMap = "unpend-breaker"

// BreakerState is the breaker as it is recorded. It is opened by Tripped and closed
// by a person, never by time.
type BreakerState struct {
	Open    bool
	Since   time.Time // when it opened
	Why     string
	ResetAt time.Time // when a person last closed it: what was before no longer counts
}

// The keys of the ConfigMap.
const (
	keyOpen    = "open"
	keySince   = "since"
	keyWhy     = "why"
	keyResetAt = "resetAt"
)

// ReadBreaker reads the ConfigMap's data. One that has never been written is closed.
// One that cannot be read is open, and the error says what is wrong with it: what
// stopped everything must not be lost by a slip.
func ReadBreaker(data map[string]string) (BreakerState, error) {
	var s BreakerState
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		var err error
		switch text := strings.TrimSpace(data[key]); {
		case key == keyWhy:
			s.Why = data[key]
		case text == "":
		case key == keyOpen:
			s.Open, err = strconv.ParseBool(text)
		case key == keySince:
			s.Since, err = time.Parse(time.RFC3339Nano, text)
		case key == keyResetAt:
			s.ResetAt, err = time.Parse(time.RFC3339Nano, text)
		default:
			err = errors.New("no such key is known")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s is %q: %w", key, data[key], err))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		err = fmt.Errorf("read ConfigMap %s: %w", BreakerConfigMap, err)
		return BreakerState{Open: true, Since: s.Since, Why: err.Error(), ResetAt: s.ResetAt}, err
	}
	return s, nil
}

// Data is the state as the ConfigMap holds it.
func (s BreakerState) Data() map[string]string {
	out := map[string]string{keyOpen: strconv.FormatBool(s.Open), keySince: "", keyWhy: s.Why, keyResetAt: ""}
	if !s.Since.IsZero() {
		out[keySince] = s.Since.UTC().Format(time.RFC3339Nano)
	}
	if !s.ResetAt.IsZero() {
		out[keyResetAt] = s.ResetAt.UTC().Format(time.RFC3339Nano)
	}
	return out
}

// ResetCommand is what a person types to close the breaker of unpend in a namespace;
// without one, that of the person's kubeconfig.
func ResetCommand(namespace string) string {
	const command = `kubectl patch configmap ` + BreakerConfigMap +
		` --type merge -p "{\"data\":{\"open\":\"false\",\"since\":\"\",\"why\":\"\",\"resetAt\":\"$(date -u +%FT%TZ)\"}}"`
	if namespace == "" {
		return command
	}
	return command + " -n " + namespace
}

// Tripped says whether the breaker has to open, and why: too many GPU nodes went out
// of use of late, or too many plans failed. What was before the last reset does not
// count: a person has looked at it.
func (l Limits) Tripped(v View, resetAt time.Time) (why string, open bool) {
	late := func(t time.Time, window time.Duration) bool { return t.After(resetAt) && within(v.Now, t, window) }
	size := 0
	var lost []string
	for _, n := range v.Nodes {
		if !gpuNode(n) {
			continue
		}
		size++
		if slices.ContainsFunc([]time.Time{notReadySince(n), cordonedSince(n)}, func(t time.Time) bool { return late(t, l.Breaker.Window) }) {
			lost = append(lost, n.Name)
		}
	}
	if len(lost) >= l.Breaker.AtLeast && len(lost)*100 > l.Breaker.Percent*size {
		slices.Sort(lost)
		return fmt.Sprintf("%d of %d GPU nodes were cordoned or became not Ready within %s (%s), the limit is %d %%",
			len(lost), size, short(l.Breaker.Window), few(lost), l.Breaker.Percent), true
	}
	var failed []string
	for i := range v.Plans {
		r := &v.Plans[i]
		if (r.Status.Phase == v1alpha1.Failed || r.Status.Phase == v1alpha1.Parked) && late(endedAt(r), l.Breaker.FailureWindow) {
			failed = append(failed, Called(r))
		}
	}
	if len(failed) >= l.Breaker.Failures {
		slices.Sort(failed)
		return fmt.Sprintf("%d plans failed within %s (%s), the limit is %d", len(failed), short(l.Breaker.FailureWindow), few(failed), l.Breaker.Failures), true
	}
	return "", false
}

// notReadySince is when a node became not Ready; zero when it is Ready, or never has
// been: nodes that are being added are no accident. The kubelet registers a node
// with its first conditions, so these are not younger than the node.
func notReadySince(n *corev1.Node) time.Time {
	ready := readyOf(n)
	if ready == nil || ready.Status == corev1.ConditionTrue || !ready.LastTransitionTime.After(n.CreationTimestamp.Time) {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// cordonedSince is when somebody else cordoned a node; zero when nobody did, or when
// that cannot be told. A cordon without a time does not count: it would trip the
// breaker again after every reset, and the limit on the pool holds it against every
// plan anyway.
func cordonedSince(n *corev1.Node) time.Time {
	if op, err := mark(n); !n.Spec.Unschedulable || err == nil && op != nil {
		return time.Time{}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.Time // by the node lifecycle controller, within a second
		}
	}
	var last time.Time
	for _, f := range n.ManagedFields {
		if f.Time != nil && f.Time.After(last) && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:unschedulable"`) {
			last = f.Time.Time
		}
	}
	return last
}
