package service

import (
	"context"
	"slices"

	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/remediate/notice"
)

// meant says whether people are to be told of an incident in this destination. What is no
// incident goes to what the places' own configurations name.
func (k *sink) meant(p notice.Proposal) bool {
	i := slices.IndexFunc(k.config.Routes, func(r settings.Route) bool { return r.Fits(p) })
	if i < 0 || p.Alarm != "" || k.place == settings.OnPage {
		return k.at == ""
	}
	r := k.config.Routes[i]
	return slices.Contains(r.To, k.place) && r.At[k.place] == k.at
}

// routed tells of an incident, if it is for this destination, or because people were told of
// it here before, who would wait for its end otherwise.
func (k *sink) routed(ctx context.Context, p notice.Proposal) error {
	if !k.meant(p) {
		told, err := memory{k.bus, k.name}.load(ctx, p.Incident)
		if err != nil || told == nil {
			return err
		}
	}
	return k.Notify(ctx, p)
}
