package policy

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"soperator-pulumi/node/gate"
)

func sandboxOf(p *v1.Pod, id, address string) gate.Sandbox {
	return gate.Sandbox{ID: id, Namespace: p.Namespace, Pod: p.Name, UID: string(p.UID), Address: ip(address)}
}

func addressesOf(pods []*v1.Pod) []string {
	var found []string
	for _, p := range pods {
		found = append(found, p.Status.PodIP)
	}
	return found
}

func TestASandboxsAddressBeatsThePodsStatus(t *testing.T) {
	var s sandboxes
	s.started(sandboxOf(web, "new", "10.0.0.99"))
	equal(t, addressesOf(s.apply([]*v1.Pod{web, client})), []string{"10.0.0.99", "10.0.0.3"})
	equal(t, web.Status.PodIP, "10.0.0.1") // the informer's own object is left alone
}

func TestAnAddressThatAnotherSandboxHasIsNoLongerThePodsThatHadIt(t *testing.T) {
	var s sandboxes
	s.started(sandboxOf(web, "new", client.Status.PodIP))
	equal(t, addressesOf(s.apply([]*v1.Pod{web, client})), []string{"10.0.0.3", ""})
}

func TestTheEndOfAnOldSandboxDoesNotTakeTheNewOnesAddress(t *testing.T) {
	var s sandboxes
	s.started(sandboxOf(web, "old", "10.0.0.98"))
	s.started(sandboxOf(web, "new", "10.0.0.99"))
	s.ended(sandboxOf(web, "old", "10.0.0.98"))
	equal(t, addressesOf(s.apply([]*v1.Pod{web})), []string{"10.0.0.99"})
}

func TestAPodWhoseSandboxEndedHasNoAddress(t *testing.T) {
	var s sandboxes
	s.started(sandboxOf(web, "one", "10.0.0.1"))
	s.ended(sandboxOf(web, "one", "10.0.0.1"))
	equal(t, addressesOf(s.apply([]*v1.Pod{web})), []string{""})
}

func TestASandboxOfAFormerPodOfTheNameIsNotThePods(t *testing.T) {
	var s sandboxes
	former := web.DeepCopy()
	former.UID = "former"
	s.started(sandboxOf(former, "one", "10.0.0.98"))
	equal(t, addressesOf(s.apply([]*v1.Pod{web})), []string{"10.0.0.1"})
}

func TestSandboxesOfPodsThatAreGoneAreForgotten(t *testing.T) {
	var s sandboxes
	s.started(sandboxOf(web, "one", "10.0.0.98"))
	known := s.known[keyOf(sandboxOf(web, "one", "10.0.0.98"))]
	known.at = known.at.Add(-2 * forgetAfter)
	s.known[keyOf(known.Sandbox)] = known
	s.apply(nil)
	equal(t, len(s.known), 0)
}
