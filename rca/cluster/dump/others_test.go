package dump

import (
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/watcher/incident"
)

// A dump may hold anything: of what nobody reads the whole of the metadata is read, and what is
// no object of an API is ignored.
func TestOwnersInADump(t *testing.T) {
	s, err := Read([]string{"-"}, strings.NewReader(`
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml, ownerReferences: [{apiVersion: example.org/v1, kind: Run, name: r, controller: true}]}
---
apiVersion: example.org/v2
kind: Run
metadata: {name: r, namespace: ml, resourceVersion: "7", ownerReferences: [{apiVersion: example.org/v1, kind: Tenant, name: t, controller: true}]}
spec: {token: secret}
---
apiVersion: example.org/v1
kind: Run
metadata: {name: r, namespace: ml, resourceVersion: "3"}
---
{apiVersion: example.org/v1, kind: Tenant, metadata: {name: t, ownerReferences: [{apiVersion: other.org/v1, kind: Tenant, name: t, controller: true}]}}
---
{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, metadata: {labels: [what]}}
---
{apiVersion: unpend.dev/v1alpha1, kind: Remediation, metadata: {name: x}}
`))
	if err != nil {
		t.Fatal(err)
	}
	chain, lost := incident.Walk(s.Pods[0], s.Owner)
	want := []incident.Ref{{Kind: "Pod", Namespace: "ml", Name: "p"}, {Kind: "Run.example.org", Namespace: "ml", Name: "r"}, {Kind: "Tenant.example.org", Namespace: "ml", Name: "t"}, {Kind: "Tenant.other.org", Namespace: "ml", Name: "t"}}
	if !slices.Equal(chain, want) || s.OwnerUnread(lost) != "owners of this kind are not read" {
		t.Errorf("%v, %q", chain, s.OwnerUnread(lost))
	}
	if len(s.Owners) != 2 || s.Owners[0].ResourceVersion != "7" {
		t.Errorf("%+v", s.Owners)
	}
}
