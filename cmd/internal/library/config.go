package library

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge/jira"
)

const (
	// defaultDocuments is room for some 250,000 threads of 60 words.
	defaultDocuments, minDocuments = 256 << 20, 1 << 20
	// slackEvery and jiraEvery are how often it is looked for what is new. Slack tells of it by
	// events, too.
	slackEvery, jiraEvery = time.Hour, 5 * time.Minute
	leastEvery            = time.Minute
)

// Config is what the team has said before, and a diagnosis quotes: the key knowledge of the
// configuration.
type Config struct {
	// Folder of Markdown runbooks and past incidents.
	Folder string `json:"folder"`
	// Library is the folder that documents are kept in; a temporary one without it, which is
	// filled again at every start: from the folder, and from the bus.
	Library string `json:"library"`
	// MaxBytes of documents on the bus, besides bus.maxBytes (256 MiB).
	MaxBytes bus.Bytes `json:"maxBytes"`
	// Slack and Jira are read by the process that leads, for all.
	Slack Slack `json:"slack"`
	Jira  Jira  `json:"jira"`
	// Embeddings is a model by which documents are also found by what they mean.
	Embeddings Embeddings `json:"embeddings"`
	// Tell says of channels, projects and folders where what they say may be quoted and found;
	// of what it does not name: everywhere, and of a private channel in that channel alone.
	Tell []TellRule `json:"tell"`
}

// Slack are the channels that are read.
type Slack struct {
	// TokenFile holds the token of an app of the own organisation (xoxb-…).
	TokenFile string `json:"tokenFile"`
	// AppTokenFile holds the app's token (xapp-…), by which events are heard in Socket Mode.
	// Where it is the same app as slack.appTokenFile names, leave it out: its events are heard
	// there, in the process that slack.heardBy says.
	AppTokenFile string `json:"appTokenFile"`
	// Channels to read, by name or id; no others are.
	Channels []string `json:"channels"`
	// PrivateChannels to read as well. They are quoted in themselves alone, and where
	// knowledge.tell says.
	PrivateChannels []string `json:"privateChannels"`
	// Every is how often it is looked for what is new (1h).
	Every *metav1.Duration `json:"every"`

	url string // of Slack's API, in tests
}

// Jira are the projects that are read.
type Jira struct {
	// URL of the site or server, https://example.atlassian.net.
	URL string `json:"url"`
	// Deployment is cloud or datacenter.
	Deployment string `json:"deployment"`
	// TokenFile holds the API token, on Data Center a personal access token.
	TokenFile string `json:"tokenFile"`
	// User is the account's e-mail address, on Cloud alone.
	User string `json:"user"`
	// Site that people browse, where it is not the URL.
	Site string `json:"site"`
	// Projects to read, by their keys.
	Projects []string `json:"projects"`
	// Every is how often it is looked for what is new (5m).
	Every *metav1.Duration `json:"every"`
	// Sweep is how often it is looked for what is gone (24h).
	Sweep *metav1.Duration `json:"sweep"`
}

// Given says whether Slack is read.
func (c Slack) Given() bool { return !reflect.DeepEqual(c, Slack{}) }

func (c Jira) given() bool { return !reflect.DeepEqual(c, Jira{}) }

// Given says whether there is anything to find.
func (c Config) Given() bool { return c.Folder != "" || c.Keeps() }

// Shared says whether there are documents that one process reads for all.
func (c Config) Shared() bool { return c.Slack.Given() || c.Jira.given() }

// Keeps says whether there is a library that outcomes are kept in.
func (c Config) Keeps() bool { return c.Shared() || c.Library != "" }

// Hears says whether events come by a connection of their own (Hear).
func (c Config) Hears() bool { return c.Slack.AppTokenFile != "" }

// Documents is how many bytes of them the bus has to have room for.
func (c Config) Documents() int64 {
	switch {
	case !c.Shared():
		return 0
	case c.MaxBytes == 0:
		return defaultDocuments
	}
	return int64(c.MaxBytes)
}

// InForce is the same with the defaults of what is not given.
func (c Config) InForce() Config {
	c.MaxBytes = bus.Bytes(c.Documents())
	if c.Slack.Given() {
		c.Slack.Every = &metav1.Duration{Duration: orElse(c.Slack.Every, slackEvery)}
	}
	if c.Jira.given() {
		c.Jira.Every = &metav1.Duration{Duration: orElse(c.Jira.Every, jiraEvery)}
		c.Jira.Sweep = &metav1.Duration{Duration: orElse(c.Jira.Sweep, jira.DefaultSweep)}
	}
	return c
}

// Check says what of it cannot be meant, by its key. Places are where something may be told;
// clicks is the file of the app's token by which clicks in Slack are heard, where they are.
func (c Config) Check(places []string, clicks string) error {
	var wrong []error
	say := func(bad bool, format string, of ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, of...))
		}
	}
	say(c.MaxBytes != 0 && c.MaxBytes < minDocuments, "knowledge.maxBytes is %d: it has to be %d or more", c.MaxBytes, minDocuments)
	for n, r := range c.Tell {
		if err := r.check(places); err != nil {
			wrong = append(wrong, fmt.Errorf("knowledge.tell[%d]: %w", n, err))
		}
	}
	if e := c.Embeddings; e.given() {
		say(e.URL == "" || e.Model == "", "knowledge.embeddings.url is %q and knowledge.embeddings.model is %q: both have to be given, an address up to and with /v1 and what the server there calls the model", e.URL, e.Model)
		say(!c.Keeps(), "knowledge.embeddings is given, and nothing to learn: set knowledge.library, knowledge.slack or knowledge.jira")
	}
	if s := c.Slack; s.Given() {
		say(s.TokenFile == "", "knowledge.slack.tokenFile is not given: it has to be a file that holds the token of an app of your organisation (xoxb-…)")
		say(len(s.Channels)+len(s.PrivateChannels) == 0, "knowledge.slack.channels and knowledge.slack.privateChannels are empty: name what may be read and quoted, by name or id")
		say(s.AppTokenFile != "" && s.AppTokenFile == clicks, "knowledge.slack.appTokenFile is slack.appTokenFile: leave it out, Slack gives an event to one of an app's connections only")
		wrong = append(wrong, often("knowledge.slack.every", s.Every))
	}
	if j := c.Jira; j.given() {
		say(j.TokenFile == "", "knowledge.jira.tokenFile is not given: it has to be a file that holds the account's token")
		if err := j.options().Validate(); err != nil {
			wrong = append(wrong, fmt.Errorf("knowledge.jira.%w", err))
		}
		wrong = append(wrong, often("knowledge.jira.every", j.Every), often("knowledge.jira.sweep", j.Sweep))
	}
	return errors.Join(wrong...)
}

func often(key string, d *metav1.Duration) error {
	if d != nil && d.Duration < leastEvery {
		return fmt.Errorf("%s is %s: it has to be %s or more", key, d.Duration, leastEvery)
	}
	return nil
}

func (c Jira) options() jira.APIOptions {
	o := jira.APIOptions{URL: c.URL, Deployment: c.Deployment, User: c.User, Site: c.Site, Projects: c.Projects, Only: true}
	if c.Sweep != nil {
		o.Sweep = c.Sweep.Duration
	}
	return o
}

// orElse is a duration of the configuration.
func orElse(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
