# What a host should be set to for a gateway, read by `check` and `apply`. One function for each setting, `setting_<name>`:
#   reason   why, in one line
#   effect   what changes for whom, and when
#   now      the value now, empty where this host has no such thing
#   good     succeeds when the value given as $2 is good
#   wanted   the value to set
#   set      sets the value given as $2; 3 when only a person can, who is told how
# To add one: write the function and name it here.
SETTINGS="rmem_max wmem_max optmem_max io_uring huge_pages governor isolation interrupts queues offloads rps"

# Values before `apply`, one file each, for `apply --undo`. In /run: none of these settings outlives a restart of the host.
SAVED=${TOLLGATE_SAVED:-/run/tollgate-host}
# CPUs for the interrupts of network cards: those without cores (cores.cpus = "auto" leaves the first one free).
IRQ_CPUS=${TOLLGATE_IRQ_CPUS:-0}
# Receive queues of a card: as many as there are cores with sockets. `tollgate check FILE` lists the cores.
CPUS=$(getconf _NPROCESSORS_ONLN)
QUEUES=${TOLLGATE_QUEUES:-$((CPUS > 1 ? CPUS - 1 : 1))}
# Where /proc and /sys are looked for; for tests.
ROOT=${TOLLGATE_ROOT-}

read_file() { cat "$1" 2>/dev/null; }

# The network cards: interfaces with hardware of their own.
cards() { for card in "$ROOT"/sys/class/net/*/device; do [ -e "$card" ] && card=${card%/device} && echo "${card##*/}"; done; }

# A setting that is one number in a file: number_in FILE TEST NUMBER REASON EFFECT, then what is asked.
number_in() {
    file=$ROOT$1 compare=$2 number=$3 reason=$4 effect=$5
    shift 5
    case $1 in
    reason) echo "$reason" ;;
    effect) echo "$effect" ;;
    now) read_file "$file" ;;
    good) [ "$2" "$compare" "$number" ] ;;
    wanted) echo "$number" ;;
    set) echo "$2" >"$file" ;;
    esac
}

setting_rmem_max() {
    number_in /proc/sys/net/core/rmem_max -ge 4194304 \
        "caps transport.receive_buffer (4MiB), the room for bursts while a core is busy" \
        "sockets opened from now on may take so much memory each" "$@"
}

setting_wmem_max() {
    number_in /proc/sys/net/core/wmem_max -ge 1048576 \
        "caps the send buffer (1MiB a socket), the room for bursts of responses; a run of UDP_SEGMENT takes 64KiB of it at once" \
        "sockets opened from now on may take so much memory each" "$@"
}

setting_optmem_max() {
    number_in /proc/sys/net/core/optmem_max -ge 20480 \
        "caps the kernel program that steers datagrams to their core (transport.steering): up to 20 KiB" \
        "the next start of a gateway with several cores is steered" "$@"
}

setting_io_uring() {
    number_in /proc/sys/kernel/io_uring_disabled -eq 0 \
        "where it is allowed transport.kind = \"auto\" takes io_uring: a spinning core then looks without system calls" \
        "every user of the host may make rings from now on" "$@"
}

# 12 MiB a core by default (xdp.frames, transport.send_frames), in pages of 2 MiB.
setting_huge_pages() {
    number_in /proc/sys/vm/nr_hugepages -ge $((CPUS * 8)) \
        "with transport.kind = \"xdp\" the memory shared with the card lies on huge pages when there are any: fewer misses of the TLB" \
        "memory is set aside at once and for nothing else; a gateway takes it at its next start" "$@"
}

# One word for all CPUs; "mixed" when they differ.
setting_governor() {
    case $1 in
    reason) echo "a CPU that clocks down between calls adds its ramp to every first datagram" ;;
    effect) echo "all CPUs run at their highest clock at once, and take the power for it" ;;
    now)
        set -- $(cat "$ROOT"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u)
        if [ $# -gt 1 ]; then echo mixed; else echo "$*"; fi
        ;;
    good) [ "$2" = performance ] ;;
    wanted) echo performance ;;
    set)
        [ "$2" != mixed ] || { echo "governors differed between CPUs before: set them by hand" && return 3; }
        for file in "$ROOT"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
            echo "$2" >"$file" || return 1
        done
        ;;
    esac
}

# Judged on hosts that have CPUs to spare; a running kernel cannot be told.
setting_isolation() {
    case $1 in
    reason) echo "for cores.busy_poll = \"always\": a 250 Hz tick costs a core 10 to 50 us each, other processes cost it milliseconds" ;;
    effect) echo "from the next boot on nothing but the gateway runs on the CPUs named" ;;
    now)
        [ "$CPUS" -lt 4 ] && return
        isolated=$(read_file "$ROOT/sys/devices/system/cpu/isolated") || return
        echo "${isolated:-none}"
        ;;
    good) [ "$2" != none ] ;;
    wanted) echo "the CPUs of cores" ;;
    set) echo "boot with isolcpus=LIST nohz_full=LIST rcu_nocbs=LIST, the CPUs of cores (undo: boot without)" && return 3 ;;
    esac
}

