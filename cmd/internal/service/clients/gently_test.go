package clients

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster/live"
)

// However many clients ask, the API server hears of no more than one limit allows.
func TestOneLimitForAllClients(t *testing.T) {
	var heard atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)) //nolint:errcheck // the client would notice
	}))
	defer server.Close()
	client, custom, err := live.Clients(Gently(&rest.Config{Host: server.URL, QPS: 500, Burst: 1000}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	for refused := 0; refused < 2; { // the limiter refuses what it could not let through in time
		refused = 0
		if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
			refused++
		}
		if _, err := custom.Resource(nodeprobe.Resource).List(ctx, metav1.ListOptions{}); err != nil {
			refused++
		}
	}
	most := ownAtStart + ownCalls*time.Since(began).Seconds() + 1
	if got := float64(heard.Load()); got < ownAtStart || got > most {
		t.Errorf("heard of %.0f requests in %s, want %d to %.0f", got, time.Since(began), ownAtStart, most)
	}
}
