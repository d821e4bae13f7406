# `check --nic IF`: what the card is, how it is set up, whether AF_XDP works on it, and what it does in 10 s of echo. The only thing
# it changes is that an XDP program is on the card while `tollgate nic` runs.
# TOLLGATE_NIC_SECONDS changes how long, TOLLGATE names the program.

describe_nic() {
    card=/sys/class/net/$1
    echo "interface $1, $(read_file "$card/operstate"), MTU $(read_file "$card/mtu"), $(uname -sr)"
    driver=$(readlink "$card/device/driver" 2>/dev/null)
    [ -n "$driver" ] && echo "driver ${driver##*/}" || echo "no driver of its own: virtual, such as lo or veth"
    echo "NUMA node $(read_file "$card/device/numa_node" || echo -), its CPUs $(read_file "$card/device/local_cpulist" || echo -): cores that listen on it belong there"
    set -- "$1" $(ls -d "$card"/queues/rx-* 2>/dev/null | wc -l) $(ls -d "$card"/queues/tx-* 2>/dev/null | wc -l)
    echo "queues $2 receive, $3 send; fewer receive queues than cores: transport and shard cores (tuning/profiles)"
    echo "napi_defer_hard_irqs $(read_file "$card/napi_defer_hard_irqs"), gro_flush_timeout $(read_file "$card/gro_flush_timeout"): 2 and 200000 for transport.napi_busy_poll and xdp.busy_poll, 0 and 0 without"
    for irq in $(ls "$card/device/msi_irqs" 2>/dev/null); do
        echo "irq $irq on CPU $(read_file "/proc/irq/$irq/smp_affinity_list")"
    done
    if command -v ethtool >/dev/null; then
        ethtool -i "$1" 2>/dev/null | sed -n 's/^\(version\|firmware-version\|bus-info\)/  &/p'
        echo "offloads; tx-udp-segmentation on: the card cuts what transport.coalesce sends at once; checksumming off: nothing can be coalesced"
        ethtool -k "$1" 2>/dev/null | sed -n 's/^[[:space:]]*\(tx-checksumming\|tx-udp-segmentation\|generic-receive-offload\|rx-vlan-offload\|rx-udp-gro-forwarding\)/  &/p'
    else
        echo "no ethtool: driver version and offloads are not known"
    fi
    before=$(count_nic "$1")
    seconds=${TOLLGATE_NIC_SECONDS:-10}
    if program=$(find_program); then
        "$program" nic "$1" --seconds "$seconds"
        result=$?
    else
        echo "no tollgate in PATH or in TOLLGATE: AF_XDP is not tried, and nobody echoes for $seconds s"
        sleep "$seconds"
        result=0
    fi
    echo "meanwhile the kernel counted:"
    after=$(count_nic "$1")
    echo "$before" | while read -r name value; do
        now=$(echo "$after" | sed -n "s/^$name //p")
        [ "$((now - value))" = 0 ] || echo "  $name +$((now - value))"
    done
    echo "  drops and errors should not grow; RcvbufErrors: transport.receive_buffer or rmem_max is too small"
    return $result
}

find_program() {
    here=$(dirname "$0")/..
    for program in "${TOLLGATE-}" "$(command -v tollgate)" "$here/target/release/tollgate" "$here/target/debug/tollgate"; do
        [ -n "$program" ] && [ -x "$program" ] && echo "$program" && return
    done
    return 1
}

# Counters of the card, and the host's of UDP, one a line.
count_nic() {
    for file in /sys/class/net/"$1"/statistics/*; do echo "${file##*/} $(read_file "$file")"; done
    awk '/^Udp:/ { if (!head) head = $0; else { n = split(head, names); split($0, values); for (i = 2; i <= n; i++) print "Udp" names[i], values[i] } }' /proc/net/snmp
}
