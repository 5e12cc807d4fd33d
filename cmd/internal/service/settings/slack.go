package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// slackConfig is the channel that people are told in.
type slackConfig struct {
	// TokenFile holds the token of the app's bot (xoxb-…).
	TokenFile string `json:"tokenFile"`
	// Channel is its id (C…).
	Channel string `json:"channel"`
	// Cluster is what people call this one; its uid's beginning without it.
	Cluster string `json:"cluster"`
	// AppTokenFile holds the app's token (xapp-…), by which clicks are heard in Socket Mode.
	AppTokenFile string `json:"appTokenFile"`
	// SigningSecretFile holds the app's signing secret, for clicks that come by HTTP instead.
	SigningSecretFile string `json:"signingSecretFile"`
	// Listen is the address whose /slack Slack has to reach then, such as :9095.
	Listen string `json:"listen"`
	// HeardBy is the role whose process hears clicks, and acts as who clicked: remediate or
	// notify (remediate).
	HeardBy string `json:"heardBy"`
}

// Heard says whether clicks are heard, which may be by another process than the one that posts.
func (c slackConfig) Heard() bool { return c.AppTokenFile != "" || c.Listen != "" }

// Hearer is the role whose process hears them.
func (c slackConfig) Hearer() string { return cmp.Or(c.HeardBy, "remediate") }

func (c slackConfig) check() error {
	switch {
	case c == (slackConfig{}):
		return nil
	case c.Channel == "" || c.TokenFile == "":
		return fmt.Errorf("slack.channel is %q and slack.tokenFile is %q: it has to be the id of a channel (C…), and a file that holds the token of the app's bot (xoxb-…)", c.Channel, c.TokenFile)
	case (c.Listen == "") != (c.SigningSecretFile == ""):
		return fmt.Errorf("slack.listen is %q and slack.signingSecretFile is %q: to hear clicks by HTTP it has to be an address, and a file that holds the app's signing secret", c.Listen, c.SigningSecretFile)
	case !slices.Contains([]string{"remediate", "notify"}, c.Hearer()):
		return fmt.Errorf("slack.heardBy is %q: it has to be remediate or notify", c.HeardBy)
	case c.AppTokenFile != "" && c.Listen != "":
		return errors.New("slack.appTokenFile and slack.listen are two ways for clicks to come: it has to be one")
	}
	return nil
}

// SlackChannels are those that messages with buttons may be in.
func (c Config) SlackChannels() []string {
	out := []string{c.Slack.Channel}
	for _, r := range c.Routes {
		if at := r.At["slack"]; at != "" && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}
