package claims

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/view"
)

// SeeWhy is the title of what is left where nothing is seen to be the matter with a driver.
const SeeWhy = "see why the driver publishes no devices"

// LookAtDriver shows who should publish devices.
func LookAtDriver(c *edit.Workload) edit.Change {
	const unproven = "which devices a driver that is not there would publish is not known"
	for _, a := range c.Claims.Driverless() {
		if dra := c.DRADriver(a, nil); dra != nil {
			ch := edit.LookAt(diagnosis.DRADriverMissing, dra.Title, unproven, append(dra.Commands, "kubectl get resourceslices")...)
			return rolling(ch, dra.Stops)
		}
	}
	for _, n := range c.Cluster.SortedNodes() {
		if u := kubelet.UnlistedOn(c.Cluster, c.Claims.Lacked(n.Name), n); u != nil {
			ch := edit.LookAt(diagnosis.DRADriverMissing, u.Title(), "which devices the driver finds on the machine is in no object", u.Commands()...)
			ch.Risk, ch.Minutes = diagnosis.LowRisk, 2
			return ch
		}
	}
	return edit.LookAt(diagnosis.DRADriverMissing, SeeWhy, unproven,
		"kubectl get resourceslices", "kubectl get deviceclasses", "kubectl get pods -A -o wide | grep -i dra")
}

// rolling says who is made again where the driver is changed.
func rolling(ch edit.Change, stops []*corev1.Pod) edit.Change {
	if len(stops) > 0 {
		ch.Risk, ch.Minutes, ch.Drained = diagnosis.LowRisk, 5, stops
	}
	return ch
}

// LookAtClass is for the DeviceClass that does not exist.
func LookAtClass(c *edit.Workload) edit.Change {
	name := c.Claims.Classless()[0].Class
	if cel := stock(c.Claims, name); cel != "" {
		return edit.LookAt(diagnosis.DRAClassMissing, "make DeviceClass "+name+" as its driver's chart does", "whether the chart gave its class more than the driver's name and the kind of device is not known",
			edit.Feed("kubectl apply", fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: %s}, spec: {selectors: [{cel: {expression: "%s"}}]}}`, name, cel)), "kubectl get deviceclasses")
	}
	if dra := c.DRAClass(name); dra != nil {
		ch := edit.LookAt(diagnosis.DRAClassMissing, dra.Title+", which makes DeviceClass "+name, "which devices a class that does not exist would take is not known", append(dra.Commands, "kubectl get deviceclasses")...)
		return rolling(ch, dra.Stops)
	}
	return edit.LookAt(diagnosis.DRAClassMissing, "make DeviceClass "+name+", or ask one that exists", "which devices a class that does not exist would take is not known",
		"kubectl get deviceclasses", "kubectl get deviceclass "+name)
}

// stock is the CEL expression of a class that a driver's chart makes, by its name, where that driver publishes devices: of
// NVIDIA's, one for each kind of device (kubernetes-sigs/dra-driver-nvidia-gpu, templates/deviceclass-*.yaml), else the one
// that is called as the driver is.
func stock(v *devices.Claims, class string) string {
	driver, kind := class, ""
	if k, nvidia := strings.CutSuffix(class, ".nvidia.com"); nvidia && slices.Contains([]string{"gpu", "mig", "vfio"}, k) {
		driver, kind = "gpu.nvidia.com", k
	}
	for _, on := range v.ByNode {
		if !slices.ContainsFunc(on, func(d *devices.Device) bool { return d.ID.Driver == driver }) {
			continue
		}
		if kind == "" {
			return fmt.Sprintf(`device.driver == \"%s\"`, driver)
		}
		return fmt.Sprintf(`device.driver == \"%s\" && device.attributes[\"%[1]s\"].type == \"%s\"`, driver, kind)
	}
	return ""
}

