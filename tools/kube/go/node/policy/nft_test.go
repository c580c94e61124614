package policy

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

var nft = &Nft{Program: "nft", Table: "ours"}

func TestTheEmptyRulesetLetsAllTrafficPass(t *testing.T) {
	equal(t, nft.Script(Ruleset{}), `table ip ours {}
delete table ip ours
table ip ours {
  chain ingress {
    counter drop
  }
  chain egress {
    counter reject with icmp admin-prohibited
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
  }
  chain input {
    type filter hook input priority filter; policy accept;
    ct state established,related accept
  }
}
`)
}

func TestARulesetAsNftReadsIt(t *testing.T) {
	ruleset := Ruleset{
		Ingress: Direction{
			Isolated: ips("10.0.0.1"),
			Allowed: []Rule{
				{Policy: "a/one", Pods: ips("10.0.0.1"), Peers: ips("10.0.0.2", "10.0.0.3"), Ports: []Port{{v1.ProtocolTCP, 80, 80}, {v1.ProtocolTCP, 443, 443}}},
				{Policy: "a/two", Pods: ips("10.0.0.1"), AnyPeer: true, Ports: []Port{{v1.ProtocolUDP, 0, 0}, {v1.ProtocolTCP, 8000, 8010}}},
			},
		},
		Egress: Direction{
			Isolated: ips("10.0.0.2"),
			Allowed: []Rule{{Policy: "a/out", Pods: ips("10.0.0.2"), AnyPort: true, Blocks: []Block{
				{netip.MustParsePrefix("0.0.0.0/0"), []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.0.0/16")}},
			}}},
		},
	}
	equal(t, nft.Script(ruleset), `table ip ours {}
delete table ip ours
table ip ours {
  chain ingress {
    ip daddr { 10.0.0.1 } ip saddr { 10.0.0.2, 10.0.0.3 } tcp dport { 80, 443 } return comment "a/one"
    ip daddr { 10.0.0.1 } tcp dport 8000-8010 return comment "a/two"
    ip daddr { 10.0.0.1 } meta l4proto udp return comment "a/two"
    counter drop
  }
  chain egress {
    ip saddr { 10.0.0.2 } ip daddr 0.0.0.0/0 ip daddr != 10.0.0.0/8 ip daddr != 192.168.0.0/16 return comment "a/out"
    counter reject with icmp admin-prohibited
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ip saddr . ip daddr { 10.0.0.1 . 10.0.0.1, 10.0.0.2 . 10.0.0.2 } accept
    ip saddr { 10.0.0.2 } jump egress
    ip daddr { 10.0.0.1 } jump ingress
  }
  chain input {
    type filter hook input priority filter; policy accept;
    ct state established,related accept
    ip saddr { 10.0.0.2 } jump egress
  }
}
`)
}

func TestARuleWhosePeersDoNotExistAllowsNobody(t *testing.T) {
	script := nft.Script(Ruleset{Ingress: Direction{Isolated: ips("10.0.0.1"), Allowed: []Rule{{Policy: "a/p", Pods: ips("10.0.0.1"), AnyPort: true}}}})
	if strings.Contains(script, "return") {
		t.Errorf("a rule was written:\n%s", script)
	}
}

func TestALongNameFitsInAComment(t *testing.T) {
	rule := Rule{Policy: strings.Repeat("n", 63) + "/" + strings.Repeat("p", 253), Pods: ips("10.0.0.1"), AnyPeer: true, AnyPort: true}
	script := nft.Script(Ruleset{Ingress: Direction{Isolated: ips("10.0.0.1"), Allowed: []Rule{rule}}})
	_, rest, _ := strings.Cut(script, `comment "`)
	written, _, _ := strings.Cut(rest, `"`)
	if len(written) == 0 || len(written) > 127 {
		t.Errorf("the comment has %d bytes", len(written))
	}
}

func TestWhatNftSaysOfAFailureIsInTheError(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nft")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > /dev/null; echo 'no such hook' >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := (&Nft{Program: program, Table: "ours"}).Apply(context.Background(), Ruleset{})
	if err == nil || !strings.Contains(err.Error(), "no such hook") {
		t.Errorf("got %v", err)
	}
}
