package shelf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

const aPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"x \"y\" ]"},"ownerReferences":[{"kind":"Job","name":"j","uid":"u"}]},
 "spec":{"nodeName":"n","containers":[{"name":"main","env":[{"name":"A","value":"secret"}],"resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":1}}}],
  "tolerations":[{"key":"a","operator":"Exists"}, {"tolerationSeconds": 30}],"affinity":{"podAffinity":null}},"status":{"phase":"Running"}}`

const aReport = `{"apiVersion":"unpend.dev/v1alpha1","kind":"NodeGeometry","metadata":{"name":"n"},"report":{"gpus":[
 {"index":0,"healthy":true,"profiles":[{"name":"1g.5gb","id":19,"starts":[0,1,2]}]},
 {"index":1,"profiles":[{"name":"1g.5gb","id":19,"starts":[0,1,2]}]},{"index":2,"profiles":[ ]}, null]}}`

// whole reads an object without looking what others have.
func whole(k *cluster.Kind, text string) (cluster.Object, error) {
	o, err := k.Decode(k.Resource.GroupVersion().String(), []byte(text))
	if err == nil {
		cluster.Trim(o)
	}
	return o, err
}

// What is read in parts is what is read whole, and what objects have alike is there once.
func TestPartsAreReadOnce(t *testing.T) {
	s, pods, reports := New(), cluster.KindNamed("Pod"), cluster.KindNamed(nodeprobe.Kind.Kind)
	read := func(k *cluster.Kind, text string) cluster.Object {
		t.Helper()
		got := s.assemble(k, k.Resource.GroupVersion().String(), []byte(text))
		want, err := whole(k, text)
		if err != nil || got == nil {
			t.Fatal(got, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		return got
	}
	a := read(pods, aPod).(*corev1.Pod)
	b := read(pods, strings.ReplaceAll(strings.ReplaceAll(aPod, `"p"`, `"q"`), ",", " ,\n\t")).(*corev1.Pod)
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.Spec.Tolerations[0] != &b.Spec.Tolerations[0] || &a.OwnerReferences[0] != &b.OwnerReferences[0] || a.Spec.Affinity != b.Spec.Affinity {
		t.Error("what two pods have alike is there twice")
	}
	if other := read(pods, strings.ReplaceAll(aPod, "main", "more")).(*corev1.Pod); &other.Spec.Containers[0] == &a.Spec.Containers[0] {
		t.Error("another's containers")
	}
	g := read(reports, aReport).(*nodeprobe.NodeGeometry).Report.GPUs
	if &g[0].Profiles[0] != &g[1].Profiles[0] || g[0].Untold || !g[1].Untold {
		t.Errorf("%+v", g)
	}
}

// A text that is unusual is read whole.
func TestUnusualTextIsReadWhole(t *testing.T) {
	k := cluster.KindNamed("Pod")
	for name, text := range map[string]string{
		"twice":           `{"metadata":{"name":"p"},"spec":{"tolerations":[{"key":"a"}],"tolerations":[{"value":"b"}]}}`,
		"a part twice":    `{"metadata":{"name":"p"},"spec":{"nodeName":"n"},"spec":{"tolerations":[{"key":"a"}]}}`,
		"in capitals":     `{"metadata":{"name":"p"},"spec":{"Tolerations":[{"key":"a"}],"tolerations":[{"value":"b"}]}}`,
		"written in code": `{"metadata":{"name":"p"},"spec":{"\u0074olerations":[{"key":"a"}]}}`,
		"a folded letter": `{"metadata":{"name":"p"},"spec":{"tolerationſ":[{"key":"a"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			if o := s.assemble(k, "v1", []byte(text)); o != nil {
				t.Errorf("read in parts: %v", o)
			}
			got, err := s.Read(k, "v1", []byte(text))
			want, wantErr := whole(k, text)
			if diff := cmp.Diff(want, got); diff != "" || err != nil || wantErr != nil {
				t.Error(diff, err, wantErr)
			}
		})
	}
}

// Whatever is wrong with a text, it is read, or refused, as if it were read whole, also
// where others like it have been read.
func TestPartsAreReadAsTheWhole(t *testing.T) {
	for name, text := range map[string]string{"Pod": aPod, nodeprobe.Kind.Kind: aReport} {
		t.Run(name, func(t *testing.T) {
			k, s := cluster.KindNamed(name), New()
			rapid.Check(t, func(rt *rapid.T) {
				b := []byte(text)
				for range rapid.IntRange(0, 3).Draw(rt, "edits") {
					from := rapid.IntRange(0, len(b)-1).Draw(rt, "from")
					to := min(len(b), from+rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2, 9, 40}).Draw(rt, "cut"))
					put := rapid.SampledFrom([]string{"", "", "{", "}", "[", "]", ",", ":", `"`, `\`, " ", "1 2", "null", "7", `"x"`, `"Spec":{},`, `"spec":{"containers":[]},`, "S", "é", "\x00"}).Draw(rt, "put")
					b = slices.Concat(b[:from], []byte(put), b[to:])
				}
				want, wantErr := whole(k, string(b))
				got, err := s.Read(k, k.Resource.GroupVersion().String(), b)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					rt.Fatalf("%s: %v, whole %v", b, err, wantErr)
				}
				if diff := cmp.Diff(want, got); wantErr == nil && diff != "" {
					rt.Fatalf("%s: %s", b, diff)
				}
			})
		})
	}
}

// Parts that no two objects have alike are not looked for any more, nor kept without end.
func TestPartsThatDifferAreReadWithTheirObject(t *testing.T) {
	s, k := New(), cluster.KindNamed("Pod")
	labels := parts["Pod"].to("metadata").to("labels").part
	for i := range 2 * shelved {
		text := fmt.Sprintf(`{"metadata":{"name":"p%d","labels":{"i":"%d"}},"spec":{"tolerations":[{"key":"a"}],"nodeSelector":{"pool":"%d"}}}`, i, i, i)
		if _, err := s.Read(k, "v1", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count[labels]; n != (tally{asked: enough}) {
		t.Errorf("labels: %+v", n)
	}
	if n := s.count[parts["Pod"].to("spec").to("tolerations").part]; n != (tally{2 * shelved, 2*shelved - 1}) {
		t.Errorf("tolerations: %+v", n)
	}
	if s.all > shelved {
		t.Errorf("%d are kept", s.all)
	}
}

// BenchmarkReadPods reads the pods of one workload from their text, in parts and whole.
func BenchmarkReadPods(b *testing.B) {
	k, texts := cluster.KindNamed("Pod"), make([][]byte, 1000)
	for i := range texts {
		texts[i] = []byte(strings.ReplaceAll(aPod, `"p"`, fmt.Sprintf(`"p%d"`, i)))
	}
	var perParts, perWhole float64
	for name, read := range map[string]func(*cluster.Kind, string, []byte) (cluster.Object, error){
		"parts": New().Read,
		"whole": func(k *cluster.Kind, _ string, data []byte) (cluster.Object, error) { return whole(k, string(data)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, text := range texts {
					if _, err := read(k, "v1", text); err != nil {
						b.Fatal(err)
					}
				}
			}
			if per := b.Elapsed().Seconds() / float64(b.N); name == "parts" {
				perParts = per
			} else {
				perWhole = per
			}
			if perParts > 0 && perWhole > 0 {
				b.ReportMetric(perParts/perWhole, "x-of-whole")
			}
		})
	}
}
