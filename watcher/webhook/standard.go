package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
const (
	// SecretPrefix begins a secret, which is in base64.
	SecretPrefix = "whsec_"
	// leastSecret and mostSecret are of the secret itself, in bytes.
	leastSecret, mostSecret = 24, 64
	// tolerance is how far a call's time may be from ours.
	tolerance = 5 * time.Minute
	// remembered is how long a call is: one that is older is refused by its time.
	remembered = 2 * tolerance
	// maxID is of a call's id, ours.
	maxID = 255
)

// Secrets reads secrets as Standard Webhooks writes them; key is where they stand.
func Secrets(key string, secrets []string) (keys [][]byte, err error) {
	for _, s := range secrets {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, SecretPrefix))
		if err != nil || !strings.HasPrefix(s, SecretPrefix) || len(raw) < leastSecret || len(raw) > mostSecret {
			return nil, fmt.Errorf("%s: a secret is %s and %d to %d bytes in base64", key, SecretPrefix, leastSecret, mostSecret)
		}
		keys = append(keys, raw)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: it holds no secret", key)
	}
	return keys, nil
}

// Sign is the signature of a message by one secret.
func Sign(key []byte, id, timestamp string, body []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(id + "." + timestamp + "."))
	m.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// signed says whether one of several signatures is by one of several secrets.
func signed(keys [][]byte, signatures, id, timestamp string, body []byte) bool {
	return anyOf(strings.Fields(signatures), keys, func(key []byte) string { return Sign(key, id, timestamp, body) })
}

// anyOf says whether one of the signatures given is one that a secret makes. Each is made
// once, however many are given, and compared in constant time.
func anyOf(given []string, keys [][]byte, sign func(key []byte) string) bool {
	return slices.ContainsFunc(keys, func(key []byte) bool {
		want := []byte(sign(key))
		return slices.ContainsFunc(given, func(is string) bool { return hmac.Equal([]byte(is), want) })
	})
}

// standard reads a call that is signed. Its sender makes a new time for each try: the same
// id with the same time is a replay, with another it was dealt with before.
func (h *Hooks) standard(keys [][]byte) reader {
	return func(w http.ResponseWriter, r *http.Request) (called, error) {
		id, timestamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		if id == "" || len(id) > maxID || err != nil {
			return called{}, refuse(http.StatusBadRequest, "malformed", "the headers webhook-id and webhook-timestamp say nothing")
		}
		all, err := body(w, r, maxBody)
		if err != nil {
			return called{}, err
		}
		if !signed(keys, r.Header.Get("webhook-signature"), id, timestamp, all) {
			return called{}, refuse(http.StatusUnauthorized, "forged", "no signature in webhook-signature is by a secret of hooks.secretFile")
		}
		at, now := time.Unix(seconds, 0), h.opts.Now()
		if off := now.Sub(at); off > tolerance || off < -tolerance {
			return called{}, refuse(http.StatusUnauthorized, "old", "webhook-timestamp is more than %s from the time here", tolerance)
		}
		var says struct {
			call
			Data call `json:"data"`
		}
		if err := json.Unmarshal(all, &says); err != nil {
			return called{}, refuse(http.StatusBadRequest, "malformed", "the body is no JSON that names pods")
		}
		had, fresh := h.claim("standard/"+id, at, remembered)
		if !fresh && had.Equal(at) {
			return called{}, refuse(http.StatusConflict, "replayed", "this call came before")
		}
		if !fresh {
			h.renew("standard/"+id, at)
			return called{do: h.look(nil)}, nil
		}
		return called{do: h.look(append(says.pods(), says.Data.pods()...)), claimed: []string{"standard/" + id}}, nil
	}
}

// call is what names pods in a body, or in the data of a CloudEvent.
type call struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Pods      []Pod  `json:"pods"`
}

func (c call) pods() []Pod {
	if c.Pod == "" {
		return c.Pods
	}
	return append(c.Pods, Pod{c.Namespace, c.Pod})
}
