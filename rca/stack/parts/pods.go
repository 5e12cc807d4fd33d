package parts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// State is how far a pod is that is not Ready.
type State string

// The states of such a pod.
const (
	Starting State = "starting"
	Waiting  State = "waiting" // in an init container, for another part
	Failed   State = "failed"
)

// Look is what is the matter with a pod of the stack.
type Look struct {
	State State  // empty: it is Ready
	Where string // the container that it is about
	Words string // its own, in a sentence: of long ones what stands between is left out
	Whole string // the same as long as they are, to decide by
	Since time.Time
	Loops bool // it was started again and again
	Told  bool // the words are an Event's: nothing in the pod says so
	// Claims are what words are made from.
	Claims []diagnosis.Claim
}

// Text is the look in a few words.
func (l Look) Text() string {
	if l.State == "" {
		return "Ready"
	}
	return strings.TrimSpace(l.Where + " " + l.Words)
}

// failing are the reasons of a waiting container that do not pass by themselves soon.
var failing = []string{"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// maxWords is the length of a quotation in a sentence, and maxWhole of one to decide by, in characters.
const (
	maxWords = 160
	maxWhole = 4096 // the kubelet keeps as much of a container's end (pkg/kubelet/container, MaxContainerTerminationMessageLength)
)

// Look reads a pod's status: the first container that is not done or not ready is what the
// others wait for.
func (k *Kit) Look(p *corev1.Pod) Look {
	l := k.look(p, maxWords)
	if l.Whole = l.Words; l.State != "" {
		l.Whole = k.look(p, maxWhole).Words
	}
	return l
}

func (k *Kit) look(p *corev1.Pod, most int) Look {
	began := k.Begun(p)
	if p.Spec.NodeName == "" {
		words, claims := scheduled(p)
		return Look{State: Failed, Words: "not scheduled: " + quote(words, most), Since: p.CreationTimestamp.Time, Claims: append(claims, diagnosis.That("spec.nodeName", "", diagnosis.Absent, ""))}
	}
	for _, c := range p.Status.InitContainerStatuses {
		done := c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		sidecar := slices.ContainsFunc(p.Spec.InitContainers, func(i corev1.Container) bool {
			return i.Name == c.Name && i.RestartPolicy != nil && *i.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
		if done || sidecar && c.Started != nil && *c.Started {
			continue
		}
		return k.container(p, c, began, true, most)
	}
	for _, c := range p.Status.ContainerStatuses {
		if !c.Ready {
			return k.container(p, c, began, false, most)
		}
	}
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" { // its kubelet refused it
		return Look{State: Failed, Words: says(p.Status.Reason, p.Status.Message, most), Since: began, Claims: []diagnosis.Claim{diagnosis.That("status.reason", "", diagnosis.Is, p.Status.Reason), diagnosis.Says(p.Status.Message)}}
	}
	if len(p.Status.ContainerStatuses) == 0 && p.Status.Phase != corev1.PodRunning && !Ready(p) {
		if e := k.unstarted[p.Namespace+"/"+p.Name]; e != nil {
			return Look{State: Failed, Words: unstartedWords(e, most), Since: began, Told: true, Claims: []diagnosis.Claim{diagnosis.Says(unstartedSays(e))}}
		}
		return Look{State: Starting, Words: "its containers are not created yet", Since: began}
	}
	return Look{Since: ReadySince(p), Claims: []diagnosis.Claim{diagnosis.That("status.containerStatuses[*].ready", "", diagnosis.IsNot, "false")}}
}

// byBoots says whether a container has ended last before its pod was taken up, and was started again since because of that alone.
func byBoots(c corev1.ContainerStatus, began time.Time) bool {
	last := c.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.Time.Before(began)
}

func (k *Kit) container(p *corev1.Pod, c corev1.ContainerStatus, began time.Time, init bool, most int) Look {
	l := Look{State: Starting, Where: c.Name, Since: began, Loops: c.RestartCount > 2 && !byBoots(c, began), Claims: containerClaims(c, init)}
	switch now := c.State; {
	case now.Waiting != nil && slices.Contains(failing, now.Waiting.Reason):
		l.State, l.Words = Failed, says(now.Waiting.Reason, answered(now.Waiting.Message), most)
		if now.Waiting.Reason == "CrashLoopBackOff" {
			l.Words = now.Waiting.Reason
		}
		l.Loops = now.Waiting.Reason == "CrashLoopBackOff"
		if e := k.unpulled[p.Namespace+"/"+p.Name]; e != nil && unanswered(now.Waiting.Message) && strings.HasPrefix(e.Message, failedToPull+`"`+c.Image+`"`) {
			l.Words, l.Claims = says(now.Waiting.Reason, answered(e.Message), most), append(l.Claims, diagnosis.Says(answered(e.Message)))
		}
	case now.Waiting != nil:
		l.Words = says(cmp.Or(now.Waiting.Reason, "waiting"), now.Waiting.Message, most)
		if e := k.unstarted[p.Namespace+"/"+p.Name]; e != nil && !Said(e).Before(moved(p)) {
			l.State, l.Where, l.Words, l.Told, l.Claims = Failed, "", unstartedWords(e, most), true, []diagnosis.Claim{diagnosis.Says(unstartedSays(e))}
		}
	case now.Terminated != nil:
		l.State, l.Words = Failed, ended(*now.Terminated, most)
	case now.Running != nil:
		l.Since, l.Words = now.Running.StartedAt.Time, "running and not ready"
		if said := k.atStart(p, c); said != "" {
			l.Words, l.Claims = l.Words+", its startup probe says: "+quote(said, most), append(l.Claims, diagnosis.Says(said))
		}
		if init {
			l.State, l.Words = Waiting, "running"
		}
	}
	if last := c.LastTerminationState.Terminated; last != nil && (l.State != Starting || l.Loops) {
		l.Words += fmt.Sprintf(" (%d restarts; last %s)", c.RestartCount, ended(*last, most))
	}
	return l
}

// moved is when a container of the pod last started or ended: what kept it from that before
// is over. Zero: none ever has.
func moved(p *corev1.Pod) time.Time {
	var last time.Time
	note := func(t metav1.Time) {
		if t.After(last) {
			last = t.Time
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		for _, s := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if s.Running != nil {
				note(s.Running.StartedAt)
			}
			if s.Terminated != nil {
				note(s.Terminated.FinishedAt)
			}
		}
	}
	return last
}

func ended(t corev1.ContainerStateTerminated, most int) string {
	return says(fmt.Sprintf("exit %d", t.ExitCode), inner(t.Message), most)
}

// inner is what a container's end was about, where a runtime tells it: what its hook said last, without the words of
// the calls that that came through.
func inner(message string) string {
	if !strings.Contains(message, "OCI runtime create failed") {
		return message
	}
	_, hook, found := strings.Cut(message, "stderr: ")
	if !found {
		return message
	}
	lines := strings.Split(strings.TrimSpace(hook), "\n")
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "nvidia-container-cli: ") }); i >= 0 {
		return lines[i] // what comes behind may be a log of what it tried
	}
	return lines[len(lines)-1]
}

