package policy

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	core "k8s.io/client-go/listers/core/v1"
	networking "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Changes come in bursts (a StatefulSet's pods): what comes within this time is applied at once.
const gather = 20 * time.Millisecond

// A table that someone else has removed comes back after this time.
const renew = time.Minute

const (
	applyTimeout = 10 * time.Second
	retryAfter   = time.Second
)

var errStarting = errors.New("the policies are not yet known")

// Applier puts a ruleset into force.
type Applier interface {
	Apply(ctx context.Context, ruleset Ruleset) error
}

// Enforcer keeps what is enforced equal to what the API server has.
type Enforcer struct {
	factory    informers.SharedInformerFactory
	pods       core.PodLister
	namespaces core.NamespaceLister
	policies   networking.NetworkPolicyLister
	applier    Applier
	changed    chan struct{}
	problem    atomic.Pointer[error]
}

// NewEnforcer returns an enforcer that watches nothing before Run.
func NewEnforcer(client kubernetes.Interface, applier Applier) *Enforcer {
	factory := informers.NewSharedInformerFactory(client, 0)
	e := &Enforcer{
		factory:    factory,
		pods:       factory.Core().V1().Pods().Lister(),
		namespaces: factory.Core().V1().Namespaces().Lister(),
		policies:   factory.Networking().V1().NetworkPolicies().Lister(),
		applier:    applier,
		changed:    make(chan struct{}, 1),
	}
	e.problem.Store(&errStarting)
	return e
}

// Problem returns nil when the policies of the API server are in force, else why they are not.
func (e *Enforcer) Problem() error {
	if problem := e.problem.Load(); problem != nil {
		return *problem
	}
	return nil
}

// Run watches and enforces until ctx ends.
func (e *Enforcer) Run(ctx context.Context) error {
	signal := func(any) {
		select {
		case e.changed <- struct{}{}:
		default: // one is waiting, and will see this change too
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: signal, UpdateFunc: func(_, object any) { signal(object) }, DeleteFunc: signal,
	}
	for _, informer := range []cache.SharedIndexInformer{
		e.factory.Core().V1().Pods().Informer(),
		e.factory.Core().V1().Namespaces().Informer(),
		e.factory.Networking().V1().NetworkPolicies().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	e.factory.Start(ctx.Done())
	defer e.factory.Shutdown()
	for kind, synced := range e.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.Join(ctx.Err(), errors.New("never got the list of "+kind.String()))
		}
	}
	var last *Ruleset
	ticker := time.NewTicker(renew)
	defer ticker.Stop()
	for {
		ruleset, err := e.compile()
		if err == nil && (last == nil || !reflect.DeepEqual(*last, ruleset)) {
			err = e.apply(ctx, ruleset)
		}
		last = &ruleset
		if err != nil {
			e.problem.Store(&err)
			last = nil
			klog.ErrorS(err, "policies are not in force")
			time.AfterFunc(retryAfter, func() { signal(nil) })
		} else {
			e.problem.Store(nil)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			last = nil
		case <-e.changed:
		}
		time.Sleep(gather)
	}
}

func (e *Enforcer) compile() (Ruleset, error) {
	pods, podsErr := e.pods.List(labels.Everything())
	namespaces, namespacesErr := e.namespaces.List(labels.Everything())
	policies, policiesErr := e.policies.List(labels.Everything())
	if err := errors.Join(podsErr, namespacesErr, policiesErr); err != nil {
		return Ruleset{}, err
	}
	return Compile(Cluster{pods, namespaces, policies}), nil
}

func (e *Enforcer) apply(ctx context.Context, ruleset Ruleset) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	started := time.Now()
	err := e.applier.Apply(ctx, ruleset)
	klog.V(1).InfoS("applied", "isolatedForIngress", len(ruleset.Ingress.Isolated), "isolatedForEgress",
		len(ruleset.Egress.Isolated), "rules", len(ruleset.Ingress.Allowed)+len(ruleset.Egress.Allowed),
		"took", time.Since(started).Round(time.Millisecond), "err", err)
	return err
}
