# roce-fault under a stack that nobody here wrote: what it reports is what is missing, and the stack reacts as the standard says
# lab: kernel=6.1,6.12 programs timeout=1500
# Time-outs are long (-t 20: four seconds) where the stack has another way to notice a loss, so that a slow machine repeats nothing by itself.
G=$(gid4); PT="-d rxe0 -x $G -F"
# roce-fault attaches first, then starts the server
CAPBOTH=1 SRVWAIT=2000 LIMIT=320
# at_b NAME "FAULT" "COMMAND": b, the server, runs under roce-fault; at_a: the client does
at_b() { pair $1 "roce-fault once -i eth0 --for 300s --json $OUT/$1.fault-b $2 -- $3" -- "$3 $PEER"; }
at_a() { pair $1 "$3" -- "roce-fault once -i eth0 --for 300s --json $OUT/$1.fault-a $2 -- $3 $PEER"; }
N=fault_write_middle
at_b $N "--drop --direction in --opcode 'RC RDMA WRITE Middle' --nth 5" "ib_write_bw $PT -n 20 -s 4096 -u 20 -t 8"
expect $N hits b RC RDMA WRITE Middle nth 5
expect $N nak psn_sequence_error 1
expect $N nak-names-dropped b
expect $N rxe b out_of_seq_request 1
expect $N back 1
expect $N client ends 0
expect $N server ends 0
expect $N finding loss
expect $N cause sequence_nak 1+
expect $N cause timeout 0

N=fault_ack
at_a $N "--drop --direction in --opcode 'RC Acknowledge' --nth 2" "rxelab -g $G -o send -n 6 -l 200 -q 1 -t 17"
expect $N hits a RC Acknowledge nth 2
expect $N again 1+
expect $N needless
expect $N nak psn_sequence_error 0
expect $N rxe b duplicate_request 1+
expect $N client says done 6 bad 0
expect $N server says received 6 bad 0

N=fault_read_response
at_a $N "--drop --direction in --opcode 'RC RDMA READ response Middle' --nth 4" "rxelab -g $G -o read -n 3 -l 6000 -q 1 -t 18"
expect $N hits a RC RDMA READ response Middle nth 4
expect $N client says done 3 bad 0

N=fault_egress
at_a $N "--drop --direction out --opcode 'RC RDMA READ Request' --nth 2" "rxelab -g $G -o read -n 4 -l 1500 -q 1 -t 17"
expect $N injected a 1
expect $N count RC RDMA READ Request 4+
expect $N client says done 4 bad 0

# one PSN never gets through: completion status 12
N=fault_retry_exceeded
at_b $N "--drop --direction in --opcode 'RC RDMA WRITE Only' --psn +2" "rxelab -g $G -o write -n 5 -l 100 -q 1 -t 15 -r 3"
expect $N injected b 4
expect $N hits b RC RDMA WRITE Only psn +2
expect $N client says transport retry counter exceeded
expect $N rxe a retry_exceeded_err 1
expect $N finding retry-exceeded

# only the ICRC fails: the receiver's stack must drop the packet by itself
N=fault_icrc
at_b $N "--corrupt icrc --direction in --opcode 'RC SEND Only' --nth 4" "rxelab -g $G -o send -n 10 -l 300 -q 4 -t 20"
expect $N hits b RC SEND Only nth 4
expect $N nak psn_sequence_error 1
expect $N finding b bad-icrc
expect $N again 1+
expect $N client says done 10 bad 0
expect $N server says received 10 bad 0

# a mark is not a loss: nothing that carries one is refused, and whatever comes again comes needlessly
N=fault_ce
at_b $N "--ce --direction in --opcode 'RC RDMA WRITE First' --opcode 'RC RDMA WRITE Last'" "rxelab -g $G -o write -n 5 -l 2500 -T 2 -t 20"
expect $N hits b RC RDMA WRITE First, RC RDMA WRITE Last all
expect $N ce b 10+
expect $N nak psn_sequence_error 0
expect $N needless
expect $N client says done 5 bad 0

# five seconds of nothing in the middle of a stream; the queue pair's patience (seven times 1.07 s) outlasts them. The stream lasts until they are over.
N=fault_blackhole
printf 'name = "blackhole"\n[[rule]]\nname = "hole"\ntype = "blackhole"\ndirection = "in"\nfor = "5s"\n[expect]\nno_message_lost = true\n' > /tmp/hole.toml
STREAM="rxelab -g $G -o write -n 1000000 -l 500 -q 1 -G 100 -t 18"
pair $N "$STREAM & s=\$!; until [ \$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts) -gt \$(($(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)+4)) ]; do sleep 0.1; done; \
	roce-fault run /tmp/hole.toml -i eth0 --for 300s --json $OUT/$N.fault-b -- sleep 7; echo > $OUT/.hole-over; wait \$s" -- "$STREAM -U $OUT/.hole-over $PEER"
expect $N injected b 2+
expect $N pause b 5+
expect $N again 1+
expect $N nak psn_sequence_error 0
expect $N client says done [0-9]+ bad 0
expect $N server ends 0

# by chance, but from a seed: exactly the reported packets are missing
N=fault_random
at_b $N "--drop --direction in --probability 1% --seed 7" "rxelab -g $G -o write -n ${LONG:-1500} -l 3000 -q 4 -t 16 -S 0x1000"
expect $N injected b 1+
expect $N client says done [0-9]+ bad 0
expect $N server ends 0
expect $N finding loss
