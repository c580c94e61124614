# shellcheck shell=sh
# GPUs of the pod as generic resources of its node: the devices that the container has, compared with the node set's.

# Prints the files PREFIX<number>, in the order of their numbers: numbered PREFIX
numbered() {
    for file in "$1"[0-9]*; do
        number=${file#"$1"}
        case $number in *[!0-9]*) ;; *) [ ! -e "$file" ] || echo "$number" ;; esac
    done | sort -n | sed "s|^|$1|"
}

# Prints the device node of a MIG capability: capability FILE
capability() {
    echo "$DEVICES/nvidia-caps/nvidia-cap$(sed -n 's/^DeviceFileMinor: *//p' "$1")"
}

# Prints the files of each MIG instance, one instance a line: its GPU, its GPU instance and its compute instance.
#
# The driver lists the instances of the machine (NVIDIA's MIG User Guide, "/proc based nvidia-capabilities"). The pod has
# those whose capabilities it can open.
mig_instances() {
    for compute in "$PROC"/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access; do
        [ -e "$compute" ] || continue
        gpu=${compute#*/capabilities/gpu}
        files="$(capability "${compute%/ci*}/access"),$(capability "$compute")"
        [ ! -e "${files%,*}" ] || [ ! -e "${files#*,}" ] || echo "$DEVICES/nvidia${gpu%%/*},$files"
    done
}

# Ends the start where the pod has another number than the node set: compare NUMBER DECLARED WHAT KEY
compare() {
    [ "$1" != "$2" ] || return 0
    echo "slurmd is not started. $3 in the pod: $1, declared by the node set: $2 ($4). Compare the node set with the" \
        "machine's allocatable resources, and see the device plugin's log." | tee "$LAST_WORDS" >&2
    exit 1
}

# Prints the node's part of gres.conf: node_gres VENDOR:COUNT:TYPE PROFILE:COUNT|'' SHARDS_PER_GPU|''
node_gres() {
    type=${1##*:} count=${1#*:} declared_instances=${2##*:}
    case $1 in
        nvidia:*) prefix=$DEVICES/nvidia instances=$(mig_instances) ;;
        *) prefix=$DEVICES/dri/renderD instances='' ;;
    esac
    whole=$(numbered "$prefix" | grep -vxF "$(echo "$instances" | sed 's/,.*//')" || true)
    compare "$(echo "$whole" | grep -c .)" "${count%:*}" "GPUs" "gpus.count"
    compare "$(echo "$instances" | grep -c .)" "${declared_instances:-0}" "MIG instances" "gpus.mig"
    for file in $whole; do
        echo "Name=gpu ${type:+Type=$type }File=$file Flags=${1%%:*}_gpu_env"
    done
    for files in $instances; do
        echo "Name=gpu Type=${2%:*} MultipleFiles=$files Flags=nvidia_gpu_env"
    done
    for file in ${3:+$whole}; do
        echo "Name=shard Count=$3 File=$file"
    done
}

# Adds to the GPUs in the node's part of gres.conf the cores of their sockets: place_gpus SOCKETS:CORES SOCKET,...|''
#
# slurmd starts without them as well. Slurm then takes the GPUs of a node for equally near to all its cores.
place_gpus() {
    if (cd "${0%/*}" && python3 -B -m gpu_sockets "$SYS" "$PROC" "$1" "$2") < "$NODE_GRES" > "$NODE_GRES.placed"; then
        mv "$NODE_GRES.placed" "$NODE_GRES"
    fi
}
