package queues

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Cards is that one container asks shares of more cards than any node has. To HAMi, and to Volcano with its device plugin, a
// share is of one card, and those of one container are of different ones (HAMi pkg/scheduler/score.go; README of
// volcano-vgpu-device-plugin).
type Cards struct {
	Container   string
	Resource    corev1.ResourceName
	Asked, Most int64
	On          string // a node with that many
	Register    string // the annotation that says so
}

// vgpus is how Volcano counts shares of cards.
const vgpus corev1.ResourceName = "volcano.sh/vgpu-number"

// Register is the annotation in which the device plugin of the pod's scheduler writes a node's cards, and by what name the pod
// asks for shares of them; empty where neither HAMi nor Volcano decides.
func (c *Case) Register() (annotation string, name corev1.ResourceName) {
	switch by := c.SchedulerName(); {
	case strings.Contains(by, "hami"):
		return "hami.io/node-nvidia-register", view.WholeGPU
	case by == "volcano":
		return "volcano.sh/node-vgpu-register", vgpus
	}
	return "", ""
}

// TooManyCards tells it; nil where it is not so, and where no node says what cards it has.
func (c *Case) TooManyCards() *Cards {
	register, name := c.Register()
	if register == "" {
		return nil
	}
	k := &Cards{Resource: name, Register: register}
	for _, each := range c.Pod.Spec.Containers {
		if q := each.Resources.Limits[name]; q.Value() > k.Asked {
			k.Container, k.Asked = each.Name, q.Value()
		}
	}
	for _, n := range c.Cluster.SortedNodes() {
		if has := cardsIn(n.Annotations[register]); has > k.Most {
			k.Most, k.On = has, n.Name
		}
	}
	if k.Most == 0 || k.Asked <= k.Most {
		return nil
	}
	return k
}

// cardsIn is how many cards such an annotation lists: as JSON, or up to HAMi 2.4 and in Volcano's with a colon behind each.
func cardsIn(register string) int64 {
	var list []json.RawMessage
	if json.Unmarshal([]byte(register), &list) == nil {
		return int64(len(list))
	}
	count := int64(0)
	for _, card := range strings.Split(register, ":") {
		if strings.Contains(card, ",") {
			count++
		}
	}
	return count
}

// Says is what is the matter.
func (k *Cards) Says() string {
	return fmt.Sprintf("container %s asks shares of %d cards, and no node has more than %d", k.Container, k.Asked, k.Most)
}

// Evidence is where a node says it.
func (k *Cards) Evidence() diagnosis.Evidence {
	return diagnosis.Fact("Node/"+k.On, fmt.Sprintf("annotation %s lists %s", k.Register, view.CountOf(int(k.Most), "card")), diagnosis.That("metadata.annotations["+k.Register+"]", "", diagnosis.Exists, ""))
}
