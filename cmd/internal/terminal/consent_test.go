package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/unpend/unpend/rca/diagnosis"
)

const planHash = "24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac"

func stopped(n int, change func(*Pod)) Pod {
	p := Pod{PodName: diagnosis.PodName{Namespace: "ml", Name: fmt.Sprint("inference-f84b5f8c7-", n)}, How: "evicted", Node: "gpu-node-1", Holds: "1 × nvidia.com/mig-1g.5gb",
		Owner: "Deployment/inference", Started: now.Add(-2 * time.Hour), Idle: new(true), Work: "none for 35 min"}
	if change != nil {
		change(&p)
	}
	return p
}

func consents() map[string]Consent {
	d := allOneG()
	whole := d.Fixes[0]
	whole.Plan, whole.Effect = planHash, &diagnosis.Effect{Runs: 2, Of: 5, WaitingBefore: 5, WaitingAfter: 4, ThenWait: []diagnosis.PodName{{Namespace: "batch", Name: "etl-9"}}}
	bare := d.Fixes[1]
	bare.Plan, bare.Cost.RestartsKnown = planHash, new(false)
	nobody := d.Fixes[2]
	nobody.Plan, nobody.Cost.Evictions = planHash, nil
	headline := "mig-demo/training waits 14 min: needs 2g.10gb, no GPU is laid out with it"
	return map[string]Consent{
		"consent": {Cluster: "context prod, server https://10.0.0.1:6443, cluster 936d6bca, as ada", Incident: d.Incident, Headline: headline, Fix: whole,
			Stops: []Pod{stopped(1, nil), stopped(2, func(p *Pod) { p.Idle, p.Work, p.Priority = new(false), "up to 97 % within 30m", -10 }),
				stopped(3, func(p *Pod) {
					p.How, p.Owner, p.Work = "restarted", "Job/etl", ""
				})},
			Steps: []string{"lock gpu-node-1", "cordon gpu-node-1", "evict ml/inference-f84b5f8c7-1", "wait until the pod runs"},
			Rails: "hold it back now: a freeze window is open until 18:00", Back: []string{"while it goes on: unpend reject 24ac8de5d78c; what was begun is taken back"}, Undo: []string{"kubectl label node gpu-node-1 nvidia.com/mig.config=all-1g.5gb --overwrite   # once nobody holds its GPUs"}},
		"consent-bare": {Cluster: "context kind", Incident: d.Incident, Headline: headline, Fix: bare, Rails: "nothing holds it back now", Back: []string{"while it goes on: Ctrl-C"},
			Stops: []Pod{stopped(1, func(p *Pod) {
				p.Owner, p.Name = "", strings.Repeat("long-name-", 9)+"\x1b[31m"
			}), {PodName: diagnosis.PodName{Namespace: "ml", Name: "gone"}, How: "evicted", Unseen: true}}},
		"consent-nobody": {Cluster: "context kind", Incident: d.Incident, Headline: headline, Fix: nobody, Steps: []string{"uncordon a"}, Rails: "none: unpend is not installed here", Back: []string{"while it goes on: Ctrl-C"}},
	}
}

// What is consented to is shown whole, however wide the terminal is.
func TestConsentGolden(t *testing.T) {
	for name, c := range consents() {
		for _, columns := range []int{80, 140} {
			t.Run(fmt.Sprint(name, "/", columns), func(t *testing.T) {
				o := Options{style: style{ASCII: columns == 80, Width: columns}, Now: now}
				var b bytes.Buffer
				if err := Consents(&b, c, o); err != nil {
					t.Fatal(err)
				}
				golden(t, fmt.Sprintf("%s.%d.txt", name, columns), b.Bytes())
				flat := strings.Join(strings.Fields(b.String()), "")
				for _, p := range c.Stops {
					if want := clean(p.Namespace+"/"+p.Name, true); !strings.Contains(flat, want) {
						t.Errorf("%s is not named", want)
					}
				}
				for l := range strings.SplitSeq(strings.ReplaceAll(b.String(), "takes ~", "takes "), "\n") {
					command := strings.Contains(l, "kubectl label node")
					if w := ansi.StringWidth(l); w > columns && !command || strings.ContainsAny(l, "…~\x1b") {
						t.Errorf("%d columns, or cut: %q", w, l)
					}
				}
			})
		}
	}
	if err := Consents(broken{}, Consent{}, Options{}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}
