# What a host should be set to for a gateway, read by `check` and `apply`. One function for each setting, `setting_<name>`:
#   reason   why, in one line
#   now      the value now, empty where this host has no such thing
#   good     succeeds when the value given as $2 is good
#   wanted   the value to set
#   set      sets the value given as $2
# To add one: write the function and name it here.
SETTINGS="rmem_max wmem_max optmem_max io_uring governor rps"

# Values before `apply`, one file each, for `apply --undo`. In /run: none of these settings outlives a restart of the host.
SAVED=${TOLLGATE_SAVED:-/run/tollgate-host}

read_file() { cat "$1" 2>/dev/null; }

setting_rmem_max() {
    case $1 in
    reason) echo "caps transport.receive_buffer (4MiB), the room for bursts while a core is busy" ;;
    now) read_file /proc/sys/net/core/rmem_max ;;
    good) [ "$2" -ge 4194304 ] ;;
    wanted) echo 4194304 ;;
    set) echo "$2" >/proc/sys/net/core/rmem_max ;;
    esac
}

setting_wmem_max() {
    case $1 in
    reason) echo "caps the send buffer (1MiB a socket), the room for bursts of responses; a run of UDP_SEGMENT takes 64KiB of it at once" ;;
    now) read_file /proc/sys/net/core/wmem_max ;;
    good) [ "$2" -ge 1048576 ] ;;
    wanted) echo 1048576 ;;
    set) echo "$2" >/proc/sys/net/core/wmem_max ;;
    esac
}

setting_optmem_max() {
    case $1 in
    reason) echo "caps the kernel program that steers datagrams to their core (transport.steering): up to 20 KiB" ;;
    now) read_file /proc/sys/net/core/optmem_max ;;
    good) [ "$2" -ge 20480 ] ;;
    wanted) echo 131072 ;;
    set) echo "$2" >/proc/sys/net/core/optmem_max ;;
    esac
}

setting_io_uring() {
    case $1 in
    reason) echo "where it is allowed transport.kind = \"auto\" takes io_uring: a spinning core then looks without system calls" ;;
    now) read_file /proc/sys/kernel/io_uring_disabled ;;
    good) [ "$2" = 0 ] ;;
    wanted) echo 0 ;;
    set) echo "$2" >/proc/sys/kernel/io_uring_disabled ;;
    esac
}

# One word for all CPUs; "mixed" when they differ.
setting_governor() {
    case $1 in
    reason) echo "a CPU that clocks down between calls adds its ramp to every first datagram" ;;
    now)
        set -- $(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u)
        if [ $# -gt 1 ]; then echo mixed; else echo "$*"; fi
        ;;
    good) [ "$2" = performance ] ;;
    wanted) echo performance ;;
    set)
        [ "$2" != mixed ] || { echo "governors differed between CPUs before: set them by hand" >&2; return 1; }
        for file in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
            echo "$2" >"$file" || return 1
        done
        ;;
    esac
}

# The receive queues with a non-zero mask, as `interface/queue=mask`; "off" for none.
setting_rps() {
    case $1 in
    reason) echo "packet steering interrupts another CPU for each datagram: 9.3 us a transaction were measured, 3.4 without" ;;
    now)
        on=
        for file in /sys/class/net/*/queues/rx-*/rps_cpus; do
            mask=$(read_file "$file") || continue
            case $mask in *[!0,]*) queue=${file#/sys/class/net/} && on="${on:+$on }${queue%/rps_cpus}=$mask" ;; esac
        done
        echo "${on:-off}"
        ;;
    good) [ "$2" = off ] ;;
    wanted) echo off ;;
    set)
        if [ "$2" = off ]; then
            for file in /sys/class/net/*/queues/rx-*/rps_cpus; do
                case $(read_file "$file") in *[!0,]*) echo 0 >"$file" || return 1 ;; esac
            done
        else
            for entry in $2; do echo "${entry#*=}" >"/sys/class/net/${entry%%=*}/rps_cpus" || return 1; done
        fi
        ;;
    esac
}
