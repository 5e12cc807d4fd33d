package knowledge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unpend/unpend/knowledge"
)

// scaled is what a library of so many threads takes.
type scaled struct {
	Documents             int
	Build, CPU, MB        float64 `json:",omitempty"` // seconds, seconds, on disk
	P50, P99              float64 `json:",omitempty"` // of a search, ms
	SearchCPU, CPU99      float64 `json:",omitempty"` // of the processor, ms: others use this machine, too
	SearchRSS, ImportPeak float64 `json:",omitempty"` // MB
}

// archive makes threads of some 60 words, by Zipf's law, with the names that teams use.
type archive struct{ documents int }

func (a archive) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 4, 30_000)
	for n := range a.documents {
		d := knowledge.Document{ID: fmt.Sprint("slack/", n), Source: "slack", Part: fmt.Sprint("C", n%40), PartName: fmt.Sprint("#team-", n%40),
			URL: fmt.Sprint("https://acme.slack.com/archives/C/p", n), Who: fmt.Sprint("U", n%500), Resolved: n%3 == 0,
			At: time.Date(2020, 1, 1, 0, n, 0, 0, time.UTC), Title: words(r, z, 8), Text: words(r, z, 45+r.IntN(31))}
		if err := to.Add(ctx, d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

var trade = strings.Fields("pod node gpu pending slice mig layout quota taint driver plugin cordoned nvidia.com/mig-2g.10gb nvidia.com/gpu 3g.20gb Insufficient evicted scheduler MIGFragmented")

func words(r *rand.Rand, z *rand.Zipf, n int) string {
	var b strings.Builder
	for range n {
		switch w := z.Uint64(); {
		case r.IntN(8) == 0:
			b.WriteString(trade[r.IntN(len(trade))])
		default:
			for ; ; w /= 20 {
				b.WriteByte("bcdfghjklmnpqrstvwxz"[w%20])
				b.WriteByte("aeiou"[w%5])
				if w < 20 {
					break
				}
			}
		}
		b.WriteByte(' ')
	}
	if r.IntN(50) == 0 {
		fmt.Fprintf(&b, "Xid %d gpu-node-%d", r.IntN(150), r.IntN(2000))
	}
	return b.String()
}

func memory(field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

const scaleVariable = "UNPEND_SCALE_OF" // documents and folder, for the process that is measured

// BenchmarkLibrary measures a library in processes of its own: one imports, one searches.
// UNPEND_SOAK=1 measures a million, too.
func BenchmarkLibrary(b *testing.B) {
	if of := os.Getenv(scaleVariable); of != "" {
		measured(b, of)
		return
	}
	sizes := []int{100_000}
	if os.Getenv("UNPEND_SOAK") != "" {
		sizes = append(sizes, 300_000, 1_000_000)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var s scaled
			for b.Loop() {
				dir := b.TempDir()
				for _, step := range []string{"import", "search"} {
					c := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkLibrary$", "-test.benchtime=1x")
					c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", scaleVariable, step, size, dir))
					out, err := c.Output()
					if err != nil {
						b.Fatalf("%v: %s", err, out)
					}
					_, found, _ := strings.Cut(string(out), "SCALED ")
					if err := json.NewDecoder(strings.NewReader(found)).Decode(&s); err != nil {
						b.Fatalf("%v: %s", err, out)
					}
				}
			}
			b.ReportMetric(s.Build, "build-s")
			b.ReportMetric(s.CPU, "build-cpu-s")
			b.ReportMetric(s.MB, "disk-MB")
			b.ReportMetric(s.ImportPeak, "import-peak-MB")
			b.ReportMetric(s.P50, "p50-ms")
			b.ReportMetric(s.P99, "p99-ms")
			b.ReportMetric(s.SearchCPU, "search-cpu-ms")
			b.ReportMetric(s.CPU99, "search-cpu-p99-ms")
			b.ReportMetric(s.SearchRSS, "search-RSS-MB")
		})
	}
}

func measured(b *testing.B, of string) {
	b.Helper()
	var step, dir string
	var s scaled
	if _, err := fmt.Sscan(of, &step, &s.Documents, &dir); err != nil {
		b.Fatal(err)
	}
	if step == "import" {
		imported(b, dir, &s)
	} else {
		searched(b, dir, &s)
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("SCALED %s\n", encoded)
}

func imported(b *testing.B, dir string, s *scaled) {
	b.Helper()
	began := time.Now()
	l, err := knowledge.EditLibrary(dir)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := l.Import(b.Context(), archive{s.Documents}, "slack", "archive", began); err != nil {
		b.Fatal(err)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	s.Build, s.ImportPeak = time.Since(began).Seconds(), memory("VmHWM")
	s.CPU = processor(b)
	bytes, err := l.Bytes()
	if err != nil {
		b.Fatal(err)
	}
	s.MB = float64(bytes) / 1e6
}

// processor is how many seconds of it this process has had.
func processor(b *testing.B) float64 {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return float64(use.Utime.Sec+use.Stime.Sec) + float64(use.Utime.Usec+use.Stime.Usec)/1e6
}

func searched(b *testing.B, dir string, s *scaled) {
	b.Helper()
	l, err := knowledge.OpenLibrary(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	queries := asked(b)
	const times = 500
	var took, used []float64
	before := processor(b)
	for n := range times {
		began, had := time.Now(), processor(b)
		if _, err := l.Search(b.Context(), queries[n%len(queries)].Ask, 3); err != nil {
			b.Fatal(err)
		}
		took, used = append(took, time.Since(began).Seconds()*1000), append(used, (processor(b)-had)*1000)
	}
	s.SearchCPU = (processor(b) - before) * 1000 / times
	slices.Sort(took)
	slices.Sort(used)
	s.CPU99 = used[len(used)*99/100]
	s.P50, s.P99, s.SearchRSS = took[len(took)/2], took[len(took)*99/100], memory("VmRSS")
}
