package service

import (
	"errors"

	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/rca/narrate"
)

// narrator speaks to the model; nil where none is configured.
func (s *Service) narrator() (*narrate.Narrator, func(error) error, error) {
	c := s.config.Narrate
	if !c.Given() {
		return nil, nil, nil
	}
	o := c.Options()
	var err error
	if c.KeyFile != "" {
		if o.Key, err = secrets.Read("narrate.keyFile", c.KeyFile); err != nil {
			return nil, nil, err
		}
		if o.Key == "" {
			return nil, nil, errors.New("narrate.keyFile: it holds no key")
		}
	}
	client, err := s.config.Outbound.Within(o.Deadline, o.Key)
	if err != nil {
		return nil, nil, err
	}
	if _, err := client.Parse("narrate.url", c.URL); err != nil {
		return nil, nil, err
	}
	o.HTTP, o.Now, o.Registerer = client.HTTP(), s.now, s.registry
	n, err := narrate.New(o)
	return n, func(err error) error { return client.Told("word a finding", err) }, err
}
