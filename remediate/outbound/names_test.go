package outbound_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a name server: each name stands for addresses, the next ones from one question to
// the next, the last ones for good.
type names struct {
	mu     sync.Mutex
	stands map[string][][]netip.Addr
}

// resolver asks it.
func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		question := make([]byte, 4096)
		for {
			size, from, err := conn.ReadFrom(question)
			if err != nil {
				return // it is closed
			}
			conn.WriteTo(n.answer(question[:size]), from)
		}
	})
	t.Cleanup(func() {
		conn.Close()
		served.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	known := false
	for _, at := range n.of(strings.TrimSuffix(q.Name.String(), "."), q.Type == dnsmessage.TypeA, &known) {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
		switch {
		case at.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: at.As4()}})
		case at.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}})
		}
	}
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	body, err := m.Pack()
	if err != nil {
		return nil
	}
	return body
}

// of is what a name stands for now; with next it stands for the next from then on.
func (n *names) of(name string, next bool, known *bool) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.stands[name]
	if *known = len(all) > 0; !*known {
		return nil
	}
	if next && len(all) > 1 {
		n.stands[name] = all[1:]
	}
	return all[0]
}
