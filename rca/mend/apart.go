package mend

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// TheirRule is for the pod that has no rule which keeps it from the node, while pods there have one about it: by a label that it
// shares with others. Who makes them may leave it out. There is none where no such rule is seen, where nobody is known to make
// them, and where their template cannot be changed.
func TheirRule(c *edit.Workload, n *view.Node) []edit.Change {
	who, texts := c.Company.Minders(n)
	var makers []incident.Ref
	for i, p := range who {
		of := c.Cluster.WorkloadOf(p)
		if spec, _ := c.Cluster.MadeFrom(p); spec == nil || !keepsApart(spec) || of == c.Incident.Workload || of.Kind == "Job" {
			return nil
		}
		if i == 0 || makers[len(makers)-1] != of {
			makers = append(makers, of)
		}
	}
	if len(makers) == 0 {
		return nil
	}
	names := make([]string, len(makers))
	for i, of := range makers {
		names[i] = fmt.Sprintf("%s/%s", strings.ToLower(of.Kind), of.Name)
	}
	title := fmt.Sprintf("have %s keep apart from fewer: %s is about the pods of %s, too", strings.Join(names, " and "), strings.Join(texts, " and "), c.WorkloadName())
	return []edit.Change{c.Once(title, func(title string) edit.Change {
		ch := edit.LookAt(diagnosis.PodAffinityConflict, title, "the pods that are there would be made again, from another template, which is not tried here")
		ch.Risk = diagnosis.MediumRisk
		for i, of := range makers {
			running := c.Cluster.Running(of)
			ch.Drained = append(ch.Drained, running...)
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s edit %s  # podAntiAffinity of its pods: a labelSelector that does not match those of %s", of.Namespace, names[i], c.WorkloadName()))
			for _, p := range running {
				if of.Kind == "ReplicaSet" { // which replaces none by itself
					ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete pod %s  # its ReplicaSet makes it again by the new template", p.Namespace, p.Name))
				}
			}
		}
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get pod %s --show-labels  # what it matches now", c.Pod.Namespace, c.Pod.Name))
		return ch
	})}
}

func keepsApart(spec *corev1.PodSpec) bool {
	return spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil && len(spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// exclusive are annotations by which a controller keeps each of its groups of pods in a domain of its own: its webhook gives the
// first pod of a group the rules, and what owns the pods bears none of them.
var exclusive = []struct{ annotation, name, kind, group, unit, at string }{
	{"alpha.jobset.sigs.k8s.io/exclusive-topology", "jobset.sigs.k8s.io/jobset-name", "jobset", "jobset.sigs.k8s.io/job-key", "job", "metadata.annotations, or those of spec.replicatedJobs[].template"},
	{"leaderworkerset.sigs.k8s.io/exclusive-topology", "leaderworkerset.sigs.k8s.io/name", "leaderworkerset", "leaderworkerset.sigs.k8s.io/group-key", "group", "metadata.annotations"},
}

// GivenRule is for terms that the pod has and its template has not: where an annotation tells what gives them, that is changed, or
// there are more domains; else it is to be found out.
func GivenRule(c *edit.Workload, of, texts string) edit.Change {
	const unproven = "what the next pod is given is not known before it is made"
	for _, x := range exclusive {
		key, name := c.Pod.Annotations[x.annotation], c.Pod.Labels[x.name]
		if key == "" || name == "" || !strings.Contains(texts, x.group) {
			continue
		}
		ref := x.kind + "/" + name
		return c.Once(fmt.Sprintf("give %s of %s another %s: annotation %s has each take one to itself; or make it without that", "a "+x.unit, ref, key, x.annotation), func(title string) edit.Change {
			ch := edit.LookAt(diagnosis.PodAffinityConflict, title, unproven,
				"kubectl get nodes -L "+key+"  # which there are: as many as there are "+x.unit+"s that run at once, and nodes without it count for none",
				fmt.Sprintf("kubectl label node NODE %s=VALUE  # either: nodes of another one, or not labelled yet; no pod of another %s may run there", key, x.unit),
				fmt.Sprintf("kubectl -n %s get %s -o yaml > %s.yaml  # or: without %s (%s), then kubectl replace --force -f %s.yaml, which makes all its pods again", c.Pod.Namespace, ref, name, x.annotation, x.at, name))
			ch.Risk = diagnosis.MediumRisk
			ch.StopsUnknown = true
			return ch
		})
	}
	return c.Once("see who gives its pods the rule to be "+texts+", which "+of+" does not have", func(title string) edit.Change {
		return edit.LookAt(diagnosis.PodAffinityConflict, title, unproven,
			"kubectl get mutatingwebhookconfigurations  # and the annotations of "+of+" and of what owns it",
			fmt.Sprintf("kubectl -n %s get pod %s -o jsonpath='{.spec.affinity}'", c.Pod.Namespace, c.Pod.Name))
	})
}
