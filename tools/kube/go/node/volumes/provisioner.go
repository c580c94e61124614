// Package volumes makes a folder of this machine into a PersistentVolume for each claim of its storage classes.
//
// All machines of the cluster share the disk, and a folder can be mounted by any number of pods on any of them: every access mode
// is served, and no volume is bound to a machine. As with hostPath, nothing keeps a second machine from a ReadWriteOnce volume.
// Sizes are not enforced.
// Claims of block devices are refused by the library, because Provisioner is no controller.BlockProvisioner.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Name is what a StorageClass names as its provisioner.
const Name = "soperator-pulumi/local"

// As common provisioners have it: a pod's user is not known when the folder is made.
const folderMode = 0o777

// A file's name may have 255 bytes; a namespace has at most 63, a volume 40.
const longestClaimInName = 120

// Provisioner makes and removes the folders below root.
type Provisioner struct {
	root *os.Root
}

var _ controller.Provisioner = &Provisioner{}

// New returns the provisioner; root is made when missing.
func New(root string) (*Provisioner, error) {
	if err := os.MkdirAll(root, 0o711); err != nil {
		return nil, err
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &Provisioner{root: opened}, nil
}

// Run serves claims until ctx ends.
func (p *Provisioner) Run(ctx context.Context, client kubernetes.Interface) {
	controller.NewProvisionController(ctx, client, Name, p, controller.LeaderElection(false)).Run(ctx)
}

// Provision makes the folder of a claim.
func (p *Provisioner) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	claim := options.PVC
	if claim.Spec.Selector != nil {
		return nil, controller.ProvisioningFinished, errors.New("a claim with a selector asks for a volume that exists: remove the selector")
	}
	name := folderName(claim.Namespace, claim.Name, options.PVName)
	if err := p.root.Mkdir(name, folderMode); err != nil && !os.IsExist(err) {
		return nil, controller.ProvisioningFinished, err
	}
	// Mkdir's mode is cut by the umask.
	if err := p.root.Chmod(name, folderMode); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	reclaim := v1.PersistentVolumeReclaimDelete
	if options.StorageClass.ReclaimPolicy != nil {
		reclaim = *options.StorageClass.ReclaimPolicy
	}
	kind := v1.HostPathDirectory
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: claim.Spec.Resources.Requests[v1.ResourceStorage]},
			MountOptions:                  options.StorageClass.MountOptions,
			PersistentVolumeSource: v1.PersistentVolumeSource{
				HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(p.root.Name(), name), Type: &kind},
			},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the folder of a volume: only one that Provision made for this very volume, and never through a link.
func (p *Provisioner) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.HostPath == nil {
		return &controller.IgnoredError{Reason: "the volume is no folder of this machine"}
	}
	folder, name := filepath.Split(filepath.Clean(volume.Spec.HostPath.Path))
	if filepath.Clean(folder) != filepath.Clean(p.root.Name()) || !strings.HasSuffix(name, "_"+volume.Name) {
		return fmt.Errorf("%s was not made for %s: not removed", volume.Spec.HostPath.Path, volume.Name)
	}
	return p.root.RemoveAll(name)
}

// folderName says to a person whose volume a folder is; no part can hold the underscore.
func folderName(namespace, claim, volume string) string {
	return strings.Join([]string{namespace, claim[:min(len(claim), longestClaimInName)], volume}, "_")
}
