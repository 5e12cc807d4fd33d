package world

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	validationfield "k8s.io/apimachinery/pkg/util/validation/field"
	k8stesting "k8s.io/client-go/testing"
)

// patch applies a merge, strategic merge or JSON patch.
func (s *store) patch(a k8stesting.PatchActionImpl) (runtime.Object, error) {
	current, err := s.tracker.Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch a.GetPatchType() {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, a.GetPatch())
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, a.GetPatch(), current)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(a.GetPatch()); err == nil {
			after, err = p.Apply(before)
		}
	default:
		err = fmt.Errorf("patch type %s is not served here", a.GetPatchType())
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj := reflect.New(reflect.TypeOf(current).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(after, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := sameUID(a, current, obj); err != nil {
		return nil, err
	}
	return s.update(a.GetResource(), a.GetSubresource(), obj, a.GetNamespace(), len(a.PatchOptions.DryRun) > 0)
}

// sameUID refuses a patch with another uid as the API server does: as invalid,
// while an update is in conflict. A stale version comes first.
func sameUID(a k8stesting.PatchActionImpl, current, patched runtime.Object) error {
	was, err := meta.Accessor(current)
	if err != nil {
		return err
	}
	is, err := meta.Accessor(patched)
	if err != nil {
		return err
	}
	if stale := is.GetResourceVersion() != "" && is.GetResourceVersion() != was.GetResourceVersion(); stale || is.GetUID() == was.GetUID() {
		is.SetUID(was.GetUID())
		return nil
	}
	kind := schema.GroupKind{Group: a.GetResource().Group, Kind: reflect.TypeOf(current).Elem().Name()}
	return apierrors.NewInvalid(kind, a.GetName(), validationfield.ErrorList{validationfield.Invalid(validationfield.NewPath("metadata", "uid"), is.GetUID(), "field is immutable")})
}
