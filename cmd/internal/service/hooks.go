package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/fairqueue"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/webhook"
)

// hooks serves them until ctx ends; one whose secret nobody has named is not there.
func (s *Service) hooks(ctx context.Context, q *fairqueue.Queue) error {
	c := s.config.Hooks
	if c.TokenFile == "" && c.SecretFile == "" && c.PagerDutySecretFile == "" {
		return errors.New("hooks.listen is set, hooks.tokenFile, hooks.secretFile and hooks.pagerDutySecretFile are not: anybody could call")
	}
	id, err := live.ID(ctx, s.client)
	if err != nil {
		return err
	}
	o := webhook.Options{Look: s.lookNow(q.Put), Said: s.said(id[:min(len(id), 8)]), Now: s.now, Logger: s.logger, Registerer: s.registry}
	if c.TokenFile != "" {
		if o.Token, err = secrets.Read("hooks.tokenFile", c.TokenFile); err != nil {
			return err
		}
		if o.Token == "" {
			return errors.New("hooks.tokenFile: it holds no token")
		}
	}
	if o.Secrets, err = signedBy("hooks.secretFile", c.SecretFile); err != nil {
		return err
	}
	if o.PagerDuty, err = signedBy("hooks.pagerDutySecretFile", c.PagerDutySecretFile); err != nil {
		return err
	}
	h, err := webhook.New(o)
	if err != nil {
		return err
	}
	return serve(ctx, "hooks", c.Listen, &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10})
}

// signedBy reads a file that holds secrets, a line each; none where there is no file.
func signedBy(key, path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := secrets.Read(key, path)
	if err != nil {
		return nil, err
	}
	all := strings.Fields(text)
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it holds no secret", key)
	}
	return all, nil
}

// lookNow has the incidents of pods diagnosed again, as if there were news of them.
func (s *Service) lookNow(put func(incident.Incident)) func(context.Context, []webhook.Pod) error {
	return func(ctx context.Context, pods []webhook.Pod) error {
		if s.lead.Leads(ctx) == nil {
			return errors.New("another process is the one that diagnoses")
		}
		return s.bus.Kept(ctx, bus.Incidents, func(body []byte) error {
			var i incident.Incident
			if json.Unmarshal(body, &i) == nil && !i.Resolved && slices.ContainsFunc(pods, func(p webhook.Pod) bool { return mayBeOf(i, p) }) {
				put(i)
			}
			return nil
		})
	}
}

// mayBeOf says whether a pod is of an incident, as far as an incident names its pods.
func mayBeOf(i incident.Incident, p webhook.Pod) bool {
	return i.Workload.Namespace == p.Namespace && (i.Waiting > len(i.Pods) || slices.ContainsFunc(i.Pods, func(r incident.PodRef) bool { return r.Name == p.Name }))
}
