package acceptance

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/unpend/unpend/"

// house says which of our packages each room may import: data flows from watcher
// to rca to remediate, imports point back. README draws the same.
var house = map[string][]string{
	"cmd/unpend":            {"cmd/internal/program"},
	"cmd/unpend/acceptance": {},
	"cmd/internal/program":  {"cmd/internal/agents", "cmd/internal/program/console", "cmd/internal/program/decisions", "cmd/internal/program/demo", "cmd/internal/program/recall", "cmd/internal/program/sources", "cmd/internal/service", "cmd/internal/service/settings", "cmd/internal/terminal", "knowledge", "rca", "rca/admission", "rca/capacity", "rca/cluster", "rca/cluster/dump", "rca/cluster/live", "rca/diagnosis", "rca/idle", "rca/scaling", "remediate/audit", "remediate/desk", "remediate/executor", "remediate/plan", "remediate/v1alpha1", "watcher/incident"},
	"cmd/internal/traces":   {},
	"cmd/internal/service":  {"cmd/internal/bus", "cmd/internal/library", "cmd/internal/parts", "cmd/internal/secrets", "cmd/internal/service/analyst", "cmd/internal/service/clients", "cmd/internal/service/desks", "cmd/internal/service/lead", "cmd/internal/service/settings", "cmd/internal/traces", "knowledge", "rca", "rca/capacity", "rca/cluster", "rca/cluster/live", "rca/diagnosis", "rca/fairqueue", "rca/narrate", "remediate/audit", "remediate/desk", "remediate/executor", "remediate/guard", "remediate/jira", "remediate/journal", "remediate/kubectl", "remediate/notice", "remediate/paging", "remediate/plan", "remediate/slack", "remediate/v1alpha1", "remediate/web", "watcher", "watcher/incident", "watcher/owners", "watcher/webhook"},
	"cmd/internal/library":  {"cmd/internal/bus", "cmd/internal/parts", "cmd/internal/secrets", "knowledge", "knowledge/embed", "knowledge/slack", "knowledge/jira", "remediate/outbound"},
	"cmd/internal/parts":    {},
	"cmd/internal/secrets":  {},
	"cmd/internal/bus":      {},
	"cmd/internal/agents":   {"rca/diagnosis", "rca/drawing"},
	"cmd/internal/terminal": {"rca/diagnosis", "rca/drawing", "remediate/v1alpha1"},
	"cmd/internal/world":    {"nodeprobe", "nodeprobe/sim", "rca/whatif/insitu", "remediate/v1alpha1"},
	"watcher":               {"watcher/incident", "watcher/events", "watcher/owners"},
	"watcher/incident":      {},
	"watcher/owners":        {"watcher/incident"},
	"watcher/events":        {},
	"watcher/webhook":       {},

	"watcher/incident/incidenttest":  {},
	"remediate/slack/fakeslack":      {},
	"remediate/jira/fakejira":        {},
	"knowledge/slack/slacktest":      {},
	"knowledge/jira/jiratest":        {},
	"remediate/notifytest/scenarios": {"remediate/notice", "rca", "rca/cluster/dump", "rca/diagnosis"},

	"rca":                   {"rca/admission", "rca/diagnosis", "rca/view", "rca/evict", "rca/devices", "rca/causes", "rca/fixes", "rca/cluster", "rca/placement", "rca/whatif", "watcher/incident", "knowledge"},
	"rca/diagnosis":         {"watcher/incident", "knowledge"},
	"rca/scaling":           {"rca/cluster"},
	"rca/view":              {"rca/diagnosis", "rca/cluster", "rca/placement", "rca/scaling", "rca/whatif", "watcher/incident", "nodeprobe"},
	"rca/evict":             {"rca/view", "rca/placement"},
	"rca/relayout":          {"rca/evict", "rca/view", "rca/placement", "nodeprobe"},
	"rca/devices":           {"rca/evict", "rca/view", "rca/diagnosis", "rca/cluster", "rca/whatif"},
	"rca/admission":         {"rca/view", "rca/diagnosis", "rca/cluster", "rca/whatif", "watcher/incident"},
	"rca/stack":             {"rca/view", "rca/diagnosis", "nodeprobe", "rca/stack/homes", "rca/stack/makers", "rca/stack/parts"},
	"rca/stack/makers":      {"rca/view", "rca/stack/parts"},
	"rca/stack/parts":       {"rca/view", "rca/diagnosis"},
	"rca/queues":            {"rca/view", "rca/diagnosis", "rca/scaling", "rca/whatif", "watcher/incident"},
	"rca/queues/full":       {"rca/queues", "rca/view", "rca/diagnosis", "watcher/incident"},
	"rca/growth":            {"rca/view", "rca/diagnosis", "rca/scaling"},
	"rca/upkeep":            {"rca/view", "rca/diagnosis"},
	"rca/stack/homes":       {"rca/view"},
	"rca/terms":             {"rca/evict", "rca/view", "rca/scaling", "rca/diagnosis"},
	"rca/layouts":           {"rca/view", "rca/diagnosis", "rca/placement", "nodeprobe"},
	"rca/kubelet":           {"rca/view", "rca/diagnosis", "rca/whatif", "watcher/incident", "rca/stack/homes", "rca/stack/parts"},
	"rca/gangs":             {"rca/terms", "rca/evict", "rca/view", "rca/diagnosis", "rca/whatif", "watcher/incident"},
	"rca/causes":            {"rca/admission", "rca/stack", "rca/stack/makers", "rca/queues", "rca/queues/full", "rca/growth", "rca/terms", "rca/layouts", "rca/kubelet", "rca/gangs", "rca/devices", "rca/evict", "rca/view", "rca/diagnosis", "rca/placement", "rca/whatif", "watcher/incident", "nodeprobe", "rca/upkeep"},
	"rca/edit":              {"rca/causes", "rca/stack/parts", "rca/admission", "rca/evict", "rca/view", "rca/diagnosis", "rca/relayout", "rca/whatif", "watcher/incident"},
	"rca/edit/edittest":     {"rca/edit", "rca/causes", "rca/devices", "rca/evict", "rca/view", "rca/diagnosis", "rca/rcatest", "watcher/incident", "nodeprobe", "nodeprobe/sim"},
	"rca/claims":            {"rca/edit", "rca/devices", "rca/kubelet", "rca/view", "rca/diagnosis"},
	"rca/outside":           {"rca/edit", "rca/gangs", "rca/stack/makers", "rca/stack/parts", "rca/queues", "rca/queues/full", "rca/scaling", "rca/view", "rca/diagnosis", "watcher/incident"},
	"rca/outside/refused":   {"rca/outside", "rca/edit", "rca/stack/parts", "rca/queues", "rca/queues/full", "rca/scaling", "rca/view", "rca/diagnosis", "watcher/incident"},
	"rca/admit":             {"rca/edit", "rca/admission", "rca/stack", "rca/view", "rca/diagnosis", "watcher/incident"},
	"rca/mend":              {"rca/edit", "rca/layouts", "rca/stack", "rca/terms", "rca/view", "rca/diagnosis", "nodeprobe", "watcher/incident", "rca/upkeep"},
	"rca/retry":             {"rca/mend", "rca/edit", "rca/kubelet", "rca/stack/parts", "rca/view", "rca/diagnosis", "watcher/incident"},
	"rca/changes":           {"rca/stack/makers", "rca/stack/parts", "rca/claims", "rca/outside", "rca/outside/refused", "rca/queues", "rca/admit", "rca/retry", "rca/mend", "rca/edit", "rca/causes", "rca/layouts", "rca/terms", "rca/view", "rca/diagnosis", "rca/relayout", "rca/whatif", "knowledge", "rca/upkeep"},
	"rca/fixes":             {"rca/admission", "rca/cluster", "rca/edit", "rca/changes", "rca/mend", "rca/kubelet", "rca/causes", "rca/evict", "rca/view", "rca/diagnosis", "rca/relayout", "rca/placement", "rca/whatif", "watcher/incident", "knowledge"},
	"rca/fairqueue":         {"watcher/incident"},
	"rca/capacity":          {"rca/evict", "rca/view", "rca/diagnosis", "rca/scaling", "rca/cluster", "rca/placement", "rca/whatif", "watcher/incident", "nodeprobe"},
	"rca/rcatest":           {"rca/cluster", "nodeprobe", "nodeprobe/sim"},
	"rca/cluster":           {"nodeprobe", "watcher/events", "watcher/incident", "watcher/owners"},
	"rca/cluster/shelf":     {"nodeprobe", "rca/cluster"},
	"rca/cluster/dump":      {"nodeprobe", "rca/cluster", "rca/cluster/shelf", "watcher/incident", "watcher/owners"},
	"rca/cluster/live":      {"nodeprobe", "rca/cluster", "rca/cluster/shelf", "watcher/events", "watcher/incident", "watcher/owners"},
	"rca/placement":         {"nodeprobe"},
	"rca/idle":              {"rca/diagnosis"},
	"rca/drawing":           {"rca/diagnosis"},
	"rca/narrate":           {"rca/diagnosis", "rca/drawing"},
	"rca/whatif":            {},
	"rca/whatif/insitu":     {},
	"knowledge":             {},
	"knowledge/embed":       {},
	"knowledge/embedtest":   {},
	"knowledge/slack":       {"knowledge"},
	"knowledge/jira":        {"knowledge"},
	"remediate/desk":        {"remediate/executor", "remediate/plan", "remediate/v1alpha1", "rca", "rca/diagnosis", "rca/cluster", "rca/cluster/live", "watcher/incident"},
	"remediate/executor":    {"remediate/act", "remediate/pace", "remediate/journal", "remediate/plan", "remediate/guard", "remediate/notice", "remediate/audit", "remediate/v1alpha1", "rca", "rca/diagnosis", "rca/cluster", "rca/cluster/live", "nodeprobe", "watcher/incident", "watcher/owners"},
	"remediate/act":         {"remediate/pace", "remediate/tally", "remediate/journal", "remediate/plan", "remediate/v1alpha1", "rca/view", "rca/diagnosis", "rca/cluster", "nodeprobe", "watcher/incident", "watcher/owners"},
	"remediate/pace":        {},
	"remediate/tally":       {"remediate/journal", "remediate/plan", "remediate/v1alpha1", "rca/view", "rca/diagnosis", "rca/cluster", "watcher/incident", "watcher/owners"},
	"remediate/journal":     {"remediate/plan", "remediate/audit", "remediate/v1alpha1", "rca/diagnosis"},
	"remediate/plan":        {"remediate/audit", "remediate/v1alpha1", "rca/diagnosis", "rca/cluster", "knowledge"},
	"remediate/notice":      {"rca/diagnosis", "watcher/incident"},
	"remediate/notifytest":  {"remediate/notice", "rca/diagnosis", "watcher/incident"},
	"remediate/wording":     {"remediate/notice", "rca/diagnosis", "rca/drawing"},
	"remediate/slack":       {"remediate/notice", "remediate/plan", "remediate/wording", "remediate/outbound", "rca/diagnosis"},
	"remediate/outbound":    {"remediate/notice"},
	"remediate/paging":      {"remediate/notice", "remediate/wording", "remediate/outbound", "watcher/webhook"},
	"remediate/web":         {"remediate/notice", "remediate/wording", "remediate/plan", "rca/diagnosis", "rca/placement", "knowledge", "nodeprobe"},
	"remediate/jira":        {"remediate/notice", "remediate/wording", "remediate/outbound", "rca/diagnosis"},
	"remediate/kubectl":     {"remediate/notice", "remediate/wording", "rca/diagnosis", "watcher/incident"},
	"remediate/guard":       {"remediate/v1alpha1", "rca/diagnosis"},
	"remediate/audit":       {},
	"remediate/v1alpha1":    {"rca/diagnosis", "watcher/incident"},
	"nodeprobe":             {},
	"nodeprobe/sim":         {"nodeprobe"},
	"testdata/alertmanager": {"testdata/built"},
	"testdata/built":        {},
	"testdata/chromium":     {},
	"testdata/controlplane": {"nodeprobe", "nodeprobe/sim", "testdata/built"},
	"testdata/mutants":      {},
	"testdata/oracle":       {},
	"testdata/prometheus":   {"testdata/built"},
	"testdata/chart":        {"testdata/controlplane"},

	"deploy/release": {"testdata/built"},

	"cmd/nodeprobe":          {"nodeprobe", "nodeprobe/nvml", "nodeprobe/podresources"},
	"nodeprobe/nvml":         {"nodeprobe"},
	"nodeprobe/podresources": {"nodeprobe"},

	"cmd/internal/program/console":   {"cmd/internal/terminal"},
	"cmd/internal/program/sources":   {"cmd/internal/program/console", "cmd/internal/terminal", "rca/admission", "rca/cluster", "rca/cluster/dump", "rca/cluster/live", "rca/diagnosis", "rca/idle", "remediate/executor", "remediate/plan", "watcher/events", "watcher/incident", "watcher/owners"},
	"cmd/internal/program/recall":    {"cmd/internal/program/console", "cmd/internal/terminal", "knowledge", "knowledge/embed", "knowledge/jira", "knowledge/slack", "rca/diagnosis", "remediate/outbound"},
	"cmd/internal/program/decisions": {"cmd/internal/bus", "cmd/internal/program/console", "cmd/internal/program/sources", "cmd/internal/terminal", "nodeprobe", "rca/cluster", "rca/cluster/live", "rca/diagnosis", "rca/view", "remediate/act", "remediate/desk", "remediate/executor", "remediate/journal", "remediate/plan", "remediate/v1alpha1", "watcher/incident"},
	"cmd/internal/program/demo":      {"cmd/internal/program/console", "cmd/internal/program/decisions", "cmd/internal/service", "cmd/internal/terminal", "cmd/internal/world", "nodeprobe/sim", "rca/cluster", "rca/cluster/live", "rca/diagnosis", "remediate/executor", "remediate/jira", "remediate/journal", "remediate/notice", "remediate/pace", "remediate/plan", "remediate/slack", "remediate/v1alpha1", "watcher/incident"},
	"cmd/internal/service/analyst":   {"rca", "rca/admission", "rca/cluster", "rca/cluster/live", "rca/diagnosis", "rca/view", "rca/whatif", "remediate/kubectl", "watcher/incident"},
	"cmd/internal/service/clients":   {"rca/cluster/live"},
	"cmd/internal/service/desks":     {"rca/diagnosis", "remediate/desk", "remediate/executor", "remediate/plan", "remediate/web"},
	"cmd/internal/service/lead":      {"remediate/pace"},
	"cmd/internal/service/settings":  {"cmd/internal/bus", "cmd/internal/library", "rca/diagnosis", "rca/idle", "rca/narrate", "remediate/pace", "remediate/jira", "remediate/notice", "remediate/outbound", "remediate/paging", "remediate/plan", "watcher/owners"},

	"watcher/owners/ownerstest": {"watcher/owners"},
}

