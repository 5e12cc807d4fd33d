package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// dumped writes the fleet as `unpend dump` does and returns the path and the size.
func dumped(b *testing.B, f *rcatest.Fleet) (path string, size int) {
	b.Helper()
	data, err := f.List()
	if err != nil {
		b.Fatal(err)
	}
	st, err := dump.Read([]string{"-"}, bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	if err := dump.Write(&out, st, "json"); err != nil {
		b.Fatal(err)
	}
	path = filepath.Join(b.TempDir(), "dump.json")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return path, out.Len()
}

// cpu is the processor time this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWhyOnADump is `unpend why -A -f` on 1,000 nodes with 10,000 pods, five
// of them waiting, the reading of the dump included. On a machine that others use
// too the processor time tells more than the clock.
func BenchmarkWhyOnADump(b *testing.B) {
	for _, gpus := range []int{2, 8} {
		b.Run(fmt.Sprintf("%d-gpus", gpus), func(b *testing.B) { benchmarkWhy(b, rcatest.MakeFleet(1000, gpus, 10, 5, time.Now())) })
	}
	b.Run("5000-nodes", func(b *testing.B) { benchmarkWhy(b, rcatest.MakeFleet(5000, 8, 10, 5, time.Now())) })
}

func benchmarkWhy(b *testing.B, f *rcatest.Fleet) {
	path, size := dumped(b, f)
	var out, errs bytes.Buffer
	before := cpu(b)
	for b.Loop() {
		out.Reset()
		if code := Run(b.Context(), []string{"unpend", "why", "-A", "-f", path, "-o", "json"}, console.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
			b.Fatalf("exit %d: %s", code, errs.String())
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/why")
	b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N), "cpu-s/why")
	b.ReportMetric(float64(size)/(1<<20), "MiB")
	var list diagnosis.List
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Items) != len(f.Jobs) {
		b.Fatalf("%d diagnoses, %v", len(list.Items), err)
	}
	for _, d := range list.Items {
		if len(d.Nodes) != len(f.Nodes) || len(d.Fixes) == 0 {
			b.Fatalf("%s: %d nodes, %d fixes", d.Headline, len(d.Nodes), len(d.Fixes))
		}
	}
}