// quote is text of others within so many characters: who speaks stands first, and why last.
// Of a longer one whole words between are left out: a part of a number is another number.
func quote(message string, most int) string {
	r := []rune(view.Quotable(message, maxWhole))
	if len(r) <= most {
		return string(r)
	}
	head, tail := string(r[:most/3]), string(r[len(r)-(most-most/3-3):])
	if i := strings.LastIndexByte(head, ' '); i > 0 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, ' '); i >= 0 && i < len(tail)/2 {
		tail = tail[i+1:]
	}
	return head + " … " + tail
}

// says is a reason with its message.
func says(reason, message string, most int) string {
	if message = quote(message, most); message == "" {
		return reason
	}
	return reason + ": " + message
}

func scheduled(p *corev1.Pod) (words string, claims []diagnosis.Claim) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			return c.Message, []diagnosis.Claim{diagnosis.That("status.conditions[type=PodScheduled].message", "", diagnosis.Is, c.Message)}
		}
	}
	return "the scheduler has not spoken", nil
}

// Ready says whether a pod's own condition does.
func Ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// ReadySince is when a pod became ready; when it began where that is not told.
func ReadySince(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// unstartedWords are the kubelet's own, or its runtime's, without those of the calls that
// they came through.
func unstartedWords(e *corev1.Event, most int) string {
	return e.Reason + ": " + quote(unstartedSays(e), most)
}

func unstartedSays(e *corev1.Event) string {
	says := e.Message
	if i := strings.LastIndex(says, "desc = "); i >= 0 {
		says = says[i+len("desc = "):]
	}
	if _, exec, found := strings.Cut(says, `: exec: "`); found && strings.Contains(says, "OCI runtime create failed") { // what was not to be run
		return `exec: "` + exec
	}
	return says
}
