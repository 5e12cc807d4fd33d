package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Pod is what a person has to know of a pod before it is stopped, or to ask its owner.
type Pod struct {
	diagnosis.PodName
	// How it is stopped; empty for one that only holds something.
	How   string `json:"how,omitempty"`
	Node  string `json:"node,omitempty"`
	Holds string `json:"holds,omitempty"` // of GPUs: 1 × nvidia.com/gpu
	// Owner is the topmost controller, as kind/name; empty where nobody makes the pod again.
	Owner    string    `json:"owner,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Priority int32     `json:"priority"`
	// Idle is nil where nobody knows; Work says what is known of it.
	Idle   *bool  `json:"idle,omitempty"`
	Work   string `json:"work,omitempty"`
	Unseen bool   `json:"unseen,omitempty"` // it was not read: the rest is not known
}

// podText tells pods that hold something, or are stopped.
type podText struct{ Options }

// pods is a table of pods, none cut: where it is too wide each pod gets a line of its own
// above what is known of it.
func (o podText) pods(all []Pod, indent string) []string {
	rows := [][]string{{"POD", "HOW", "ON", "HOLDS", "OWNER", "AGE", "PRIORITY", "GPU WORK"}}
	for _, p := range all {
		rows = append(rows, o.podCells(p))
	}
	rows = withoutEmpty(rows)
	widths := widthsOf(rows)
	total := width(indent) - 2
	for _, w := range widths {
		total += w + 2
	}
	if total > o.columns() {
		return o.stacked(rows, indent)
	}
	var out []string
	for i, r := range rows {
		var line strings.Builder
		line.WriteString(indent)
		for k, cell := range r {
			line.WriteString(pad(cell, widths[k]+2))
		}
		text := strings.TrimRight(line.String(), " ")
		if i == 0 {
			text = o.bold(text)
		}
		out = append(out, text)
	}
	return out
}

func (o podText) podCells(p Pod) []string {
	name := o.clean(p.Namespace + "/" + p.Name)
	if p.Unseen {
		return []string{name, o.clean(p.How), "", "", "not read", "", "", ""}
	}
	owner := "none: not made again"
	if p.Owner != "" {
		owner = o.clean(p.Owner)
	}
	age := o.age(p.Started)
	if age == "" {
		age = "?"
	}
	return []string{name, o.clean(p.How), o.clean(p.Node), o.clean(p.Holds), owner, age, fmt.Sprint(p.Priority), o.clean(p.Work)}
}

// stacked is a line for each pod, and below it what is known of it, by its column's name.
func (o style) stacked(rows [][]string, indent string) []string {
	var out []string
	for _, r := range rows[1:] {
		for _, line := range o.fold(r[0], o.columns()-width(indent)) {
			out = append(out, indent+line)
		}
		var parts []string
		for k, cell := range r[1:] {
			switch head := rows[0][k+1]; {
			case cell == "":
			case head == "HOW":
				parts = append(parts, cell)
			case head == "GPU WORK":
				parts = append(parts, head[:3]+" work "+cell)
			default:
				parts = append(parts, strings.ToLower(head)+" "+cell)
			}
		}
		for _, line := range o.fold(strings.Join(parts, ", "), o.columns()-width(indent)-2) {
			out = append(out, indent+"  "+line)
		}
	}
	return out
}

// withoutEmpty leaves out the columns of which no row says anything.
func withoutEmpty(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for k := range rows[0] {
		says := false
		for _, r := range rows[1:] {
			says = says || r[k] != ""
		}
		for i, r := range rows {
			if says {
				out[i] = append(out[i], r[k])
			}
		}
	}
	return out
}

func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], width(c))
		}
	}
	return widths
}
