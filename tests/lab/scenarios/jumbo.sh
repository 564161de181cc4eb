# large RoCE MTUs and VLANs (also with IPv6), several with losses
# lab: mtu=4500
G=$(gid4)
x() { n=$1; shift; pair $n "rxelab -g $G $*" -- "rxelab -g $G $* $PEER"; }
b_rnd() { [ $ROLE = b ] && drop_in_random $1; true; }
a_rnd() { [ $ROLE = a ] && drop_in_random $1; true; }
N=0; fin() { N=$((N+1)); barrier fin-$N; clear_tc; barrier fin2-$N; }
b_rnd 8;  x mtu4096_loss_mixed -o mixed -n 18 -l 9000 -m 4096 -t 14; fin
a_rnd 7;  x mtu4096_loss_read  -o read -n 6 -l 30000 -m 4096 -t 14; fin
x mtu4096_bidir_write -b -o write -n 3 -l 9000 -m 4096
x mtu2048_read        -o read -n 3 -l 9000 -m 2048
b_rnd 9;  x mtu2048_loss_send  -o send -n 8 -l 7000 -m 2048 -t 14; fin
x mtu4096_rnr         -o rnr -n 2 -l 9000 -q 2 -D 25 -M 14 -m 4096
modprobe 8021q
ip link add link eth0 name eth0.100 type vlan id 100 egress-qos-map 0:3
if [ $ROLE = a ]; then V=10.10.100.1 VP=10.10.100.2 V6=fd01::1 VP6=fd01::2 L=1; else V=10.10.100.2 VP=10.10.100.1 V6=fd01::2 VP6=fd01::1 L=2; fi
ip addr add $V/24 dev eth0.100; ip -6 addr add $V6/64 dev eth0.100 nodad; ip link set eth0.100 up; sleep 1
VG=$(gid_of 0000:0000:0000:0000:0000:ffff:0a0a:640$L); VG6=$(gid_of fd01:0000:0000:0000:0000:0000:0000:000$L)
echo "vlan gid indexes $VG $VG6"
v() { n=$1; shift; pair $n "rxelab -g $VG $*" -- "rxelab -g $VG $* $VP"; }
v6() { n=$1; shift; pair $n "rxelab -6 -g $VG6 $*" -- "rxelab -g $VG6 $* $VP6"; }
v vlan_mixed           -o mixed -n 9 -l 2100
impair loss 6%; v vlan_loss_send -o send -n 20 -l 2500 -t 14; fin
v vlan_faa             -o faa -n 4
v6 vlan_ipv6_write     -o write -n 4 -l 2500
v6 vlan_ipv6_read      -o read -n 4 -l 5000
v6 vlan_ipv6_ud        -o ud_send_imm -n 4 -l 500
impair loss 6%; v6 vlan_ipv6_loss_mixed -o mixed -n 18 -l 2100 -t 14; fin
pair vlan_ipv6_cm_rping "rping -s -a $V6 -C 3 -v -S 100" -- "rping -c -a $VP6 -C 3 -v -S 100"
pair vlan_write_bw "ib_write_bw -d rxe0 -x $VG -F -q 2 -n 10 -s 4096" -- "ib_write_bw -d rxe0 -x $VG -F -q 2 -n 10 -s 4096 $VP"