// FreeDevices has the holders of devices leave, or share them, or waits until they do.
func FreeDevices(c *edit.Workload, n *view.Node) []edit.Change {
	var out []edit.Change
	if ch, ok := share(c, n); ok {
		out = append(out, ch)
	}
	if victims := c.Claims.Victims[n.Name]; len(victims) > 0 {
		out = append(out, edit.EvictFrom(n, diagnosis.DRADevicesInUse, victims))
	}
	if holders := c.Claims.Holders[n.Name]; len(holders) > 0 {
		out = append(out, c.WaitFor(n, diagnosis.DRADevicesInUse, holders))
	}
	if orphans := c.Claims.Orphans(n.Name); len(orphans) > 0 {
		out = append(out, giveBack(n, orphans))
	}
	if claims := unusedClaims(c, n); len(out) == 0 && len(claims) > 0 {
		at := claims[0].Namespace + "/" + claims[0].Name
		out = append(out, edit.LookAt(diagnosis.DRADevicesInUse, "see who needs ResourceClaim "+at+", which holds a device for no pod", "whether the claim may be given up is not known",
			fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml", claims[0].Namespace, claims[0].Name)))
	}
	return out
}

// unusedClaims hold a device of the node for no pod.
func unusedClaims(c *edit.Workload, n *view.Node) []*resourcev1.ResourceClaim {
	var out []*resourcev1.ResourceClaim
	for _, d := range c.Claims.ByNode[n.Name] {
		if claim := c.Claims.Inventory.Holders[d.ID]; claim != nil && len(claim.Status.ReservedFor) == 0 && !slices.Contains(out, claim) {
			out = append(out, claim)
		}
	}
	return out
}

// Fix corrects, in every request that no device serves, or none of the node, the
// clauses in the way: what the nearest device has instead, or without the clause.
func Fix(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	if p := c.Claims.Pinned(); p != nil && p.Node != n.Name {
		return nil // it has its devices, and asks for those that exist
	}
	var out []edit.Change
	for _, guard := range []bool{false, true} {
		edits := map[*resourcev1.ResourceClaim]*resourcev1.ResourceClaim{}
		var says []string
		for _, a := range c.Claims.Asks {
			says = append(says, correct(c, n, a, guard, edits)...)
		}
		ch := claimChange(c, cause, says, edits)
		if len(says) > 0 && (len(out) == 0 || out[0].Title != ch.Title) {
			out = append(out, ch)
		}
	}
	if ch, ok := liftTaint(c, n, cause); ok {
		out = append(out, ch)
	}
	if ch, ok := seeToGPU(c, n, cause); ok {
		out = append(out, ch)
	}
	if asked, most := c.Claims.TooMany(); len(out) == 0 && asked > 0 {
		out = append(out, askFewer(c, cause, asked, most))
	}
	if len(out) == 0 {
		out = append(out, edit.LookAt(cause, "ask devices that exist", "no single change of the claim's own selectors is known to help",
			"kubectl get resourceslices -o yaml", "kubectl get deviceclasses -o yaml"))
	}
	return out
}

// askFewer is for requests that together ask for more different devices than any node has, whoever holds them.
func askFewer(c *edit.Workload, cause diagnosis.CauseID, asked int64, most int) edit.Change {
	ch := edit.LookAt(cause, fmt.Sprintf("ask for at most %s at once by %s (%d different ones now), or have a node with more", view.CountOf(most, "device"), strings.Join(c.Claims.Owners(), ", "), asked), "which of its requests the workload can do without is not known",
		"kubectl get resourceslices -o custom-columns='NODE:.spec.nodeName,DRIVER:.spec.driver,DEVICES:.spec.devices[*].name'")
	for _, claim := range c.Claims.Own {
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml  # spec.devices.requests: each is for devices of its own; containers that name one request share its device", claim.Namespace, claim.Name))
	}
	ch.Commands = append(ch.Commands, c.EditByHand("its resourceClaims, and the requests that its containers name"))
	ch.Kind, ch.Risk = diagnosis.FixClaim, diagnosis.MediumRisk
	ch.Drained, ch.StopsUnknown = c.Cluster.Running(c.Incident.Workload), true // another template: its controller makes its pods again
	return ch
}

// liftTaint is for devices that match and that a DeviceTaintRule keeps everybody from: who
// wrote the rule knows why.
func liftTaint(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) (edit.Change, bool) {
	for _, a := range c.Claims.Asks {
		for _, rule := range c.Claims.Rules(a, n.Name) {
			return edit.LookAt(cause, "ask who wrote DeviceTaintRule "+rule+" whether it may go", "why it keeps pods from those devices is in no object",
				"kubectl get devicetaintrule "+rule+" -o yaml", "# where it may go: kubectl delete devicetaintrule "+rule), true
		}
	}
	return edit.Change{}, false
}

func claimChange(c *edit.Workload, cause diagnosis.CauseID, says []string, edits map[*resourcev1.ResourceClaim]*resourcev1.ResourceClaim) edit.Change {
	ch := edit.Change{Kind: diagnosis.FixClaim, Cause: cause, Manual: true, Minutes: 2, Risk: diagnosis.MediumRisk, Title: strings.Join(says, ", ") + " in " + c.WorkloadName()}
	for _, claim := range c.Claims.Own {
		if edited := edits[claim]; edited != nil {
			ch.Claims = append(ch.Claims, edited)
			ch.Commands = append(ch.Commands, claimCommands(c, claim, edited)...)
		}
	}
	return ch
}

// correct edits one request of its claim and says how.
func correct(c *edit.Workload, n *view.Node, a *devices.Ask, guard bool, edits map[*resourcev1.ResourceClaim]*resourcev1.ResourceClaim) []string {
	bad, near := inTheWay(c, n, a)
	if a.Claim == nil || len(bad) == 0 || slices.ContainsFunc(bad, func(f devices.Clause) bool { return f.Class }) {
		return nil // the class is not the workload's to change
	}
	edited := edits[a.Claim]
	if edited == nil {
		edited = a.Claim.DeepCopy()
		edits[a.Claim] = edited
	}
	request := &edited.Spec.Devices.Requests[a.At]
	selectors := &[]resourcev1.DeviceSelector{}
	if request.Exactly != nil {
		selectors = &request.Exactly.Selectors
	} else if a.Sub >= 0 {
		selectors = &request.FirstAvailable[a.Sub].Selectors
	}
	var says []string
	for i := range *selectors {
		if (*selectors)[i].CEL == nil {
			continue
		}
		says = append(says, rewrite(&(*selectors)[i], i, bad, near, guard)...)
	}
	*selectors = slices.DeleteFunc(*selectors, func(s resourcev1.DeviceSelector) bool { return s.CEL != nil && s.CEL.Expression == "" })
	return says
}

// inTheWay are the clauses of an ask that have to change, and the device that is the
// model for it: nil where a clause cannot be read.
func inTheWay(c *edit.Workload, n *view.Node, a *devices.Ask) ([]devices.Clause, *devices.Device) {
	near := c.Claims.NearOn(a, n.Name)
	if a.Broken != nil {
		return []devices.Clause{a.Broken.Clause}, nil
	}
	if f := c.Claims.Fault(a, c.Claims.Devices); f != nil {
		return []devices.Clause{f.Clause}, near
	}
	if near == nil {
		return nil, nil
	}
	return a.Readings[near].Failed, near
}

// rewrite replaces the bad clauses of one selector.
func rewrite(s *resourcev1.DeviceSelector, at int, bad []devices.Clause, near *devices.Device, guard bool) []string {
	var keep, says []string
	all := devices.Clauses(s.CEL.Expression)
	if slices.Contains(bad, devices.Clause{Text: s.CEL.Expression, Selector: at}) {
		all = []string{s.CEL.Expression} // cannot be parted
	}
	for _, text := range all {
		if !slices.Contains(bad, devices.Clause{Text: text, Selector: at}) {
			keep = append(keep, text)
			continue
		}
		better := ""
		switch {
		case guard:
			better = guarded(text)
		case near != nil:
			better = deviceInstead(near, text)
		}
		if better == "" {
			says = append(says, "leave out "+devices.ShortClause(text))
			continue
		}
		keep = append(keep, better)
		says = append(says, "ask "+devices.ShortClause(better)+" instead of "+devices.ShortClause(text))
	}
	s.CEL.Expression = strings.Join(keep, "\n&& ")
	if !strings.Contains(s.CEL.Expression, "//") { // a comment ends with its line
		s.CEL.Expression = strings.Join(keep, " && ")
	}
	return says
}

// deviceInstead is the clause as the device meets it; empty when that is not known.
func deviceInstead(d *devices.Device, text string) string {
	c, ok := devices.ComparisonOf(text)
	if !ok || c.Op == "!=" {
		return ""
	}
	has, ok := d.Value(c.Property)
	if !ok || has == "a list" {
		return ""
	}
	op := c.Op
	if op == ">" || op == "<" {
		op += "="
	}
	left := fmt.Sprintf("device.attributes[%q].%s", c.Domain, c.Name)
	if c.Capacity {
		return fmt.Sprintf("device.capacity[%q].%s.compareTo(quantity(%q)) %s 0", c.Domain, c.Name, has, op)
	}
	return left + " " + op + " " + has
}

// guarded is the clause asked only of devices that publish what it speaks of.
func guarded(text string) string {
	seen := devices.Properties(text)
	if len(seen) == 0 {
		return ""
	}
	var parts []string
	for _, p := range seen {
		of := "attributes"
		if p.Capacity {
			of = "capacity"
		}
		parts = append(parts, fmt.Sprintf("%q in device.%s[%q]", p.Name, of, p.Domain))
	}
	return strings.Join(append(parts, "("+text+")"), " && ")
}

// claimCommands write the corrected claim, or the template that it was made from:
// neither's spec can change, so it is recreated.
func claimCommands(c *edit.Workload, old, edited *resourcev1.ResourceClaim) []string {
	for _, pc := range c.Pod.Spec.ResourceClaims {
		if pc.ResourceClaimTemplateName == nil || !madeFor(c, pc.Name, old.Name) {
			continue
		}
		name := *pc.ResourceClaimTemplateName
		again := fmt.Sprintf("kubectl -n %s delete pod %s  # its next one gets a claim from the new template", c.Pod.Namespace, c.Pod.Name)
		if !view.ComesBack(c.Pod) {
			again = fmt.Sprintf("kubectl -n %s get pod %s -o yaml > pod.yaml && kubectl replace --force -f pod.yaml", c.Pod.Namespace, c.Pod.Name)
		}
		return []string{replaceCommand(c, "ResourceClaimTemplate", name, edited.Spec, func(spec any) any { return map[string]any{"spec": spec} }), again}
	}
	return []string{replaceCommand(c, "ResourceClaim", old.Name, edited.Spec, func(spec any) any { return spec })}
}

func madeFor(c *edit.Workload, podClaim, claim string) bool {
	for _, s := range c.Pod.Status.ResourceClaimStatuses {
		if s.Name == podClaim {
			return s.ResourceClaimName != nil && *s.ResourceClaimName == claim
		}
	}
	return false
}

// replaceCommand is one line, in YAML's flow style: what shows commands may join
// lines, and a document in block style would not survive that.
func replaceCommand(c *edit.Workload, kind, name string, spec resourcev1.ResourceClaimSpec, inside func(spec any) any) string {
	apiVersion, served, err := c.Cluster.State.ClaimSpec(spec)
	var doc strings.Builder
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err == nil {
		err = enc.Encode(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": c.Pod.Namespace, "name": name}, "spec": inside(served)})
	}
	if err != nil { // of API types and strings, which always marshal
		return "# the object cannot be written: " + err.Error()
	}
	return "kubectl replace --force -f - <<<'" + strings.ReplaceAll(strings.TrimSpace(doc.String()), "'", `'\''`) + "'"
}

// LookAtMissing is for the claim, or the template of one, that does not exist.
func LookAtMissing(c *edit.Workload) []edit.Change {
	return []edit.Change{edit.LookAt(diagnosis.DRAClaimMissing, "make what the pod refers to: "+c.Claims.Missing[0].Says, "which devices a claim that does not exist would ask for is not known",
		"kubectl -n "+c.Pod.Namespace+" get pod "+c.Pod.Name+" -o jsonpath='{.spec.resourceClaims}'",
		"kubectl -n "+c.Pod.Namespace+" get resourceclaims,resourceclaimtemplates")}
}

// LookAtPreparation is for the pod that has its node, where the driver cannot prepare the
// devices.
func LookAtPreparation(c *edit.Workload) []edit.Change {
	unprepared := kubelet.Unprepared(c.Unstarted)
	p := unprepared[0]
	if version := kubelet.Unserved(c.Cluster, unprepared); version != "" {
		ch := edit.LookAt(diagnosis.DRAPrepareFailed, "bring the kubelet of "+p.Spec.NodeName+" ("+version+") to the API server's version", "which versions the API server serves is in no object",
			"kubectl version",
			"kubectl get --raw /apis/resource.k8s.io  # the versions that it serves: a kubelet before v1.34 asks for v1beta1",
			"kubectl get nodes  # others with that kubelet fail alike",
			"kubectl cordon "+p.Spec.NodeName+"  # until its kubelet is upgraded, or the API server serves v1beta1 (--runtime-config)",
			"kubectl drain "+p.Spec.NodeName+" --ignore-daemonsets --delete-emptydir-data  # first, for another minor version (Kubernetes' version skew policy)")
		ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true // who runs there leaves for it
		return []edit.Change{ch}
	}
	if h := kubelet.Hindered(c.Cluster, unprepared); h != nil {
		ch := edit.LookAt(diagnosis.DRAPrepareFailed, h.Title, h.Unproven, h.Commands...)
		ch.Risk, ch.StopsUnknown, ch.Minutes = h.Risk, h.StopsUnknown, h.Minutes
		return []edit.Change{ch}
	}
	commands := []string{
		fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name),
		"kubectl get pods -A -o wide --field-selector spec.nodeName=" + p.Spec.NodeName + "  # the driver's plugin has to run here",
	}
	for _, claim := range kubelet.ClaimsOf(p) {
		namespace, name, _ := strings.Cut(claim, "/")
		commands = append(commands, fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml", namespace, name))
	}
	title := "see why the driver on " + p.Spec.NodeName + " cannot prepare the devices"
	if plugin := driverOn(c, p.Spec.NodeName); plugin != nil {
		commands[1] = fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50  # the driver's plugin on %s", plugin.Namespace, plugin.Name, p.Spec.NodeName)
	}
	if claim, device := unmade(c, p); device != "" {
		title = fmt.Sprintf("have ResourceClaim %s ask for another MIG profile, or a whole GPU: the driver on %s cannot make %s", claim, p.Spec.NodeName, device)
		commands = append(commands, "# the selector of its template, or of who makes the claim; then have the pod made again: a claim does not change. A later version of the driver may make that profile, too")
	}
	_, device := unmade(c, p)
	if device == "" && p.Status.Phase == corev1.PodRunning {
		return []edit.Change{again(p, "it has run on "+p.Spec.NodeName+", and the driver does not prepare that once more", commands)}
	}
	ch := restartOlder(c, p, edit.LookAt(diagnosis.DRAPrepareFailed, title, "what the driver on the node would do next is not known", commands...))
	if device == "" && len(ch.Drained) == 0 && kubelet.BootedSince(c.Cluster, p) { // what a driver remembers of a claim may be of the boot before
		ch = again(p, p.Spec.NodeName+" has been started again since it was bound to it", commands)
	}
	return []edit.Change{ch}
}

// again has a pod, and with it the claim of its template, made from the beginning: nothing of it runs.
func again(p *corev1.Pod, why string, commands []string) edit.Change {
	ch := edit.LookAt(diagnosis.DRAPrepareFailed, fmt.Sprintf("make %s/%s again, so that its claim is prepared from the beginning: %s", p.Namespace, p.Name, why),
		"what the driver prepares is seen when it has", append([]string{kubelet.MakeAgain(p)}, commands...)...)
	ch.Risk, ch.Minutes = diagnosis.LowRisk, 2
	return ch
}
