package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// sample is one that a Prometheus of the scenario has of the engine of a GPU, a ratio. Where
// the exporter's labels are not honoured the pod's stand under other names.
var sample = regexp.MustCompile(`(?m)^DCGM_FI_PROF_GR_ENGINE_ACTIVE\{.*?exported_namespace="([^"]+)",exported_pod="([^"]+)".*\} ([0-9.]+) |^DCGM_FI_PROF_GR_ENGINE_ACTIVE\{.*?namespace="([^"]+)",pod="([^"]+)".*\} ([0-9.]+) `)

// measured tells what a scenario's metrics say of who holds GPUs; nil where it has none.
func measured(t *testing.T, folder string) diagnosis.Measure {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "metrics.txt"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	most := map[diagnosis.PodName]float64{} // in percent
	for _, m := range sample.FindAllStringSubmatch(string(text), -1) {
		pod, value := diagnosis.PodName{Namespace: m[1] + m[4], Name: m[2] + m[5]}, m[3]+m[6]
		ratio, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		most[pod] = max(most[pod], 100*ratio)
	}
	return func(_ context.Context, at time.Time, holders []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
		const window, threshold = 30 * time.Minute, 5 // as the service has them by default
		out := map[diagnosis.PodName]diagnosis.Use{}
		for _, h := range holders {
			if worked, seen := most[h.PodName]; seen {
				u := diagnosis.Use{Watched: window, Max: worked, Idle: worked < threshold}
				if u.Idle {
					u.Since = at.Add(-window)
				}
				out[h.PodName] = u
			}
		}
		return out, nil
	}
}
