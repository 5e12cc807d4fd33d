package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// newer is ErrNewer for a plan, or a journal, whose schema this program does not know; it
// is no more than refused. nil for one that it does.
func newer(rem *v1alpha1.Remediation) error {
	if !rem.Newer() {
		return nil
	}
	return fmt.Errorf("%w: plan %.12s %w (schema %d, this one knows %d) and is left alone", ErrRefused, rem.Name, ErrNewer, rem.Written(), v1alpha1.Schema)
}

// schemaOf is a schema as it stands in an object, also in one that cannot be read.
func schemaOf(u *unstructured.Unstructured, part string) int {
	n, _, err := unstructured.NestedInt64(u.Object, part, "schema")
	if err != nil {
		return 0
	}
	return int(n)
}

// kept is a plan as it is to be written over what is stored: the fields of the stored
// status that this program does not know stay as they are.
func kept(stored *unstructured.Unstructured, rem *v1alpha1.Remediation) (*unstructured.Unstructured, error) {
	was, err := as[v1alpha1.Remediation](stored, nil)
	if err != nil {
		return nil, err
	}
	known, err := plain(was)
	if err != nil {
		return nil, err
	}
	now, err := plain(rem)
	if err != nil {
		return nil, err
	}
	keep(stored.Object["status"], known.Object["status"], now.Object["status"])
	return now, nil
}

// keep gives now what was there and is not known, at every depth. The lists of a journal
// only grow: a line keeps its place.
func keep(was, known, now any) {
	switch was := was.(type) {
	case map[string]any:
		known, _ := known.(map[string]any)
		now, ok := now.(map[string]any)
		if !ok {
			return
		}
		for name, value := range was {
			if _, is := now[name]; is {
				keep(value, known[name], now[name])
			} else if _, ours := known[name]; !ours && value != nil {
				now[name] = value
			}
		}
	case []any:
		known, _ := known.([]any)
		now, _ := now.([]any)
		for i := range min(len(was), len(known), len(now)) {
			keep(was[i], known[i], now[i])
		}
	}
}
