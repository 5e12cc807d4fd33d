package watcher

import (
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
)

// Of a Job's labels the queue that it waits in is kept, and no other.
func TestAJobKeepsItsQueue(t *testing.T) {
	for name, tc := range map[string]struct{ has, want map[string]string }{
		"a queue": {map[string]string{incident.QueueLabel: "team", "app": "x"}, map[string]string{incident.QueueLabel: "team"}},
		"none":    {map[string]string{"app": "x"}, nil},
	} {
		kept, err := trim(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "u", Labels: tc.has}})
		j, is := kept.(*batchv1.Job)
		if err != nil || !is || !maps.Equal(j.Labels, tc.want) || j.Name != "train" || j.UID != "u" {
			t.Errorf("%s: %+v, %v", name, kept, err)
		}
	}
}
