package queues

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Cards is that containers ask, each by itself, shares of more cards than any node has. To HAMi, and to Volcano with its device plugin, a
// share is of one card, and those of one container are of different ones (HAMi pkg/scheduler/score.go; README of
// volcano-vgpu-device-plugin).
type Cards struct {
	Containers  []string
	Resource    corev1.ResourceName
	Asked, Most int64  // Asked is by the one that asks most
	On          string // a node with that many
	Register    string // the annotation that says so
}

// vgpus is how Volcano counts shares of cards.
const vgpus corev1.ResourceName = "volcano.sh/vgpu-number"

// Register is the annotation in which the device plugin of the pod's scheduler writes a node's cards, and by what name the pod
// asks for shares of them; empty where neither HAMi nor Volcano decides.
func Register(c *Case) (annotation string, name corev1.ResourceName) {
	switch by := c.SchedulerName(); {
	case strings.Contains(by, "hami"):
		return "hami.io/node-nvidia-register", view.WholeGPU
	case by == "volcano":
		return "volcano.sh/node-vgpu-register", vgpus
	}
	return "", ""
}

// TooManyCards tells it; nil where it is not so, and where no node says what cards it has.
func TooManyCards(c *Case) *Cards {
	register, name := Register(c)
	if register == "" {
		return nil
	}
	k := &Cards{Resource: name, Register: register}
	for _, n := range c.Cluster.SortedNodes() {
		if has := cardsIn(n.Annotations[register]); has > k.Most {
			k.Most, k.On = has, n.Name
		}
	}
	if k.Most == 0 {
		return nil
	}
	for _, each := range c.Pod.Spec.Containers {
		if q := each.Resources.Limits[name]; q.Value() > k.Most {
			k.Containers, k.Asked = append(k.Containers, each.Name), max(k.Asked, q.Value())
		}
	}
	if len(k.Containers) == 0 {
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
	for card := range strings.SplitSeq(register, ":") {
		if strings.Contains(card, ",") {
			count++
		}
	}
	return count
}

// Who are the containers, for people.
func (k *Cards) Who() string {
	if len(k.Containers) == 1 {
		return "container " + k.Containers[0]
	}
	return "each of containers " + strings.Join(k.Containers, ", ")
}

// Amount is what each of them asks.
func (k *Cards) Amount() string {
	if len(k.Containers) == 1 {
		return strconv.FormatInt(k.Asked, 10)
	}
	return "up to " + strconv.FormatInt(k.Asked, 10)
}

// Says is what is the matter.
func (k *Cards) Says() string {
	return fmt.Sprintf("%s asks shares of %s cards, and no node has as many", k.Who(), k.Amount())
}

// Evidence is what the containers ask, and where a node says which cards it has.
func (k *Cards) Evidence(c *Case) []diagnosis.Evidence {
	name := string(k.Resource)
	out := []diagnosis.Evidence{diagnosis.Fact("Node/"+k.On, "annotation "+k.Register+" lists fewer cards", diagnosis.That("metadata.annotations["+k.Register+"]", "", diagnosis.Exists, ""))}
	if claims := c.Cluster.OfPod(c.Pod, diagnosis.That("spec.containers[name="+k.Containers[0]+"].resources.limits["+name+"]", "", diagnosis.AtLeast, strconv.FormatInt(k.Most+1, 10))); len(claims) > 0 {
		claims = append(claims, diagnosis.That("max(spec.containers[*].resources.limits["+name+"])", "", diagnosis.Is, strconv.FormatInt(k.Asked, 10)).Of(claims[0].Ref))
		out = append(out, diagnosis.Fact(c.podRef(), k.Who()+" asks "+k.Amount()+" "+name, claims...))
	}
	return out
}
