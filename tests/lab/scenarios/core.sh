# what CI runs: every program before the verifier, every kind of traffic counted on both machines, nine faults
# lab: kernel=6.1,6.12 programs core timeout=900
# every program, with everything on that makes the verifier look further: kernels differ in how far it looks
pair core_doctor "true" -- "roce-top doctor -i eth0"
expect core_doctor client ends 0
expect core_doctor client says accepts all 6 programs
LONG=400
. /share/lab/scenarios/faults.sh
TOP=ab LIMIT=320
# everything at once, each a queue pair of its own
modprobe 8021q; ip link add link eth0 name eth0.100 type vlan id 100
if [ $ROLE = a ]; then V=10.10.100.1 VP=10.10.100.2 L=1; else V=10.10.100.2 VP=10.10.100.1 L=2; fi
ip addr add $V/24 dev eth0.100; ip link set eth0.100 up
while VG=$(gid_of 0000:0000:0000:0000:0000:ffff:0a0a:640$L); [ -z "$VG" ]; do nap; done
s="rping -s -a $ME6 -C 3 -S 1500 & ib_write_bw $PT -q 4 -n 20 -s 4096 -u 20 & "
c="rping -c -a $PEER6 -C 3 -S 1500 & j=\$!; ib_write_bw $PT -q 4 -n 20 -s 4096 -u 20 $PEER & j=\"\$j \$!\"; "
p=18610
for o in send:6:2500 read:6:3500 faa:10:8 cas:5:8 write:6:3000 write_imm:4:1500 uc_send:4:2500 uc_write_imm:3:2500 ud_send:6:300 rnr:3:1500:-q:2:-D:200:-M:14; do
	set -- ${o//:/ }; w="-t 20 -o $1 -n $2 -l $3 ${*:4}"; p=$((p+1))
	s="$s rxelab -p $p -g $G $w & "; c="$c rxelab -p $p -g $G $w $PEER & j=\"\$j \$!\"; "
done
s="$s rxelab -p 18630 -g $VG -o mixed -n 6 -l 2100 -t 20 & "; c="$c rxelab -p 18630 -g $VG -o mixed -n 6 -l 2100 -t 20 $VP & j=\"\$j \$!\"; "
SERVERS=13; RECORD=ab; pair core_counts "$s wait" -- "$c for k in \$j; do wait \$k || exit 1; done"
expect core_counts client ends 0
expect core_counts count RC RDMA READ Request 8+
expect core_counts count RC FetchAdd 12+
expect core_counts count RC CmpSwap 5+
expect core_counts count UD SEND Only 11+
expect core_counts count UC SEND First 4
expect core_counts count RC RDMA WRITE Middle 160+
expect core_counts rnr 1+
RECORD=
# large packets, one in nine lost behind XDP and tcpdump. 6.1 takes no driver-mode program at this MTU, 6.12 takes one that accepts fragments
set_mtu 4500; SERVERS=1
[ $ROLE = b ] && drop_in_random 9
pair core_jumbo "rxelab -g $G -o mixed -n 9 -l 9000 -m 4096 -t 15" -- "rxelab -g $G -o mixed -n 9 -l 9000 -m 4096 -t 15 $PEER"
expect core_jumbo client ends 0
expect core_jumbo count RC RDMA READ response Middle 3+
