# roce-top beside the traffic on both machines: its counts equal tcpdump's, and rxe's own counters agree
# lab: kernel=6.1,6.12 programs
G=$(gid4); G6=$(gid6); PT="-d rxe0 -x $G -F"
TOP=ab CAPBOTH=1
drop_in_setup; b_rnd() { [ $ROLE = b ] && drop_in_random $1; true; }
N=0; fin() { N=$((N+1)); barrier fin-$N; clear_tc; barrier fin2-$N; }
# OP:COUNT:LENGTH words, each a queue pair of its own, all at once
many() { n=$1; shift; s=""; c=""; p=18610; for o; do IFS=: read op cnt len <<< "$o"; p=$((p+1)); s="$s rxelab -p $p -g $G -t 17 -o $op -n $cnt -l $len &"; c="$c rxelab -p $p -g $G -q 4 -t 17 -o $op -n $cnt -l $len $PEER &"; done; pair $n "$s wait" -- "$c wait"; }

many counts_many send:6:2500 read:6:3500 faa:8:8 write:6:3000 write_imm:4:1500 uc_send:4:2500 uc_write_imm:3:2500 ud_send:6:300
expect counts_many client ends 0
expect counts_many count RC RDMA READ Request 6+
expect counts_many count UD SEND Only 6
pair counts_ipv6_cm "rping -s -a $ME6 -C 3 -S 1500" -- "rping -c -a $PEER6 -C 3 -S 1500"
expect counts_ipv6_cm client ends 0
expect counts_ipv6_cm count RC RDMA READ response First 3
pair counts_write_bw "ib_write_bw $PT -q 4 -n 50 -s 4096 -u 17" -- "ib_write_bw $PT -q 4 -n 50 -s 4096 -u 17 $PEER"
expect counts_write_bw client ends 0
expect counts_write_bw count RC RDMA WRITE Middle 400+
# receives come late: RNR NAKs and, behind them, sequence NAKs
pair counts_rnr "rxelab -g $G -o rnr -n 3 -l 1500 -q 2 -D 300 -M 14" -- "rxelab -g $G -o rnr -n 3 -l 1500 -q 2 -D 300 -M 14 $PEER"
expect counts_rnr client ends 0
expect counts_rnr rnr 1+
# b loses one packet in nine behind XDP and tcpdump
b_rnd 9; pair counts_loss "rxelab -g $G -o mixed -n 24 -l 2100 -t 14" -- "rxelab -g $G -o mixed -n 24 -l 2100 -t 14 $PEER"; fin
expect counts_loss client ends 0
modprobe 8021q; ip link add link eth0 name eth0.100 type vlan id 100
if [ $ROLE = a ]; then V=10.10.100.1 VP=10.10.100.2 L=1; else V=10.10.100.2 VP=10.10.100.1 L=2; fi
ip addr add $V/24 dev eth0.100; ip link set eth0.100 up
i=0; while VG=$(gid_of 0000:0000:0000:0000:0000:ffff:0a0a:640$L); [ -z "$VG" ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done
pair counts_vlan "rxelab -g $VG -o mixed -n 6 -l 2100" -- "rxelab -g $VG -o mixed -n 6 -l 2100 $VP"
expect counts_vlan client ends 0
# 6.1 takes no driver-mode program at this MTU, 6.12 takes one that accepts fragments
set_mtu 4500
pair counts_jumbo "rxelab -g $G -o mixed -n 6 -l 9000 -m 4096" -- "rxelab -g $G -o mixed -n 6 -l 9000 -m 4096 $PEER"
expect counts_jumbo client ends 0
expect counts_jumbo count RC RDMA READ response Middle 2