func TestImportsPointBack(t *testing.T) {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../../../...", "../../../testdata/alertmanager", "../../../testdata/built", "../../../testdata/chart", "../../../testdata/chromium", "../../../testdata/controlplane", "../../../testdata/mutants", "../../../testdata/oracle", "../../../testdata/prometheus")
	list.Env = append(os.Environ(), "CGO_ENABLED=1") // else the probe is not seen
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		room := strings.TrimPrefix(fields[0], module)
		may, known := house[room]
		if !known && room != "deploy" {
			t.Errorf("%s is a room the house does not have", room)
		}
		for _, i := range fields[1:] {
			if other, ours := strings.CutPrefix(i, module); ours && !slices.Contains(may, other) {
				t.Errorf("%s imports %s: that wall is closed", room, other)
			}
		}
	}
}

// light are the rooms that only hold, show, store or send: they, and every adapter to come,
// do without the scheduler.
var light = []string{"watcher", "watcher/events", "watcher/owners", "rca/diagnosis", "rca/idle", "rca/drawing", "rca/narrate", "remediate/v1alpha1", "remediate/guard", "remediate/notice", "remediate/notifytest", "remediate/wording", "remediate/slack", "remediate/plan", "remediate/journal", "cmd/internal/terminal", "cmd/internal/bus", "cmd/internal/program/console", "cmd/internal/program/recall", "cmd/internal/library", "remediate/outbound", "remediate/paging", "remediate/jira", "remediate/kubectl", "cmd/internal/agents", "watcher/webhook", "remediate/web", "knowledge", "knowledge/slack", "knowledge/jira", "knowledge/embed"}

func TestLightRoomsLinkNoScheduler(t *testing.T) {
	list := []string{"list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`}
	for _, room := range light {
		list = append(list, module+room)
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	for _, room := range light {
		linked, seen := []string{module + room}, map[string]bool{}
		for len(linked) > 0 {
			dep := linked[0]
			linked = linked[1:]
			if seen[dep] {
				continue
			}
			if seen[dep] = true; strings.HasPrefix(dep, "k8s.io/kubernetes/") || strings.HasPrefix(dep, module+"rca/whatif") {
				t.Errorf("%s links %s", room, dep)
			}
			linked = append(linked, imports[dep]...)
		}
	}
}

// A model is asked for words in one room, whose rules hold what it says to the evidence.
func TestOneRoomAsksForWords(t *testing.T) {
	var rooms []string
	err := filepath.WalkDir("../../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), ".CreateChat"+"Completion") || strings.Contains(string(text), ".CreateResp"+"onse(") {
			rooms = append(rooms, filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil || !slices.Equal(rooms, []string{"../../../rca/narrate"}) {
		t.Errorf("%q ask, %v", rooms, err)
	}
}
