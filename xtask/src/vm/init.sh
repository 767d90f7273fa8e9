#!/bin/sh
# The first program in the virtual machine: loads the modules, makes the host's files its root, starts udev,
# and runs /command there. ttyS1 carries the output, the marks (after a byte 0x1e) tell readiness and status.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
stty -F /dev/ttyS1 raw -echo
exec </dev/null >/dev/ttyS1 2>&1

while read -r module; do
    insmod "/modules/$module.ko" || echo "vm: cannot load $module"
done </modules/order

mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /ro &&
    mount -t tmpfs rw /rw &&
    mkdir /rw/upper /rw/work &&
    mount -t overlay -o lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/work root /new ||
    echo "vm: cannot mount the root"
mount -t configfs config /sys/kernel/config
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
for folder in dev dev/shm dev/pts proc sys sys/kernel/config; do
    mount --bind "/$folder" "/new/$folder"
done
mount -t tmpfs run /new/run
ip link set lo up

# udev, with its own few rules instead of the host's.
mkdir -p /new/run/vm /new/usr/lib/udev/rules.d /new/etc/udev/rules.d
cp -a /extra/bin /extra/lib /command /new/run/vm/
for folder in usr/lib/udev/rules.d etc/udev/rules.d; do
    mount -t tmpfs rules "/new/$folder"
done
cp /extra/rules/* /new/usr/lib/udev/rules.d/
udev() {
    program=$1
    shift
    chroot /new /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LD_LIBRARY_PATH=/run/vm/lib \
        SYSTEMD_IGNORE_CHROOT=1 SYSTEMD_LOG_LEVEL=warning "/run/vm/bin/$program" "$@"
}
udev systemd-udevd --daemon
udev udevadm trigger --action=add
udev udevadm settle --timeout=20

read -r uptime _ </proc/uptime
printf '\036ready %s\n' "$uptime"
chroot /new /usr/bin/env -i /bin/sh /run/vm/command
printf '\036exit %s\n' "$?"
poweroff -f
