package web_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/web"
)

var update = flag.Bool("update", false, "write the golden pages")

// golden holds what is shown against what was.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".html")
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: with -update it is written again: %s", name, diff)
	}
}

// desk notes what it was asked, and answers as it is told to.
type desk struct {
	trial web.Trial
	waits string
	err   error
	asked []string
}

func (d *desk) Try(_ context.Context, token, incident, plan string) (web.Trial, error) {
	d.asked = append(d.asked, strings.Join([]string{"try", token, incident, plan}, " "))
	return d.trial, d.err
}

func (d *desk) Approve(_ context.Context, token, incident, plan string) (string, error) {
	d.asked = append(d.asked, strings.Join([]string{"approve", token, incident, plan}, " "))
	return d.waits, d.err
}

func (d *desk) Reject(_ context.Context, token, incident, plan, reason string) error {
	d.asked = append(d.asked, strings.Join([]string{"reject", token, incident, plan, reason}, " "))
	return d.err
}

// underWay is a plan for an incident's first fix, in its third step.
func underWay(p notice.Proposal) notice.Notice {
	f := p.Finding.Fixes[0]
	return notice.Notice{What: notice.Running, Incident: p.Incident, Plan: f.Plan, Workload: p.Finding.Workload, Title: f.Title, Node: "gpu-1", Progress: "3/9", Step: "evict default/inference-f84b5f8c7-58svb",
		Approvers: []string{"ada@example.com"}, Began: noon.Add(-time.Minute), Since: noon.Add(-5 * time.Second)}
}

// geometries are of a node whose report is fresh, of one whose is not, and of GPUs that are
// sick, whole, or not to be believed.
func geometries(t testing.TB, s *site) {
	t.Helper()
	st, err := dump.Read([]string{filepath.Join("..", "..", "testdata", "scenarios", "all-1g")}, nil)
	must(t, err)
	fresh, old := *st.Geometries["gpu-1"], *st.Geometries["gpu-2"]
	fresh.Report.ObservedAt = metav1.NewTime(noon.Add(-time.Minute))
	sick, whole, held, wrong := fresh.Report.GPUs[0], fresh.Report.GPUs[0], fresh.Report.GPUs[0], fresh.Report.GPUs[0]
	sick.Index, sick.Healthy = 1, false
	whole.Index, whole.MIG, whole.Instances = 2, nil, nil
	held.Index, held.MIG, held.Instances, held.Holders = 3, nil, nil, []nodeprobe.Holder{{Namespace: "team-b", Pod: "big-0"}}
	wrong.Index, wrong.Instances = 4, []nodeprobe.Instance{{Profile: "1g.5gb", Start: 0, Size: 1}, {Profile: "2g.10gb", Start: 0, Size: 2}}
	fresh.Report.GPUs = append(slices.Clone(fresh.Report.GPUs), sick, whole, held, wrong)
	old.Report.ObservedAt = metav1.NewTime(noon.Add(-time.Hour))
	s.SetGeometry(&fresh)
	s.SetGeometry(&old)
}

// Each page is what it was: of a handful of causes, with a plan under way, to consent to, the
// list, the map, and where one signs in.
func TestGoldenPages(t *testing.T) {
	d := &desk{trial: web.Trial{Steps: []string{"cordon gpu-1", "evict default/inference-f84b5f8c7-58svb", "set nvidia.com/mig.config=all-2g.10gb on gpu-1", "uncordon gpu-1"}, Persons: "2 persons have to approve it: it stops 3 pods"}}
	s := newSite(t, func(o *web.Options) { o.Desk = d })
	golden(t, "sign-in", s.browser(t).get(t, "/sign-in?next=/cluster").body)
	b := s.browser(t).signIn(t, adas)
	golden(t, "empty", b.get(t, "/").body)
	for _, name := range []string{"all-1g", "MIGFragmented-contiguous", "QuotaExceeded", "GPUsFragmentedAcrossNodes", "SchedulingGated"} {
		p := scenario(t, name)
		if name == "QuotaExceeded" {
			p.Finding.Knowledge = []knowledge.Hit{{Source: "doc", Title: "Quotas <b>of</b> teams", URL: "https://wiki.example.com/quota", Quote: "ask the team's lead", At: noon.Add(-48 * time.Hour)},
				{Source: "doc", Title: "A file", URL: "javascript:alert(1)"}}
		}
		s.tell(t, p)
		golden(t, name, b.get(t, "/incidents/"+p.Incident).body)
		if name != "all-1g" {
			continue
		}
		golden(t, "consent", b.get(t, "/incidents/"+p.Incident+"/fixes/1?plan="+p.Finding.Fixes[0].Plan).body)
		p.Plans = []notice.Notice{underWay(p)}
		s.tell(t, p)
		golden(t, "under-way", b.get(t, "/incidents/"+p.Incident).body)
		ended := p.Plans[0]
		ended.What, ended.Since, ended.Progress, ended.Step = notice.Succeeded, noon, "", ""
		p.Plans, p.Resolved = []notice.Notice{ended}, noon.Add(-time.Second)
		s.tell(t, p)
		golden(t, "resolved", b.get(t, "/incidents/"+p.Incident).body)
	}
	golden(t, "list", b.get(t, "/").body)
	golden(t, "no-map", b.get(t, "/cluster").body)
	geometries(t, s)
	golden(t, "cluster", b.get(t, "/cluster").body)
	golden(t, "missing", b.get(t, "/nothing").body)
}
