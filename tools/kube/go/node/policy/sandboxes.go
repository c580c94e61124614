package policy

import (
	"net/netip"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"soperator-pulumi/node/gate"
)

// Long after the API server has told of every pod that has a sandbox.
const forgetAfter = 5 * time.Minute

// sandboxes knows the addresses of pods earlier than the API server, which learns them from the kubelet after containers have
// started. What it knows beats a pod's status, until both say the same.
type sandboxes struct {
	mutex sync.Mutex
	known map[types.NamespacedName]sandbox
}

type sandbox struct {
	gate.Sandbox
	at time.Time
}

func keyOf(s gate.Sandbox) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Pod}
}

func (s *sandboxes) started(of gate.Sandbox) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.known = map[types.NamespacedName]sandbox{}
	}
	s.known[keyOf(of)] = sandbox{of, time.Now()}
}

// ended takes the address away, unless a newer sandbox of the pod has started since.
func (s *sandboxes) ended(of gate.Sandbox) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if last, ok := s.known[keyOf(of)]; ok && last.ID == of.ID {
		last.Address, last.at = netip.Addr{}, time.Now()
		s.known[keyOf(of)] = last
	}
}

// apply returns the pods with the addresses that their sandboxes have, and forgets sandboxes that are of no use any more.
func (s *sandboxes) apply(pods []*v1.Pod) []*v1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken := map[string]types.NamespacedName{}
	for key, known := range s.known {
		if known.Address.IsValid() {
			taken[known.Address.String()] = key
		}
	}
	result := make([]*v1.Pod, 0, len(pods))
	present := map[types.NamespacedName]bool{}
	for _, p := range pods {
		key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		present[key] = true
		address := p.Status.PodIP
		if known, ok := s.known[key]; ok && (known.UID == "" || known.UID == string(p.UID)) {
			address = ""
			if known.Address.IsValid() {
				address = known.Address.String()
			}
		} else if owner, ok := taken[address]; ok && owner != key {
			address = "" // its sandbox is gone, and the address another pod's
		}
		if address != p.Status.PodIP {
			p = p.DeepCopy()
			p.Status.PodIP = address
		}
		result = append(result, p)
	}
	for key, known := range s.known {
		if !present[key] && time.Since(known.at) > forgetAfter {
			delete(s.known, key)
		}
	}
	return result
}
