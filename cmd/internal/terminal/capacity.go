package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// maxEvicted is how many pods are named of those a plan evicts.
const maxEvicted = 5

// capacityText tells what more fits.
type capacityText struct{ Options }

// Capacity writes, for each resource, whether as many fit as were asked for: now,
// and by whose moving or re-making; for several first whether all fit at once.
func Capacity(w io.Writer, list diagnosis.CapacityList, o Options) error {
	var b strings.Builder
	told := capacityText{o}
	if t := list.Together; t != nil {
		told.together(&b, *t)
	}
	for i, item := range list.Items {
		if i > 0 || list.Together != nil {
			b.WriteString("\n")
		}
		told.capacity(&b, item)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write capacity: %w", err)
	}
	return nil
}

func (o capacityText) together(b *strings.Builder, t diagnosis.CapacityTogether) {
	verdict := string(t.Answer)
	if n := len(t.Evictions); t.Answer == diagnosis.Yes && n > 0 {
		verdict += ", after moving " + countedPods(n)
	} else if t.Answer == diagnosis.Yes {
		verdict += ", nobody has to move"
	}
	b.WriteString(o.bold("together: "+verdict) + "\n")
	o.list(b, "why: ", t.Why)
	o.list(b, "evicts: ", someNames(t.Evictions))
	o.list(b, "changes: ", strings.Join(t.Nodes, ", "))
}

func (o capacityText) capacity(b *strings.Builder, item diagnosis.CapacityItem) {
	fmt.Fprintln(b, o.bold(o.clean(fmt.Sprintf("%d more %s: %s", item.Asked, item.Resource, capacityVerdict(item)))))
	if item.For != "" {
		o.list(b, "for: ", item.For)
	}
	o.list(b, "after: ", strings.Join(item.After, ", "))
	remade, silicon := "MIG manager re-makes GPUs that nobody holds", "all that the silicon allows"
	if !strings.Contains(item.Resource, "/mig-") {
		remade, silicon = "", ""
	}
	b.WriteString(table(o).align([][]string{
		{"HOW", "FIT", ""},
		{"now", fmt.Sprint(item.Now), ""},
		{"after moving nobody", fmt.Sprint(item.Repartition), remade},
		{"by re-making idle instances", fmt.Sprint(item.Hardware), silicon},
		{"after moving somebody", fmt.Sprintf("%d of %d", item.Evict.Fits, item.Asked), evicted(item.Evict)},
	}))
	o.list(b, "evicts: ", someNames(item.Evict.Evictions))
	o.list(b, "changes: ", strings.Join(item.Evict.Nodes, ", "))
	head := "not counted: "
	for _, why := range item.Ignored {
		o.list(b, head, why)
		head = strings.Repeat(" ", len(head))
	}
}

// list writes a text under its head, wrapped; nothing where there is none.
func (o style) list(b *strings.Builder, head, text string) {
	if text == "" {
		return
	}
	for _, line := range o.wrap(o.clean(text), o.columns()-len(head), 4) {
		b.WriteString(o.faint(head+line) + "\n")
		head = strings.Repeat(" ", len(head))
	}
}

// capacityVerdict answers in a few words, the least trouble first.
func capacityVerdict(item diagnosis.CapacityItem) string {
	pods := len(item.Evict.Evictions)
	switch {
	case item.Now >= item.Asked:
		return "yes, now"
	case item.Repartition >= item.Asked:
		return "yes, after moving nobody"
	case item.Evict.Fits >= item.Asked:
		return fmt.Sprintf("yes, after moving %s", countedPods(pods))
	case item.Hardware >= item.Asked:
		return "only by re-making single instances"
	case item.Evict.Fits > item.Repartition:
		return fmt.Sprintf("no, at most %d, after moving %s", item.Evict.Fits, countedPods(pods))
	}
	return fmt.Sprintf("no, at most %d", max(item.Evict.Fits, item.Hardware))
}

func evicted(e diagnosis.CapacityEvict) string {
	switch {
	case e.Fits == 0:
		return ""
	case len(e.Evictions) == 0:
		return "nobody has to move"
	}
	return "evicts " + countedPods(len(e.Evictions))
}

// someNames are the first of some pods, and how many there are more.
func someNames(pods []diagnosis.PodName) string {
	names := make([]string, 0, maxEvicted)
	for _, p := range pods[:min(len(pods), maxEvicted)] {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(pods) - maxEvicted; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func countedPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
