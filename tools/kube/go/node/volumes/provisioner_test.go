package volumes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func provisioner(t *testing.T) (*Provisioner, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "volumes")
	p, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	return p, root
}

func options(change func(*v1.PersistentVolumeClaim)) controller.ProvisionOptions {
	retain := v1.PersistentVolumeReclaimRetain
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "homes"},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteMany},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("3Gi")}},
		},
	}
	if change != nil {
		change(claim)
	}
	return controller.ProvisionOptions{
		StorageClass: &storage.StorageClass{ReclaimPolicy: &retain}, PVName: "pvc-1", PVC: claim,
	}
}

func provision(t *testing.T, p *Provisioner) *v1.PersistentVolume {
	t.Helper()
	volume, state, err := p.Provision(context.Background(), options(nil))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatal(state, err)
	}
	return volume
}

func TestAClaimGetsAFolderThatEveryPodCanWriteTo(t *testing.T) {
	p, root := provisioner(t)
	volume := provision(t, p)
	path := filepath.Join(root, "hpc_homes_pvc-1")
	if volume.Spec.HostPath.Path != path {
		t.Errorf("path is %s", volume.Spec.HostPath.Path)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("folder is %v, %v", info, err)
	}
}

func TestTheVolumeIsWhatTheClaimAndItsClassAskFor(t *testing.T) {
	p, _ := provisioner(t)
	spec := provision(t, p).Spec
	if size := spec.Capacity[v1.ResourceStorage]; size.String() != "3Gi" {
		t.Errorf("capacity is %s", size.String())
	}
	if len(spec.AccessModes) != 1 || spec.AccessModes[0] != v1.ReadWriteMany {
		t.Errorf("access modes are %v", spec.AccessModes)
	}
	if spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain {
		t.Errorf("reclaim policy is %s", spec.PersistentVolumeReclaimPolicy)
	}
	if spec.NodeAffinity != nil {
		t.Errorf("the volume is bound to %v", spec.NodeAffinity)
	}
}

func TestProvisioningAgainAfterAnInterruptionGivesTheSameFolder(t *testing.T) {
	p, root := provisioner(t)
	volume := provision(t, p)
	if err := os.WriteFile(filepath.Join(volume.Spec.HostPath.Path, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	provision(t, p)
	if _, err := os.Stat(filepath.Join(root, "hpc_homes_pvc-1", "kept")); err != nil {
		t.Error(err)
	}
}

func TestASelectorIsRefusedWithAReason(t *testing.T) {
	p, root := provisioner(t)
	selects := func(c *v1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }
	_, state, err := p.Provision(context.Background(), options(selects))
	if err == nil || !strings.Contains(err.Error(), "selector") || state != controller.ProvisioningFinished {
		t.Errorf("got %v, %v", state, err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestALongClaimNameGivesAFolderThatTheFileSystemTakes(t *testing.T) {
	p, _ := provisioner(t)
	long := options(func(c *v1.PersistentVolumeClaim) {
		c.Name, c.Namespace = strings.Repeat("c", 253), strings.Repeat("n", 63)
	})
	if _, _, err := p.Provision(context.Background(), long); err != nil {
		t.Error(err)
	}
}

func TestDeletingRemovesTheFolderAndNothingElse(t *testing.T) {
	p, root := provisioner(t)
	volume := provision(t, p)
	outside := filepath.Join(filepath.Dir(root), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(root), filepath.Join(volume.Spec.HostPath.Path, "link")); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(context.Background(), volume); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	if err := p.Delete(context.Background(), volume); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestAFolderThatWasNotMadeForTheVolumeIsNotRemoved(t *testing.T) {
	p, root := provisioner(t)
	provision(t, p)
	for _, path := range []string{
		filepath.Dir(root), root, filepath.Join(root, "hpc_homes_pvc-1", "sub_pvc-2"), filepath.Join(root, "hpc_homes_pvc-1"),
		root + "/../volumes/../x_pvc-2",
	} {
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-2"}}
		volume.Spec.HostPath = &v1.HostPathVolumeSource{Path: path}
		if err := p.Delete(context.Background(), volume); err == nil {
			t.Errorf("%s was removed", path)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "hpc_homes_pvc-1")); err != nil {
		t.Error(err)
	}
}
