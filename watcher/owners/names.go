// Package owners reads kinds of owners that are not Kubernetes' own and that a configuration
// names (rca.ownerKinds): a workflow that owns a Job, a trial of an experiment. Of each object
// the metadata is read and nothing else.
//
// Start at names.go, which says what may be named; served.go asks the API server for it, and
// read.go follows it or gets single objects.
package owners

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/unpend/unpend/watcher/incident"
)

// Names reads the names of kinds: plural and API group, such as workflows.argoproj.io. The
// error names each that is none, and says what to write.
func Names(entries []string) ([]schema.GroupResource, error) {
	var out []schema.GroupResource
	var wrong []error
	for _, entry := range entries {
		name, err := parse(entry)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case slices.Contains(out, name):
			wrong = append(wrong, fmt.Errorf("%q is named twice: leave one out", entry))
		default:
			out = append(out, name)
		}
	}
	return out, errors.Join(wrong...)
}

func parse(entry string) (schema.GroupResource, error) {
	name := schema.ParseGroupResource(entry)
	switch {
	case strings.Contains(entry, "*"):
		return name, fmt.Errorf("%q has a wildcard, and every kind has to be named: write the plural and the group, as in workflows.argoproj.io", entry)
	case name.Group == "" || len(validation.IsDNS1035Label(name.Resource)) > 0 || len(validation.IsDNS1123Subdomain(name.Group)) > 0:
		return name, fmt.Errorf("%q names no kind: write its plural, a dot and its group, without a version, as in workflows.argoproj.io ('kubectl api-resources -o name' lists them)", entry)
	}
	for _, k := range incident.Kinds {
		if own, _ := meta.UnsafeGuessKindToResource(k); own.GroupResource() == name {
			return name, fmt.Errorf("%q is read already: leave it out", entry)
		}
	}
	return name, nil
}
