# what people meet in the field: several queue pairs at once, both directions, losses that hit anything, peers that vanish
# lab: timeout=1500
G=$(gid4); G6=$(gid6); PT="-d rxe0 -x $G -F"
x() { n=$1; shift; pair $n "rxelab -g $G $*" -- "rxelab -g $G $* $PEER"; }
x6() { n=$1; shift; pair $n "rxelab -6 -g $G6 $*" -- "rxelab -g $G6 $* $PEER6"; }
b_rnd() { [ $ROLE = b ] && drop_in_random $1; true; }
a_rnd() { [ $ROLE = a ] && drop_in_random $1; true; }
both() { impair "$@"; }
a_only() { [ $ROLE = a ] && impair "$@"; true; }
b_only() { [ $ROLE = b ] && impair "$@"; true; }
N=0; fin() { N=$((N+1)); barrier fin-$N; clear_tc; barrier fin2-$N; }
# OP:COUNT:LENGTH words, each a pair of processes of its own, all at once
many() { n=$1; shift; s=""; c=""; p=18610; for o; do IFS=: read op cnt len m <<< "$o"; p=$((p+1)); s="$s rxelab -p $p -g $G -t 14 -o $op -n $cnt -l $len -m ${m:-1024} &"; c="$c rxelab -p $p -g $G -G 3 -q 4 -t 14 -o $op -n $cnt -l $len -m ${m:-1024} $PEER &"; done; pair $n "$s wait" -- "$c wait"; }

