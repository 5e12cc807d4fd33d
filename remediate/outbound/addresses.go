package outbound

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// allowed is what may be spoken to although it is not public.
type allowed struct {
	names    []string
	networks []netip.Prefix
}

func allow(entries []string) (allowed, error) {
	var a allowed
	for _, e := range entries {
		if p, err := netip.ParsePrefix(e); err == nil {
			a.networks = append(a.networks, p.Masked())
			continue
		}
		if at, err := netip.ParseAddr(e); err == nil {
			a.networks = append(a.networks, netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()))
			continue
		}
		if e == "" || strings.ContainsAny(e, "/:@*? ") {
			return a, fmt.Errorf("outbound.allow: %q is no name, no address and no network: write one of these, without scheme, port or wildcard", e)
		}
		a.names = append(a.names, plain(e))
	}
	return a, nil
}

// plain is a name as it is compared.
func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func (a allowed) named(name string) bool { return slices.Contains(a.names, plain(name)) }

func (a allowed) within(at netip.Addr) bool {
	return slices.ContainsFunc(a.networks, func(p netip.Prefix) bool { return p.Contains(at) })
}

// plainly says whether a host may be spoken to without TLS.
func (a allowed) plainly(name string) bool {
	at, err := netip.ParseAddr(name)
	return a.named(name) || err == nil && a.within(at.Unmap())
}

// judge says whether an address that a name stands for may be dialed.
func (a allowed) judge(name, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return forbid("%s may not be spoken to: its address is not understood", name)
	}
	at := to.Addr().Unmap().WithZone("")
	if a.within(at) {
		return nil
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(k.networks, func(p netip.Prefix) bool { return p.Contains(at) }) {
			continue
		}
		if !k.never && a.named(name) {
			return nil
		}
		return forbid("%s may not be spoken to: it stands for %s, which is %s; list %s in outbound.allow if it is meant", name, at, k.is, k.list(name, at))
	}
	return nil
}

// kind is a sort of addresses that are not spoken to.
type kind struct {
	is       string
	never    bool // by the name of a host
	networks []netip.Prefix
}

func (k kind) list(name string, at netip.Addr) string {
	if k.never {
		return at.String()
	}
	return name
}

// kinds, the first counts. Special addresses:
// https://www.iana.org/assignments/iana-ipv4-special-registry and
// https://www.iana.org/assignments/iana-ipv6-special-registry
var kinds = []kind{
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html,
	// https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16,
	// https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
	{"a cloud's metadata service", true, networks("169.254.169.254/32", "169.254.170.2/32", "fd00:ec2::254/128", "fd20:ce::254/128", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32")},
	{"link-local", true, networks("169.254.0.0/16", "fe80::/10")},
	{"loopback", false, networks("127.0.0.0/8", "::1/128")},
	{"private", false, networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")},
	// An IPv4 address within an IPv6 one, which a gateway turns into the former.
	{"another address within one", true, networks("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")},
	{"not one of a host", true, networks("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"100::/64", "2001:2::/48", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10", "ff00::/8")},
}

func networks(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, s := range all {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
