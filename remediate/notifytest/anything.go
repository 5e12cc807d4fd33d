package notifytest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// hostile are texts that tenants may have in names, annotations and events.
var hostile = []string{"", "a", "<!channel>", "<!here|x>", "<@U0ADA>", "<https://evil.example|gpu-1>", "*bold* _it_ ~no~ `code` ```", ":fire:", "&amp;<b>x</b>", "\x1b[31mred\x1b]8;;x\x07", "\u202egnp.exe\u2066", "سلام שלום", "👩‍👩‍👧‍👦🔥",
	"line\nline\r\n\tline", "\u200b\ufeff", "\xff\xfe", "https://evil.example/" + strings.Repeat("x", 300), strings.Repeat("long ", 4000), strings.Repeat("🔥", 10000), strings.Repeat("\"\\", 3000)}

// fill has every field of a value hold something.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		n := len(hostile)
		if r.IntN(10) > 0 {
			n -= 3 // the long ones are rare
		}
		v.SetString(hostile[r.IntN(n)])
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(r.IntN(20)) - 2)
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		n := r.IntN(1 + 1<<r.IntN(4))
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(8) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, f := range v.Fields() {
			if f.CanSet() {
				fill(r, f)
			}
		}
	}
}

// Anything is a finding with everything in it that tenants can write, and what a plan says.
func Anything(r *rand.Rand, id string, now time.Time) notice.Proposal {
	p := notice.Proposal{Finding: &diagnosis.Summary{}}
	fill(r, reflect.ValueOf(p.Finding).Elem())
	fill(r, reflect.ValueOf(&p.Plans).Elem())
	fill(r, reflect.ValueOf(&p.Wording).Elem())
	p.Plans = p.Plans[:min(len(p.Plans), 2)]
	for k := range p.Plans {
		p.Plans[k].Plan = fmt.Sprintf("%064x", k)
		p.Plans[k].What = []string{notice.Pending, notice.Running, notice.Succeeded, notice.Parked, "<!channel>"}[r.IntN(5)]
	}
	p.Incident, p.Finding.Incident = id, id
	p.Finding.Pods.Since, p.Read = now, now
	return p
}
