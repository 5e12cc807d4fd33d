package incident

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// An incident has the highest priority of its pods, those included that were refused before
// they existed, and none where no pod says: 0 is a priority. A resolved one is of no pod.
func TestPriorityIsTheHighest(t *testing.T) {
	of := func(all ...any) (pods []*corev1.Pod) {
		for _, value := range all {
			p := incidenttest.WaitingPod("p", "nvidia.com/gpu", incidenttest.Owned("Job", "j"))
			if v, says := value.(int); says {
				is := int32(v) //nolint:gosec // of this test
				p.Spec.Priority = &is
			}
			pods = append(pods, p)
		}
		return pods
	}
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		refused []*corev1.Pod
		want    string
	}{
		"nobody says":        {of(nil, nil), nil, ``},
		"none":               {of(0, nil), nil, `"priority":0`},
		"the highest":        {of(-5, 7, 3), nil, `"priority":7`},
		"below none":         {of(-5, -7), nil, `"priority":-5`},
		"of those to come":   {of(1), of(9), `"priority":9`},
		"those alone":        {nil, of(9, 2), `"priority":9`},
		"nobody says, there": {of(1), of(nil), `"priority":1`},
	} {
		var refusals []Refusal
		for _, p := range c.refused {
			refusals = append(refusals, Refusal{Pod: p, Missing: 1})
		}
		all := Group(c.pods, incidenttest.Owners{"Job/ml/j": nil}.Find, refusals...)
		if len(all) != 1 {
			t.Fatalf("%s: %+v", name, all)
		}
		body, err := json.Marshal(all[0])
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && strings.Contains(string(body), "priority") || !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %s", name, body)
		}
		if all[0].AsResolved().Priority != nil {
			t.Errorf("%s: it is over, and has a priority", name)
		}
	}
}
