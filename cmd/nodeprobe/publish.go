//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/unpend/unpend/nodeprobe"
)

// publisher writes the report of one node to the API. It needs the rights to
// get, create and update that one object, and never lists or watches. Not for
// concurrent use.
type publisher struct {
	reports dynamic.ResourceInterface
	node    string
	// written is the object as it was after our last write; nil: to be asked for.
	written *unstructured.Unstructured
}

func newPublisher(client dynamic.Interface, node string) *publisher {
	return &publisher{reports: client.Resource(nodeprobe.Resource), node: node}
}

// publish writes the report, over what is there. It is one write; a read comes
// before it only at the start and after an error. Labels and the like that
// others have put on the object stay.
func (p *publisher) publish(ctx context.Context, r nodeprobe.Report) error {
	report, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if p.written == nil {
		there, err := p.reports.Get(ctx, p.node, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("get NodeGeometry %s: %w", p.node, err)
		}
		if err == nil {
			p.written = there
		}
	}
	next := &unstructured.Unstructured{Object: map[string]any{}}
	if p.written != nil {
		next = p.written.DeepCopy()
	}
	next.SetGroupVersionKind(nodeprobe.Kind)
	next.SetName(p.node)
	next.Object["report"] = report
	write := func() (*unstructured.Unstructured, error) {
		if p.written == nil {
			return p.reports.Create(ctx, next, metav1.CreateOptions{FieldManager: program})
		}
		return p.reports.Update(ctx, next, metav1.UpdateOptions{FieldManager: program})
	}
	written, err := write()
	if err != nil {
		p.written = nil // whatever is there now must be asked for
		return fmt.Errorf("write NodeGeometry %s: %w", p.node, explain(err))
	}
	p.written = written
	return nil
}

// explain adds what an error of the API means here.
func explain(err error) error {
	// A path that no API serves is answered without the name of an object.
	var s apierrors.APIStatus
	if errors.As(err, &s) && apierrors.IsNotFound(err) && (s.Status().Details == nil || s.Status().Details.Name == "") {
		return fmt.Errorf("the cluster does not have the CRD nodegeometries.unpend.dev: %w", err)
	}
	return err
}

// document is the report as an object, for who prints it.
func document(node string, r nodeprobe.Report) nodeprobe.NodeGeometry {
	return nodeprobe.NodeGeometry{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodeprobe.Kind.GroupVersion().String(), Kind: nodeprobe.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: node}, Report: r,
	}
}
