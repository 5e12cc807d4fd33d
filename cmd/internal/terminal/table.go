package terminal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// table is rows of cells, as wide as the terminal shows them.
type table struct{ Options }

// Table writes one line per finding. Lines are cut at the terminal's width, and
// whole when there is none (in a pipe).
func Table(w io.Writer, ds []diagnosis.Diagnosis, o Options) error {
	t := table{o}
	return t.writeTable(w, t.findings(ds))
}

// Incidents is Table with what is being done about each finding, where a narrow terminal
// does not cut it off.
func Incidents(w io.Writer, ds []diagnosis.Diagnosis, plans []string, o Options) error {
	t := table{o}
	rows := t.findings(ds)
	for i, plan := range append([]string{"PLAN"}, plans...) {
		rows[i] = slices.Insert(rows[i], 2, orDash(o.clean(plan)))
	}
	return t.writeTable(w, rows)
}

// findings are the rows; Wide has what a pod asks for and, of the best fix, what it brings,
// costs and changes.
func (o table) findings(ds []diagnosis.Diagnosis) [][]string {
	rows := [][]string{{"INCIDENT", "WORKLOAD", "KIND", "PODS", "AGE", "CAUSE", "BEST FIX", "STOPS"}}
	if o.Wide {
		rows[0] = append(rows[0], "RUNS", "TAKES", "RISK", "NODES", "REQUESTS")
	}
	for _, d := range ds {
		cause := "-"
		if len(d.Causes) > 0 {
			cause = reasons{style: o.style}.label(d.Causes[0])
		}
		fix := []string{"-", "-", "-", "-", "-", "-"}
		if len(d.Fixes) > 0 {
			f, told := d.Fixes[0], fixText{o.style}
			fix = []string{o.clean(string(f.Kind)), told.stopsOf(f), told.runs(f), told.takes(f), o.clean(string(f.Risk)), orDash(o.clean(strings.Join(f.Cost.Nodes, ",")))}
		}
		row := append([]string{o.clean(d.Incident), o.workload(d), o.clean(d.Workload.Kind), fmt.Sprint(d.Pods.Waiting), orDash(o.age(d.Pods.Since)), cause}, fix[:2]...)
		if o.Wide {
			row = append(append(row, fix[2:]...), orDash(o.clean(asked(d))))
		}
		rows = append(rows, row)
	}
	return rows
}

// asked is what one pod asks for.
func asked(d diagnosis.Diagnosis) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		out = append(out, fmt.Sprintf("%s=%v", name, d.Requests[name]))
	}
	return strings.Join(out, ",")
}

func (o table) writeTable(w io.Writer, rows [][]string) error {
	if _, err := io.WriteString(w, o.align(rows)); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// align puts rows into columns, the first as their heads.
func (o table) align(rows [][]string) string {
	widths := widthsOf(rows)
	var b strings.Builder
	for i, r := range rows {
		var line strings.Builder
		for k, c := range r {
			line.WriteString(pad(c, widths[k]+2))
		}
		text := strings.TrimRight(line.String(), " ")
		if o.Width > 0 && !o.Wide {
			text = o.cut(text, o.Width)
		}
		if i == 0 {
			text = o.bold(text)
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}
