package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A workload whose owner is gone is told by the owner's name, and changed by hand:
// nobody can patch what is not there.
func TestAWorkloadWhoseOwnerIsGone(t *testing.T) {
	node := all1g("gpu-1")
	node.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	c := told{nodes: []sim.Node{node}, ask: "nvidia.com/mig-1g.5gb", count: 1, edit: func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicaSet", Name: "gone-5f6d", UID: "uid-gone-5f6d", Controller: new(true)}}
	}}
	path := dumpOf(t, c)
	d := why(t, "-f", path)
	if d.Workload.Kind != "ReplicaSet" || d.Workload.Name != "gone-5f6d" || d.Causes[0].ID != diagnosis.UntoleratedTaint || d.Causes[0].Certainty != diagnosis.Proven {
		t.Errorf("workload %+v, cause %+v", d.Workload, d.Causes[0])
	}
	f := d.Fixes[0]
	if f.Kind != diagnosis.AddToleration || f.Automatic || len(f.Actions) != 0 || !strings.Contains(strings.Join(f.Commands, "\n"), "patch replicaset/gone-5f6d") || f.Proof.Verdict != diagnosis.Schedules {
		t.Errorf("first fix %+v", f)
	}
	if code, out, errs := call(t, "why", "-f", path); code != 0 || !strings.Contains(out, "demo/gone-5f6d (ReplicaSet)") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// hostile are names that no API server takes and any dump may have: emoji, marks that
// turn the direction of text, invisible characters, escapes, mentions, and length.
var hostile = []string{
	"🦄\u200d🔥-train", "abc\u202egpj.exe", "zero\u200bwidth\ufeff", "<!channel>", "\x1b]0;owned\x07\x1b[31mred", "line\nbreak\r\t", "\u2066isolate\u2069\u200f", "tag\U000e0041s",
	"\u0085\u2028\u2029", strings.Repeat("very-long-", 60), "*bold*_`code`_<@U123>", "\xff\xfe",
}

// shown says what of a text must never reach a terminal from an object's name.
func shown(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.In(r, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner)
}

// No name, label, annotation or event brings a control or a turned text to the terminal,
// and the headline stays within 80 characters.
func TestHostileNamesAreShownHarmless(t *testing.T) {
	for i, evil := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			path := hostileDump(t, evil)
			d := why(t, "-f", path)
			if n := utf8.RuneCountInString(d.Headline); n == 0 || n > 80 || strings.ContainsFunc(d.Headline, func(r rune) bool { return shown(r) || r == '\n' }) {
				t.Errorf("headline of %d: %q", n, d.Headline)
			}
			commands := [][]string{{"why", "-f", path}, {"why", "-f", path, "-o", "wide"}, {"why", "-f", path, "-o", "name"}, {"incidents", "-f", path}, {"capacity", "nvidia.com/mig-2g.10gb=1", "-f", path},
				{"why", "pod/nobody", "-f", path}, {"why", evil, "-f", path}, {"why", "-n", evil, "-f", path}}
			for _, args := range commands {
				_, out, errs := call(t, args...)
				for name, text := range map[string]string{"stdout": out, "stderr": errs} {
					if at := strings.IndexFunc(text, shown); at >= 0 {
						t.Errorf("%q: %s has %q in %q", args[:1], name, text[at:min(len(text), at+8)], text)
					}
					if !utf8.ValidString(text) {
						t.Errorf("%q: %s is no UTF-8", args[:1], name)
					}
				}
			}
		})
	}
}

// hostileDump has the text wherever a person could write one.
func hostileDump(t *testing.T, evil string) string {
	t.Helper()
	node := all1g("gpu-" + evil)
	node.Labels = map[string]string{"pool": evil}
	node.Taints = []corev1.Taint{{Key: "team", Value: evil, Effect: corev1.TaintEffectNoSchedule}}
	event := &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "demo", Name: "waiting" + evil}, Reason: "NotTriggerScaleUp", Message: evil, ReportingController: "cluster-autoscaler"}
	return dumpOf(t, told{nodes: []sim.Node{node}, held: map[string][]sim.Placed{node.Name: sim.All(a100, "1g.5gb")[:2]}, ask: "nvidia.com/mig-2g.10gb", count: 1, extra: []any{event}, edit: func(p *corev1.Pod) {
		p.Name += evil
		p.Labels, p.Annotations = map[string]string{"app": evil}, map[string]string{"note": evil}
		p.Spec.NodeSelector = map[string]string{"pool": evil + "!"}
		p.Status.Conditions[0].Message = evil
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/" + evil}}
	}})
}

// Claims that the dump does not hold are not read, which proves nothing of them.
func TestClaimsLeftOutAreUnread(t *testing.T) {
	d := why(t, "-f", dumpOf(t, told{nodes: []sim.Node{all1g("gpu-1")}, ask: "nvidia.com/mig-1g.5gb", count: 1, edit: func(p *corev1.Pod) {
		name := "big-gpu"
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	}}))
	if slices.ContainsFunc(d.Causes, func(c diagnosis.Cause) bool { return c.ID == diagnosis.DRAClaimMissing }) || d.Causes[0].Certainty == diagnosis.Proven {
		t.Errorf("causes %+v", d.Causes)
	}
	if !slices.ContainsFunc(d.Unread, func(u string) bool { return strings.HasPrefix(u, "ResourceClaim: ") }) {
		t.Errorf("unread %q", d.Unread)
	}
}