x bidir_write          -b -o write -n 6 -l 4096
x bidir_read           -b -o read -n 4 -l 3000
x bidir_mixed          -b -o mixed -n 18 -l 2100
b_rnd 9;                  x bidir_send_loss       -b -o send -n 20 -l 2500 -t 14; fin
b_rnd 12; a_rnd 12;       x bidir_mixed_loss      -b -o mixed -n 24 -l 2100 -t 14; fin
CAPBOTH=1; both loss 4%;  x bidir_both_ends       -b -o mixed -n 24 -l 3000 -t 14; fin; CAPBOTH=
many many_qps          send:6:2500 read:6:3500 faa:10:8 write:6:3000 mixed:9:2100 cas:5:8 write_imm:4:1500 uc_send:4:2500 ud_send:6:300
b_rnd 15;                 many many_qps_loss_in   send:8:2500 read:8:3500 faa:12:8 write:8:3000 mixed:12:2100; fin
both loss 4%;             many many_qps_loss_net  send:8:2500 read:8:3500 faa:12:8 write:8:3000 mixed:12:2100 uc_write:8:2500 ud_send:10:300; fin
many many_qps_mtus     write:4:3000:256 write:4:3000:512 read:4:3000:256 send:4:3000:1024 read:4:3000:512
a_rnd 12;                 x loss_read_big         -o read -n 3 -l 40000 -t 14; fin
both loss 3%;             x loss_read_big_deep    -o read -n 6 -l 24000 -q 4 -t 14; fin
CAPBOTH=1; both loss 4%;  x loss_read_both_ends   -o read -n 5 -l 16000 -q 2 -t 14; fin; CAPBOTH=
b_rnd 30;                 x loss_write_big        -o write -n 3 -l 40000 -q 3 -t 14; fin
both loss 6%;             x loss_faa_deep         -o faa -n 40 -q 8 -t 14; fin
both loss 6%;             x loss_cas_deep         -o cas -n 30 -q 4 -t 14; fin
both loss gemodel 2% 30%; x loss_burst            -o write -n 20 -l 4000 -q 4 -t 14; fin
b_rnd 7;                  x loss_psn_wrap         -o write -n 12 -l 2500 -S 0xfffff0 -t 14; fin
a_rnd 7;                  x loss_psn_wrap_read    -o read -n 10 -l 3500 -S 0xfffff0 -t 14; fin
x rnr_deep             -o rnr -n 6 -l 2500 -q 6 -D 15 -M 12
x rnr_write_imm        -o rnr_write_imm -n 4 -l 2500 -q 2 -D 25 -M 14
b_rnd 8;                  x rnr_loss              -o rnr -n 8 -l 1500 -q 4 -D 15 -M 12 -t 14; fin
x rnr_exceeded_multi   -o rnr -n 1 -l 3000 -D 3000 -R 1 -M 16
x psn_disagree         -o send -n 2 -l 100 -P 5 -t 14 -r 2
pair mtu_disagree "rxelab -g $G -o write -n 3 -l 3000 -m 512" -- "rxelab -g $G -o write -n 3 -l 3000 -m 1024 -t 14 -r 2 $PEER"
pair mtu_disagree_other "rxelab -g $G -o write -n 3 -l 3000 -m 1024" -- "rxelab -g $G -o write -n 3 -l 3000 -m 512 -t 14 -r 2 $PEER"
x idle_then_more       -o write -n 3 -l 3000 -q 1 -G 3000
# the peer's process dies: nobody answers on that QP number any more
pair peer_killed "rxelab -g $G -o send -n 60 -l 800 & p=\$!; sleep 2.2; kill -9 \$p; sleep 6" -- "rxelab -g $G -o send -n 60 -l 800 -q 1 -G 50 -t 14 -r 3 $PEER"
[ $ROLE = b ] && { drop_in_setup; tc filter add dev eth0 ingress protocol ip pref 10 u32 match ip protocol 17 0xff match ip dport 4791 0xffff match u8 0x0a 0xff at 28 action drop; }
x timeout_peer_talks   -b -o write -n 12 -l 100 -q 1 -G 120 -t 14 -r 3; fin
[ $ROLE = b ] && drop_in 1
x timeout_read         -o read -n 1 -l 3000 -t 14 -r 2; fin
[ $ROLE = a ] && drop_in 1
x timeout_acks_lost    -o write -n 2 -l 2500 -t 14 -r 3; fin
[ $ROLE = b ] && drop_in 1
pair timeout_many "rxelab -p 18611 -g $G -o write -n 2 -l 2500 & rxelab -p 18612 -g $G -o read -n 1 -l 100 & wait" -- "rxelab -p 18611 -g $G -o write -n 2 -l 2500 -t 14 -r 2 $PEER & rxelab -p 18612 -g $G -o read -n 1 -l 100 -t 13 -r 4 $PEER & wait"; fin
a_only loss 8%;           x loss_uc_write         -o uc_write_imm -n 20 -l 2500; fin
a_only duplicate 25%;     x dup_uc_send           -o uc_send -n 12 -l 2500; fin
a_only delay 20ms reorder 60% 50%; x reorder_uc_send -o uc_send -n 12 -l 2500; fin
both loss 15%;            x loss_ud               -o ud_send -n 30 -l 300; fin
both delay 20ms;          x delay_write           -o write -n 6 -l 12000 -q 2 -t 16; fin
both delay 10ms 4ms;      x jitter_send           -o send -n 20 -l 1500 -q 4 -t 16; fin
both delay 15ms loss 5%;  x delay_loss_read       -o read -n 6 -l 6000 -q 2 -t 16; fin
both duplicate 15%;       x dup_write             -o write -n 10 -l 3000 -t 14; fin
both duplicate 15%;       x dup_mixed             -o mixed -n 18 -l 2100 -t 14; fin
b_only corrupt 12%;       x corrupt_read_response -o read -n 8 -l 4000 -t 14; fin
both corrupt 6%;          x corrupt_mixed         -o mixed -n 18 -l 2100 -t 14; fin
both loss 3% duplicate 5% delay 5ms reorder 30% 50%; x storm_send -o send -n 40 -l 1800 -q 6 -t 16; fin
both loss 3% duplicate 5% delay 5ms reorder 30% 50%; x storm_mixed -o mixed -n 30 -l 2100 -t 16; fin
both loss 5%;             x6 ipv6_loss_mixed      -o mixed -n 24 -l 2100 -t 14; fin
both loss 5%;             x6 ipv6_loss_send       -o send -n 24 -l 2500 -t 14; fin
x6 ipv6_bidir          -b -o write -n 5 -l 2500
x6 ipv6_nak            -o badrkey -n 2 -l 3000
x6 ipv6_uc_write       -o uc_write -n 4 -l 2500
pair ipv6_ud_bw   "ib_send_bw -d rxe0 -x $G6 -F -c UD -n 20 -s 800" -- "ib_send_bw -d rxe0 -x $G6 -F -c UD -n 20 -s 800 $PEER"
pair cm_reconnect "for i in 1 2 3; do rping -s -a $ME -C 2 -S 100; done" -- "for i in 1 2 3; do rping -c -a $PEER -C 2 -S 100; sleep 1; done"
b_rnd 6; LIMIT=50 pair cm_reconnect_loss "for i in 1 2 3; do timeout 15 rping -s -a $ME -C 2 -S 1500; done" -- "for i in 1 2 3; do timeout 14 rping -c -a $PEER -C 2 -S 1500; sleep 2; done"; fin
pair cm_many "ucmatose -c 6 -C 2 -S 300" -- "ucmatose -c 6 -C 2 -S 300 -s $PEER"
pair cm_client_killed "timeout 10 rping -s -a $ME -C 100000 -S 64" -- "rping -c -a $PEER -C 100000 -S 64 & p=\$!; sleep 0.6; kill -9 \$p; sleep 1"
pair cm_server_killed "rping -s -a $ME -C 100000 -S 64 & p=\$!; sleep 1.6; kill -9 \$p; sleep 2" -- "timeout 10 rping -c -a $PEER -C 100000 -S 64"
pair cm_riostream "riostream -S 2000 -C 4" -- "riostream -s $PEER -S 2000 -C 4"
pair cm_udpong "udpong -S 500 -C 10" -- "udpong -s $PEER -S 500 -C 10"
pair write_bw_qps "ib_write_bw $PT -q 4 -n 40 -s 4096" -- "ib_write_bw $PT -q 4 -n 40 -s 4096 $PEER"
b_rnd 60; pair write_bw_qps_loss "ib_write_bw $PT -q 4 -n 40 -s 4096 -u 14" -- "ib_write_bw $PT -q 4 -n 40 -s 4096 -u 14 $PEER"; fin
b_rnd 60; pair read_bw_loss "ib_read_bw $PT -n 60 -s 8192 -u 14" -- "ib_read_bw $PT -n 60 -s 8192 -u 14 $PEER"; fin
pair send_bidir_bw "ib_send_bw $PT -b -q 2 -n 30 -s 2500" -- "ib_send_bw $PT -b -q 2 -n 30 -s 2500 $PEER"
pair write_bidir_bw "ib_write_bw $PT -b -q 2 -n 30 -s 2500" -- "ib_write_bw $PT -b -q 2 -n 30 -s 2500 $PEER"
b_rnd 40; a_rnd 40; pair write_bidir_bw_loss "ib_write_bw $PT -b -q 2 -n 30 -s 2500 -u 14" -- "ib_write_bw $PT -b -q 2 -n 30 -s 2500 -u 14 $PEER"; fin
