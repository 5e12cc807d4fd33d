package admission

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Unsettled tells the refusals that no cause of the catalogue is about (a webhook, a class that
// is missing, Pod Security), and those that no object read here explains: a quota that has room
// again, something that was not read. They are told in the API server's words; words are those
// of a headline.
func (c *Refused) Unsettled() (f *view.Finding, words string) {
	text := view.Cut(strings.Join(strings.Fields(c.Says()), " "), 200)
	if c.PolicySays() != "" { // what a policy minds stands at the end
		text = view.Cut(strings.Join(strings.Fields(c.Says()), " "), mostOfPolicy)
	}
	says, words := "the API server refused its pods, and nothing that was read says why; ruled out: "+c.ruledOut(), "the API server refuses its pods"
	if text == "" {
		says, words = "its pods are not made, and nothing that was read says why; ruled out: "+c.ruledOut(), "its pods are not made"
	}
	if c.All[0].Unheard {
		says, words = "nobody has acted on it since it was made: it has no status and no pods, as where the operator of its kind does not run", "nobody has acted on it"
	}
	certainty, evidence := diagnosis.Possible, []diagnosis.Evidence(nil)
	if r := c.Refuses(); r.Kind != "" {
		says, words, certainty, evidence = r.says, r.words, r.certainty, r.evidence
	}
	if text != "" {
		says += "; it said: " + text
	}
	return c.told(certainty, says, evidence), words
}

// mostOfPolicy is how much is quoted of a policy's denial, in characters.
const mostOfPolicy = 480

// NoRuntime tells of pods that name NVIDIA's RuntimeClass where there is none, with the words of
// a headline: the GPU Operator's toolkit, or who configured the runtime by hand, has not made it
// (plugin/pkg/admission/runtimeclass, "pod rejected: RuntimeClass … not found").
func (c *Refused) NoRuntime() (f *view.Finding, words string) {
	r := c.Refuses()
	if r.Kind != NoRuntimeClass || r.Gone || !strings.Contains(r.Name, "nvidia") {
		return nil, ""
	}
	return c.told(r.certainty, r.says+", so the API server refuses its pods", r.evidence), fmt.Sprintf("no RuntimeClass %q", r.Name)
}

// ruledOut names what was read and explains nothing.
func (c *Refused) ruledOut() string {
	var out []string
	for _, k := range []struct{ kind, name string }{{"ResourceQuota", "quotas"}, {"LimitRange", "LimitRanges"}} {
		if c.Cluster.State.Unread[k.kind] == "" {
			out = append(out, k.name)
		}
	}
	return strings.Join(append(out, "requests and limits of devices"), ", ")
}

// The kinds of refusals that no cause of the catalogue is about.
const (
	NoPriorityClass  = "PriorityClass"
	NoRuntimeClass   = "RuntimeClass"
	NoServiceAccount = "ServiceAccount"
	PodSecurity      = "PodSecurity"
	NoSCC            = "SecurityContextConstraints"
	WebhookDenies    = "webhook denies"
	WebhookDown      = "webhook down"
	WebhookLocksOut  = "webhook locks out its server"
	QuotaUncounted   = "quota uncounted"
	QuotaHasRoom     = "quota has room"
	NoPodGroup       = "PodGroup"
)

// APIRefusal is why the API server refuses pods, where no cause of the catalogue says it.
type APIRefusal struct {
	Kind string // empty: nobody knows
	Name string // of the object that it is about, as the pod or the namespace names it
	// Near is the name of one that there is, by a slip of the pen away from that which its template has.
	Near string
	// Gone: what was in the way is there now, and the owner has not tried again.
	Gone bool
	// Baseline: Pod Security's level baseline does not ask what the pods are refused for, only restricted does.
	Baseline bool
	// Stale is a quota that nobody counts, though it is not new; nil where the refusal is not about one.
	Stale     *corev1.ResourceQuota
	words     string // in a headline
	says      string
	certainty diagnosis.Certainty
	evidence  []diagnosis.Evidence
}

// Refuses tells the refusal by objects where some tell, else by the API server's words
// (the texts are those of its admission plugins, 1.30 to 1.37).
func (c *Refused) Refuses() APIRefusal {
	if c.Next() == nil {
		return APIRefusal{}
	}
	text, spec := c.Says(), &c.Next().Spec
	if r, ok := c.classMissing(NoPriorityClass, spec.PriorityClassName, namedIn(noPriorityClass, text), c.priorityClasses()); ok {
		return r
	}
	runtimeClass := ""
	if spec.RuntimeClassName != nil {
		runtimeClass = *spec.RuntimeClassName
	}
	if r, ok := c.classMissing(NoRuntimeClass, runtimeClass, namedIn(noRuntimeClass, text), c.runtimeClasses()); ok {
		return r
	}
	if r, ok := c.unnamedClaim(); ok {
		return r
	}
	if r, ok := c.statedPriority(); ok {
		return r
	}
	for _, k := range apiRefusals {
		for _, part := range k.parts {
			if strings.Contains(text, part) {
				return k.read(c)
			}
		}
	}
	return APIRefusal{}
}

// apiRefusals are told by words that only that admission plugin uses.
var apiRefusals = []struct {
	parts []string
	read  func(*Refused) APIRefusal
}{
	{[]string{"error looking up service account "}, func(c *Refused) APIRefusal {
		name := c.Next().Spec.ServiceAccountName
		if name == "" {
			name = "default"
		}
		return APIRefusal{Kind: NoServiceAccount, Name: name, words: "its ServiceAccount is missing", certainty: diagnosis.Possible, says: fmt.Sprintf("the API server finds no ServiceAccount %s in %s (ServiceAccounts are not read here)", name, c.Next().Namespace)}
	}},
	{[]string{"violates PodSecurity "}, (*Refused).podSecurity},
	{[]string{"unable to validate against any security context constraint"}, func(*Refused) APIRefusal {
		return APIRefusal{Kind: NoSCC, words: "no SCC admits it", certainty: diagnosis.Possible, says: "no SecurityContextConstraints of OpenShift admit it"}
	}},
	{[]string{"failed calling webhook "}, (*Refused).webhookDown},
	{[]string{"failed to get PodGroup for pod "}, (*Refused).noPodGroup},
	{[]string{"admission webhook "}, func(c *Refused) APIRefusal {
		if c.FailsAtIt() != "" {
			return APIRefusal{Kind: WebhookDenies, words: "an admission webhook fails at it", certainty: diagnosis.Possible, says: "an admission webhook fails at it by an error of its own: no policy, no shortage"}
		}
		return APIRefusal{Kind: WebhookDenies, words: "an admission webhook refuses it", certainty: diagnosis.Possible, says: "an admission webhook denies it: a policy of the cluster, no shortage"}
	}},
	{[]string{" is invalid: "}, (*Refused).invalidSpec},
	{[]string{"status unknown for quota: "}, (*Refused).uncounted},
	{[]string{"exceeded quota: ", "failed quota: "}, func(c *Refused) APIRefusal {
		if c.Cluster.State.Unread["ResourceQuota"] != "" {
			return APIRefusal{}
		}
		return APIRefusal{Kind: QuotaHasRoom, Gone: true, words: "its quota has room again", certainty: diagnosis.Possible, says: "a quota refused it; by their own figures all quotas of " + c.Next().Namespace + " would take it now, and its controller has not tried again (its back-off reaches minutes)"}
	}},
}

// noPodGroup is about pods that name a PodGroup which is not there: Volcano's webhook takes none before
// it is (pkg/webhooks/admission/pods/validate in volcano-sh/volcano, before v1.9).
func (c *Refused) noPodGroup() APIRefusal {
	k, name := view.Membership(c.Next())
	ns := c.Next().Namespace
	r := APIRefusal{Kind: WebhookDenies, words: "an admission webhook refuses it", certainty: diagnosis.Possible, says: "Volcano's admission webhook takes no pod whose PodGroup it does not find"}
	if name == "" { // who makes the pods names the group in them
		r.Kind, r.words = NoPodGroup, "its PodGroup is missing"
		return r
	}
	if k.Groups == nil || c.Cluster.State.Unread["PodGroup."+k.API] != "" ||
		slices.ContainsFunc(k.Groups(c.Cluster.State), func(o *unstructured.Unstructured) bool { return o.GetNamespace() == ns && o.GetName() == name }) {
		return r
	}
	o := c.All[0].Owner
	r.Kind, r.Name, r.words, r.certainty = NoPodGroup, name, "its PodGroup is missing", diagnosis.Likely
	r.says = fmt.Sprintf("its pods name PodGroup %s, which does not exist, and Volcano's admission webhook takes none before it does", name)
	r.evidence = []diagnosis.Evidence{diagnosis.Fact(view.ObjectRef(o.Kind, o.Namespace, o.Name), fmt.Sprintf("its pods name PodGroup %s, and no such object was read", name), diagnosis.That("spec", "", diagnosis.Contains, name), diagnosis.That("", "", diagnosis.Absent, "").Of("PodGroup."+k.API+"/"+ns+"/"+name))}
	return r
}

// What the admission plugins say of a class that is not there (plugin/pkg/admission/priority and runtimeclass).
var (
	noPriorityClass = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	noRuntimeClass  = regexp.MustCompile(`pod rejected: RuntimeClass "([^"]+)" not found`)
)

// namedIn is the class that a refusal names; empty where it names none, or none that an object could be called.
func namedIn(refusal *regexp.Regexp, text string) string {
	m := refusal.FindStringSubmatch(text)
	if m == nil || len(validation.IsDNS1123Subdomain(m[1])) > 0 {
		return ""
	}
	return m[1]
}

// classMissing is about a class that the template names, or the refusal: a webhook may have written it into the pods
// (KAI's does so with RuntimeClass nvidia). Whether it is there objects tell.
func (c *Refused) classMissing(kind, ofTemplate, named string, all []string) (APIRefusal, bool) {
	has := func(name string) bool { return slices.Contains(all, name) }
	unread, said, name := c.Cluster.State.Unread[kind] != "", named != "", cmp.Or(named, ofTemplate)
	r := APIRefusal{Kind: kind, Name: name, words: "its " + kind + " is missing"}
	switch {
	case name == "" || unread && !said || !unread && has(name) && !said:
		return r, false
	case unread:
		r.certainty, r.says = diagnosis.Possible, fmt.Sprintf("the API server finds no %s %s (these were not read)", kind, name)
	case has(name):
		r.Gone, r.words = true, "its "+kind+" is there by now"
		r.certainty, r.says = diagnosis.Possible, fmt.Sprintf("%s %s was missing and is there by now; its controller has not tried again (its back-off reaches minutes)", kind, name)
	case name != ofTemplate:
		r.certainty, r.says = diagnosis.Likely, fmt.Sprintf("%s %s does not exist; its template does not name it: something gives it to its pods as they are made (a webhook)", kind, name)
		r.evidence = []diagnosis.Evidence{diagnosis.Fact(kind+"/"+name, "no such object was read", diagnosis.That("", "", diagnosis.Absent, ""))}
	default:
		r.certainty, r.says = diagnosis.Proven, fmt.Sprintf("%s %s does not exist", kind, name)
		if i := slices.IndexFunc(all, func(other string) bool { return diagnosis.Misspelled(name, other) }); i >= 0 {
			r.Near = all[i]
			r.says += fmt.Sprintf(" (nearest: %s)", r.Near)
		}
		o := c.All[0].Owner
		r.evidence = []diagnosis.Evidence{diagnosis.Fact(view.ObjectRef(o.Kind, o.Namespace, o.Name), fmt.Sprintf("its pods name %s %s, and no such object was read", kind, name), diagnosis.That("spec", "", diagnosis.Contains, name), diagnosis.That("", "", diagnosis.Absent, "").Of(kind+"/"+name))}
	}
	return r, true
}

// priorityClasses are those that there are: two are made by the API server itself.
func (c *Refused) priorityClasses() []string {
	out := []string{"system-node-critical", "system-cluster-critical"}
	for _, p := range c.Cluster.State.PriorityClasses {
		out = append(out, p.Name)
	}
	return out
}

func (c *Refused) runtimeClasses() []string {
	out := make([]string, len(c.Cluster.State.RuntimeClasses))
	for i, r := range c.Cluster.State.RuntimeClasses {
		out[i] = r.Name
	}
	return out
}

// enforceLabel is the namespace's own level of Pod Security.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// violations are the checks that a refusal by Pod Security names, each with what it found in brackets.
var (
	violations = regexp.MustCompile(`violates PodSecurity "restricted:[^"]*": (.*)$`)
	bracketed  = regexp.MustCompile(`\([^()]*(?:\([^()]*\)[^()]*)*\)`)
)

// What the level restricted checks and baseline does not, and the words by which one of these checks tells what baseline
// minds as well (k8s.io/pod-security-admission, policy: a check of restricted stands for its like of baseline).
var (
	ofRestricted = []string{"allowPrivilegeEscalation != false", "unrestricted capabilities", "restricted volume types", "runAsNonRoot != true", "runAsUser=0", "seccompProfile"}
	ofBoth       = []string{`"hostPath"`, "must not include", "Unconfined"}
)

// restrictedAlone says whether a refusal names nothing that baseline minds.
func restrictedAlone(text string) bool {
	m := violations.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if m == nil || slices.ContainsFunc(ofBoth, func(words string) bool { return strings.Contains(m[1], words) }) {
		return false
	}
	for check := range strings.SplitSeq(bracketed.ReplaceAllString(m[1], ""), ",") {
		if !slices.Contains(ofRestricted, strings.TrimSpace(check)) {
			return false
		}
	}
	return true
}

func (c *Refused) podSecurity() APIRefusal {
	ns := c.Next().Namespace
	r := APIRefusal{Kind: PodSecurity, Name: ns, Baseline: restrictedAlone(c.Says()), words: "Pod Security refuses it", certainty: diagnosis.Possible, says: "the Pod Security level of namespace " + ns + " does not admit it"}
	at := slices.IndexFunc(c.Cluster.State.Namespaces, func(n *corev1.Namespace) bool { return n.Name == ns })
	if at < 0 {
		return r
	}
	if level := c.Cluster.State.Namespaces[at].Labels[enforceLabel]; level != "" && level != "privileged" {
		r.certainty = diagnosis.Likely
		r.says = fmt.Sprintf("namespace %s enforces the Pod Security level %s, which does not admit it", ns, level)
		r.evidence = []diagnosis.Evidence{diagnosis.Fact("Namespace/"+ns, "label "+enforceLabel+"="+level, diagnosis.That(diagnosis.Labels, enforceLabel, diagnosis.Is, level))}
	}
	return r
}
