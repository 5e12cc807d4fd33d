package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

// InstallCRDs creates every CRD of a folder, for the life of the control plane.
func (c *ControlPlane) InstallCRDs(tb testing.TB, folder string) {
	tb.Helper()
	if err := c.installCRDs(tb.Context(), folder); err != nil {
		tb.Fatal(err)
	}
}

// installCRDs creates every CRD of a folder and waits until they are served.
func (c *ControlPlane) installCRDs(ctx context.Context, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("no CRDs in %s", folder), err)
	}
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	for _, f := range files {
		if err := installCRD(ctx, client, f); err != nil {
			return fmt.Errorf("install %s: %w", filepath.Base(f), err)
		}
	}
	return nil
}

func installCRD(ctx context.Context, clients apiextensions.Interface, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return err
	}
	client := clients.ApiextensionsV1().CustomResourceDefinitions()
	// An API server whose etcd answers late may have written it at a first try of its own, and says so of the second.
	if _, err := client.Create(ctx, &crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, cond := range got.Status.Conditions {
			if cond.Type == apiextensionsv1.NonStructuralSchema && cond.Status == apiextensionsv1.ConditionTrue {
				return false, errors.New(cond.Message)
			}
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}
