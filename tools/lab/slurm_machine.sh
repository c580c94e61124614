# shellcheck shell=sh
# Makes a machine of the lab one on which `make up` runs: slurm_machine.sh TREE PACKAGE NAME
#
# TREE is the source tree, PACKAGE the folder of Debian's package apparmor, unpacked, and NAME the machine's name. All
# that this changes is in the machine's memory.
set -e
tree=$1 package=$2
hostname "$3"
cp "$tree/tools/lab/switch.sh" /usr/local/bin/lab-machine
chmod 755 /usr/local/bin/lab-machine

# The kubelet wants a clock rate, which the processors of user-mode Linux do not tell.
sed 's/^bogomips.*/&\ncpu MHz\t\t: 2000.000/' /proc/cpuinfo > /run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo

# Layers of containers can't be layers over the machine's own.
mkdir -p "$XDG_STATE_HOME" /var/lib/kubelet
mount -t tmpfs -o size=90% tmpfs "$XDG_STATE_HOME"
mount -t tmpfs -o size=90% tmpfs /var/lib/kubelet

# Without this program containerd confines no container by AppArmor.
if [ ! -x /sbin/apparmor_parser ]; then # otherwise the package has been left out
    cp -r "$package/etc/apparmor" "$package/etc/apparmor.d" /etc/
    cp -r "$package/usr/share/apparmor-features" /usr/share/
    cp "$package"/*sbin/apparmor_parser "$package"/usr/*sbin/apparmor_parser /sbin/ 2> /dev/null || [ -x /sbin/apparmor_parser ]
fi
apparmor_parser --skip-cache --replace "$tree/docs/apparmor/slurm-jail"

# The stack of the embedded Kubernetes has no limits of jobs, as other machines may lack what they take.
sed -i 's/constrain: none/constrain: cgroup/' "$tree/stacks/Pulumi.local.yaml"

# Volumes are in memory here, so what is written there counts as memory of the pod that writes it.
sed -i '/populate:/s/memory: 1Gi/memory: 2Gi/' "$tree/stacks/Pulumi.local.yaml"
