package refused

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// listCards shows which cards nodes have, by the annotation of the scheduler that shares them.
func listCards(c *edit.Workload) []string {
	register, _ := queues.Register(c.Queue)
	if register == "" {
		return nil
	}
	return []string{"kubectl get nodes -o custom-columns='NAME:.metadata.name,CARDS:.metadata.annotations." + strings.ReplaceAll(register, ".", `\.`) + "'"}
}

// askFewerCards is for the container that asks shares of more cards than any node has: nobody who leaves, and no smaller share,
// makes them more.
func askFewerCards(c *edit.Workload, k *queues.Cards, look string) edit.Change {
	ch := askLess(c, fmt.Sprintf("ask for at most %d %s in %s (%s now): each is a share of another card, and no node has more", k.Most, k.Resource, k.Who(), k.Amount()))
	ch.Commands = append([]string{look}, append(listCards(c), ch.Commands...)...)
	return ch
}