# Interrupts of network cards that are elsewhere, as `irq=cpus`; "apart" for none.
setting_interrupts() {
    case $1 in
    reason) echo "an interrupt on the CPU of a core takes it away from its datagrams (TOLLGATE_IRQ_CPUS: where they belong)" ;;
    effect) echo "the cards' interrupts and the kernel's part of receiving move to CPU $IRQ_CPUS; irqbalance moves them back unless told not to" ;;
    now)
        some= off=
        for irq in $(cards | while read -r card; do ls "$ROOT/sys/class/net/$card/device/msi_irqs" 2>/dev/null; done); do
            list=$(read_file "$ROOT/proc/irq/$irq/smp_affinity_list") || continue
            some=yes
            [ "$list" = "$IRQ_CPUS" ] || off="${off:+$off }$irq=$list"
        done
        [ -z "$some" ] || [ "$CPUS" = 1 ] || echo "${off:-apart}"
        ;;
    good) [ "$2" = apart ] ;;
    wanted) echo apart ;;
    set)
        entries=$2
        [ "$entries" != apart ] || entries=$(for entry in $(setting_interrupts now); do echo "${entry%%=*}=$IRQ_CPUS"; done)
        for entry in $entries; do echo "${entry#*=}" >"$ROOT/proc/irq/${entry%%=*}/smp_affinity_list" || return 1; done
        ;;
    esac
}

# The combined queues of each card, as `card=queues`; "fit" when all have what they should, or can.
setting_queues() {
    case $1 in
    reason) echo "with AF_XDP a core without a queue receives nothing; more queues than cores with sockets scatter the work (TOLLGATE_QUEUES: how many)" ;;
    effect) echo "the card starts anew: a second without a link, and what arrives meanwhile is lost" ;;
    now)
        command -v ethtool >/dev/null || return
        some= off=
        for card in $(cards); do
            set -- $(ethtool -l "$card" 2>/dev/null | sed -n 's/^Combined:[[:space:]]*\([0-9]*\)$/\1/p')
            [ $# = 2 ] || continue
            some=yes
            [ "$2" = "$(($1 < QUEUES ? $1 : QUEUES))" ] || off="${off:+$off }$card=$2"
        done
        [ -z "$some" ] || echo "${off:-fit}"
        ;;
    good) [ "$2" = fit ] ;;
    wanted) echo fit ;;
    set)
        entries=$2
        if [ "$entries" = fit ]; then
            entries=
            for entry in $(setting_queues now); do
                set -- $(ethtool -l "${entry%%=*}" | sed -n 's/^Combined:[[:space:]]*\([0-9]*\)$/\1/p')
                entries="$entries ${entry%%=*}=$(($1 < QUEUES ? $1 : QUEUES))"
            done
        fi
        for entry in $entries; do ethtool -L "${entry%%=*}" combined "${entry#*=}" || return 1; done
        ;;
    esac
}

# What a card could do and does not, as `card:feature`; "on" for nothing.
setting_offloads() {
    case $1 in
    reason) echo "without checksums by the card nothing is coalesced (transport.coalesce); with tx-udp-segmentation the card cuts what leaves in one send" ;;
    effect) echo "what is sent from now on is summed and cut by the card" ;;
    now)
        command -v ethtool >/dev/null || return
        some= off=
        for card in $(cards); do
            features=$(ethtool -k "$card" 2>/dev/null) || continue
            some=yes
            for feature in tx-checksumming tx-udp-segmentation; do
                echo "$features" | grep -q "^[[:space:]]*$feature: off\$" && off="${off:+$off }$card:$feature"
            done
        done
        [ -z "$some" ] || echo "${off:-on}"
        ;;
    good) [ "$2" = on ] ;;
    wanted) echo on ;;
    set)
        state=off entries=$2
        [ "$entries" != on ] || { state=on && entries=$(setting_offloads now); }
        for entry in $entries; do ethtool -K "${entry%%:*}" "${entry#*:}" $state || return 1; done
        ;;
    esac
}

# The receive queues with a non-zero mask, as `interface/queue=mask`; "off" for none.
setting_rps() {
    case $1 in
    reason) echo "packet steering interrupts another CPU for each datagram: 9.3 us a transaction were measured, 3.4 without" ;;
    effect) echo "datagrams are received on the CPU of the card's interrupt" ;;
    now)
        on=
        for file in "$ROOT"/sys/class/net/*/queues/rx-*/rps_cpus; do
            mask=$(read_file "$file") || continue
            case $mask in *[!0,]*) queue=${file#"$ROOT"/sys/class/net/} && on="${on:+$on }${queue%/rps_cpus}=$mask" ;; esac
        done
        echo "${on:-off}"
        ;;
    good) [ "$2" = off ] ;;
    wanted) echo off ;;
    set)
        entries=$2
        [ "$entries" != off ] || entries=$(for entry in $(setting_rps now); do echo "${entry%%=*}=0"; done)
        for entry in $entries; do
            [ "$entry" = off=0 ] || echo "${entry#*=}" >"$ROOT/sys/class/net/${entry%%=*}/rps_cpus" || return 1
        done
        ;;
    esac
}
