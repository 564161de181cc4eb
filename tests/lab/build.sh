#!/bin/bash
# Builds what `cargo xtask lab run` boots: Debian's own kernels (rdma_rxe is one of their modules) and one
# userland of busybox, the rdma tools and this folder's small programs.  Nothing is installed on the host:
# packages are downloaded by apt with a state of its own, and unpacked.
#
#   build.sh FOLDER      needs apt-get, dpkg-deb, cpio, xz, zstd, kmod, gcc, python3
#
# FOLDER/boot holds afterwards vmlinux-6.1, initramfs-6.1, vmlinux-6.12, initramfs-6.12.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
W=$(realpath -m "$1")
mkdir -p "$W"/{debs,boot,apt/lists/partial,apt/archives/partial}
say() { echo "lab: $*" >&2; }

# The userland comes from Debian 13 whatever the host is, since FLUSH and ATOMIC WRITE need its libibverbs.
# Kernels: the version people ask for, and the release whose linux-image-amd64 is that version.
kernels="6.1:bookworm 6.12:trixie"
tools="bash iproute2 tcpdump kmod ibverbs-providers ibverbs-utils perftest rdmacm-utils busybox-static strace libibverbs-dev libc6-dev"
tools="$tools nfs-kernel-server nfs-common open-iscsi"
# their dependencies drag in services and installers that nothing here runs
unwanted='^(systemd|libsystemd-shared|udev|dmsetup|perl|passwd|base-passwd|base-files|dpkg|debconf|pci.ids|adduser|login|python|openssl-provider|sensible|media-types|gcc|cpp|binutils|rpcbind|procps|mount|ucf|keyutils|mawk|netbase)'

uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -E '/debian/?$' | head -1 || true)
key=/usr/share/keyrings/debian-archive-keyring.gpg
signed=""; [ -e $key ] && signed="[signed-by=$key]"
for k in $kernels; do echo "deb $signed ${uri:-http://deb.debian.org/debian} ${k#*:} main"; done > "$W/apt/sources.list"
: > "$W/apt/status"
cat > "$W/apt/conf" <<EOF
Dir::Etc::sourcelist "$W/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$W/apt/lists";
Dir::State::status "$W/apt/status";
Dir::Cache "$W/apt";
APT::Sandbox::User "root";
APT::Default-Release "trixie";
APT::Architecture "amd64";
APT::Install-Recommends "false";
Acquire::Languages "none";
EOF
export APT_CONFIG=$W/apt/conf
say "reading the package lists of ${uri:-http://deb.debian.org/debian}"
apt-get update >"$W/apt/log" 2>&1 || { tail -3 "$W/apt/log" >&2; exit 3; }
set -- $kernels
images=""; for k; do images="$images $(apt-cache depends "linux-image-amd64/${k#*:}" | awk '/Depends:/{print $2; exit}')/${k#*:}"; done

# what to fetch, as "'URI' FILE SIZE HASH" lines
{ apt-get install -y --print-uris $tools; apt-get download --print-uris $images; } 2>>"$W/apt/log" | grep "^'" | sort -u | awk -v no="$unwanted" '$2 !~ no' > "$W/apt/uris"
get=$(while read -r u f rest; do [ -e "$W/debs/$f" ] || echo "${f%%_*}"; done < "$W/apt/uris")
if [ -n "$get" ]; then
	say "downloading $(echo "$get" | wc -l) packages"
	# a kernel's package exists in one of the two releases only, so its name alone will do
	(cd "$W/debs" && apt-get download $get >>"$W/apt/log" 2>&1) || { tail -3 "$W/apt/log" >&2; exit 3; }
fi

say "unpacking"
rm -rf "$W/sys" "$W/root" "$W/kernels" "$W/boot"/*; mkdir -p "$W/sys/usr/bin" "$W/sys/usr/sbin" "$W/sys/usr/lib" "$W/sys/usr/lib64"
for d in bin sbin lib lib64; do ln -s usr/$d "$W/sys/$d"; done
while read -r u f rest; do
	[ -e "$W/debs/$f" ] || { say "$f did not arrive; see $W/apt/log"; exit 1; }
	case $f in
	linux-image-*) ;;
	*) dpkg-deb --fsys-tarfile "$W/debs/$f" | tar -x -C "$W/sys" --keep-directory-symlink --exclude './usr/share/*' --exclude './etc/*' --exclude './var/*' ;;
	esac
done < "$W/apt/uris"

# --- the userland
S=$W/sys R=$W/root L=$W/sys/usr/lib/x86_64-linux-gnu
mkdir -p "$R"/{dev,proc,sys,tmp,run,mnt,share,etc/libibverbs.d,var/lib/nfs,usr/bin,usr/sbin,usr/lib/x86_64-linux-gnu/libibverbs,usr/lib64,usr/lib/modules}
for d in bin sbin lib lib64; do ln -s usr/$d "$R/$d"; done
say "compiling rxelab, rdsecho"
# against the packages' C library, so that the host's may be older or newer
gcc --sysroot="$S" -O2 -Wall -DLAB_NEWER -o "$R/usr/bin/rxelab" "$here/rxelab.c" -libverbs -Wl,--allow-shlib-undefined
gcc --sysroot="$S" -O2 -Wall -o "$R/usr/bin/rdsecho" "$here/rdsecho.c"
cp "$S/usr/bin/busybox" "$R/usr/bin/busybox"
for b in bash ip tc rdma bridge tcpdump strace kmod \
	ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong \
	ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_atomic_bw ib_atomic_lat \
	rping udaddy ucmatose mckey cmtime rstream riostream udpong rdma_server rdma_client rdma_xserver rdma_xclient \
	rpc.mountd exportfs iscsid iscsiadm; do
	f=$S/usr/bin/$b; [ -e "$f" ] || f=$S/usr/sbin/$b
	[ -e "$f" ] || { say "no $b in the packages"; exit 1; }
	cp -L "$f" "$R/usr/bin/$b"
done
ln -s kmod "$R/usr/bin/modprobe"; ln -s ../bin/kmod "$R/usr/sbin/modprobe"
cp "$L"/libibverbs/librxe-*.so "$R/usr/lib/x86_64-linux-gnu/libibverbs/"
echo "driver rxe" > "$R/etc/libibverbs.d/rxe.driver"
cp -L "$L/ld-linux-x86-64.so.2" "$R/usr/lib64/"
# shared libraries by name, until nothing new is asked for
needs() { for f; do readelf -d "$f" 2>/dev/null || true; done | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u; }
for round in 1 2 3 4 5 6; do
	new=""
	for l in $(needs $(find "$R/usr" -type f \( -path '*/bin/*' -o -name '*.so*' \))) libgcc_s.so.1; do
		[ -e "$R/usr/lib/x86_64-linux-gnu/$l" ] || [ "$l" = ld-linux-x86-64.so.2 ] || {
			f=$(find "$L" -name "$l" | head -1)
			[ -n "$f" ] || { say "no library $l in the packages"; exit 1; }
			cp -L "$f" "$R/usr/lib/x86_64-linux-gnu/$l"; new=1; }
	done
	[ -n "$new" ] || break
done
cp "$here/vm-init" "$R/init"; chmod 755 "$R/init"
printf 'root:x:0:0:root:/:/bin/sh\n' > "$R/etc/passwd"
printf 'root:x:0:\n' > "$R/etc/group"
printf 'tcp 6 TCP\nudp 17 UDP\nicmp 1 ICMP\n' > "$R/etc/protocols"
printf 'nfs 2049/tcp\nsunrpc 111/tcp\n' > "$R/etc/services"
printf 'udp tpi_clts v inet udp - -\ntcp tpi_cots_ord v inet tcp - -\nudp6 tpi_clts v inet6 udp - -\ntcp6 tpi_cots_ord v inet6 tcp - -\nrdma tpi_cots_ord v inet tcp - -\n' > "$R/etc/netconfig"
printf '127.0.0.1 localhost\n10.10.0.1 vma\n10.10.0.2 vmb\n' > "$R/etc/hosts"
# nothing is compressed that an emulated machine would have to unpack
archive() { (cd "$1" && find . -print0 | cpio --null -o -H newc --quiet); }

# --- each kernel with the modules that scenarios use, and what those depend on
mods="virtio_pci virtio_net virtio_console 9p 9pnet_virtio configfs af_packet ipv6 veth 8021q dummy bridge
 rdma_rxe ib_uverbs rdma_ucm rdma_cm ib_umad ib_cm iw_cm ib_core
 sch_netem sch_ingress sch_prio sch_tbf cls_u32 cls_flower cls_matchall cls_bpf act_pedit act_csum act_gact act_mirred act_bpf act_skbedit ifb em_u32
 null_blk brd loop nvme-rdma nvme-fabrics nvme nvmet nvmet-rdma nvme-tcp
 nfs nfsv3 nfsv4 nfsd rpcrdma sunrpc auth_rpcgss ext4 rds rds_rdma
 ib_iser ib_isert iscsi_target_mod target_core_mod target_core_iblock target_core_file target_core_pscsi ib_srp ib_srpt ib_ipoib sd_mod scsi_mod crc32_generic crc32c_generic crc32_pclmul"
for k in $kernels; do
	v=${k%%:*}
	deb=$(awk '{print $2}' "$W/apt/uris" | grep "^linux-image-${v//./\\.}\.[0-9]" | head -1)
	say "kernel ${deb%%_*}"
	K=$W/kernels/$v; mkdir -p "$K"; dpkg-deb -x "$W/debs/$deb" "$K"
	[ -e "$K/lib/modules" ] || ln -s usr/lib "$K/lib"
	full=$(basename "$K"/lib/modules/*)
	python3 "$here/unpack-kernel.py" "$K/boot/vmlinuz-$full" "$W/boot/vmlinux-$v"
	depmod -b "$K" "$full"
	M=$W/kernels/$v-root; mkdir -p "$M/usr/lib/modules/$full"
	for m in $mods; do modprobe -d "$K" -S "$full" --show-depends "$m" 2>/dev/null | awk '$1=="insmod"{print $2}' || true; done | sort -u | while read -r f; do
		rel=${f#*/lib/modules/$full/}
		mkdir -p "$M/usr/lib/modules/$full/$(dirname "$rel")"; cp "$K/lib/modules/$full/$rel" "$M/usr/lib/modules/$full/$rel"
		case $rel in *.xz) xz -d "$M/usr/lib/modules/$full/$rel" ;; *.zst) zstd -q -d --rm "$M/usr/lib/modules/$full/$rel" ;; esac
	done
	cp "$K/lib/modules/$full"/modules.{builtin,builtin.modinfo,order} "$M/usr/lib/modules/$full/" 2>/dev/null || true
	mkdir -p "$M/lib.tmp"; rmdir "$M/lib.tmp"; ln -s usr/lib "$M/lib"; depmod -b "$M" "$full"
	{ archive "$R"; archive "$M"; } > "$W/boot/initramfs-$v"
	echo "$full" > "$W/boot/version-$v"
done
rm -rf "$W/kernels"
du -h "$W"/boot/initramfs-* >&2
