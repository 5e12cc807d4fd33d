package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/cluster"
)

const (
	// maxNodeMaps bounds how many ConfigMaps of single nodes are got, one by one.
	maxNodeMaps = 50
	// atOnce bounds how many are asked for at a time.
	atOnce = 8

	// How long an answer stands: a layout that somebody adds is offered within half
	// a minute; rights change seldom; an error may pass.
	fresh       = 30 * time.Second
	freshRights = 10 * time.Minute
	freshError  = 5 * time.Second
)

// layouts are the mig-parted ConfigMaps. Every diagnosis asks for them, so each
// answer is remembered for a while, a refusal too; what the rights exclude is not
// asked for at all.
type layouts struct {
	client kubernetes.Interface
	now    func() time.Time

	// failed is told of questions that the API server does not answer now; nil: nobody is.
	failed func(error)

	mu      sync.Mutex // held while asking: who comes meanwhile gets the same answers
	rights  map[string]rights
	answers map[types.NamespacedName]answer
}

// answer is what was said of one ConfigMap.
type answer struct {
	found   *corev1.ConfigMap // nil when there is none
	refused bool
	trouble string // any other error
	until   time.Time
}

func newLayouts(client kubernetes.Interface, now func() time.Time) *layouts {
	return &layouts{client: client, now: now, rights: map[string]rights{}, answers: map[types.NamespacedName]answer{}}
}

// read is what can be read of some ConfigMaps in some namespaces and of single ones besides,
// and why the rest cannot, and which of those; empty when nothing is in the way.
func (l *layouts) read(ctx context.Context, namespaces, shared, ofNodes []string, besides ...types.NamespacedName) (found []*corev1.ConfigMap, unread string, without map[types.NamespacedName]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wanted []types.NamespacedName
	var why []string
	for _, ns := range namespaces {
		may := l.mayGet(ctx, ns)
		for _, name := range shared {
			wanted = append(wanted, types.NamespacedName{Namespace: ns, Name: name})
		}
		readable := may.first(ofNodes)
		if over := len(readable) - maxNodeMaps; over > 0 {
			why = append(why, fmt.Sprintf("of %d configmaps of nodes in namespace %s only %d are read", len(readable), ns, maxNodeMaps))
			readable = readable[:maxNodeMaps]
		}
		for _, name := range readable {
			wanted = append(wanted, types.NamespacedName{Namespace: ns, Name: name})
		}
	}
	for _, one := range besides {
		l.mayGet(ctx, one.Namespace)
		if !slices.Contains(wanted, one) {
			wanted = append(wanted, one)
		}
	}
	l.ask(ctx, wanted)
	for _, ns := range namespaces {
		why = append(why, l.whyNot(ns, slices.Concat(shared, ofNodes))...)
	}
	for _, key := range wanted {
		if cm := l.answers[key].found; cm != nil {
			found = append(found, cm)
		}
	}
	without = map[types.NamespacedName]string{}
	for _, one := range besides {
		if missing := strings.Join(l.whyNot(one.Namespace, []string{one.Name}), ""); missing != "" {
			without[one] = missing
		}
	}
	return found, strings.Join(why, "; "), without
}

// whyNot says what is missing of one namespace, by name where not all of it is.
func (l *layouts) whyNot(ns string, names []string) []string {
	var refused, why []string
	for _, name := range names {
		a := l.answers[types.NamespacedName{Namespace: ns, Name: name}]
		switch {
		case a.refused || !l.rights[ns].get(name):
			refused = append(refused, name)
		case a.trouble != "":
			why = append(why, fmt.Sprintf("configmap %s/%s: %s", ns, name, a.trouble))
		}
	}
	switch {
	case len(refused) == 0:
	case len(refused) == len(names):
		why = append(why, "the right to get configmaps in namespace "+ns+" is missing")
	default:
		why = append(why, fmt.Sprintf("the right to get %d of %d configmaps in namespace %s is missing, %s among them", len(refused), len(names), ns, refused[0]))
	}
	return why
}

// ask gets what is wanted and not known, and forgets what nobody wants any more.
func (l *layouts) ask(ctx context.Context, wanted []types.NamespacedName) {
	known := l.answers
	l.answers = make(map[types.NamespacedName]answer, len(wanted))
	var mu sync.Mutex
	var gets errgroup.Group
	gets.SetLimit(atOnce)
	for _, key := range wanted {
		if a, ok := known[key]; ok && l.now().Before(a.until) {
			mu.Lock()
			l.answers[key] = a
			mu.Unlock()
			continue
		}
		if !l.rights[key.Namespace].get(key.Name) {
			continue
		}
		gets.Go(func() error {
			a := l.get(ctx, key)
			if before, told := known[key]; told && a.trouble != "" && before.trouble == "" {
				before.until, a = a.until, before // as what is watched, it stands until there is another
			}
			mu.Lock()
			defer mu.Unlock()
			l.answers[key] = a
			return nil
		})
	}
	gets.Wait() //nolint:errcheck // every answer is kept, errors too
}

func (l *layouts) get(ctx context.Context, key types.NamespacedName) answer {
	cm, err := l.client.CoreV1().ConfigMaps(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		cluster.Trim(cm)
		return answer{found: cm, until: l.now().Add(fresh)}
	case apierrors.IsNotFound(err):
		return answer{until: l.now().Add(fresh)}
	case apierrors.IsForbidden(err):
		return answer{refused: true, until: l.now().Add(freshRights)}
	}
	l.fail(err)
	return answer{trouble: err.Error(), until: l.now().Add(freshError)}
}

func (l *layouts) fail(err error) {
	if l.failed != nil {
		l.failed(err)
	}
}
