# roce-fault under a stack that nobody here wrote: what it reports is what is missing, and the stack reacts as the standard says
# lab: kernel=6.1,6.12 programs core
G=$(gid4); PT="-d rxe0 -x $G -F"
# roce-fault attaches first, then starts the server
CAPBOTH=1 SRVWAIT=2000 LIMIT=320
# at_b NAME "FAULT" "COMMAND": b, the server, runs under roce-fault; at_a: the client does
at_b() { pair $1 "roce-fault once -i eth0 --for 300s --json $OUT/$1.fault-b $2 -- $3" -- "$3 $PEER"; }
at_a() { pair $1 "$3" -- "roce-fault once -i eth0 --for 300s --json $OUT/$1.fault-a $2 -- $3 $PEER"; }
N=fault_write_middle
at_b $N "--drop --direction in --opcode 'RC RDMA WRITE Middle' --nth 5" "ib_write_bw $PT -n 20 -s 4096 -u 17 -t 8"
expect $N injected b 1
expect $N dropped b
expect $N nak psn_sequence_error 1
expect $N rxe b out_of_seq_request 1
expect $N back 1
expect $N client ends 0
expect $N server ends 0
expect $N finding loss

N=fault_ack
at_a $N "--drop --direction in --opcode 'RC Acknowledge' --nth 2" "rxelab -g $G -o send -n 6 -l 200 -q 1 -t 14"
expect $N injected a 1
expect $N dropped a
expect $N again 1+
expect $N rxe b duplicate_request 1+
expect $N client says done 6 bad 0

N=fault_read_response
at_a $N "--drop --direction in --opcode 'RC RDMA READ response Middle' --nth 4" "rxelab -g $G -o read -n 3 -l 6000 -q 1 -t 14"
expect $N injected a 1
expect $N dropped a
expect $N client says done 3 bad 0

N=fault_egress
at_a $N "--drop --direction out --opcode 'RC RDMA READ Request' --nth 2" "rxelab -g $G -o read -n 4 -l 1500 -q 1 -t 14"
expect $N injected a 1
expect $N count RC RDMA READ Request 4
expect $N client says done 4 bad 0

# one PSN never gets through: completion status 12
N=fault_retry_exceeded
at_b $N "--drop --direction in --opcode 'RC RDMA WRITE Only' --psn +2" "rxelab -g $G -o write -n 5 -l 100 -q 1 -t 14 -r 3"
expect $N injected b 4
expect $N dropped b
expect $N client says transport retry counter exceeded
expect $N rxe a retry_exceeded_err 1
expect $N finding retry-exceeded

# only the ICRC fails: the receiver's stack must drop the packet by itself
N=fault_icrc
at_b $N "--corrupt icrc --direction in --opcode 'RC SEND Only' --nth 4" "rxelab -g $G -o send -n 10 -l 300 -q 4 -t 14"
expect $N injected b 1
expect $N icrc-bad b 1
expect $N finding b bad-icrc
expect $N icrc-bad a 0
expect $N again 1+
expect $N client says done 10 bad 0
expect $N server says received 10 bad 0

N=fault_ce
at_b $N "--ce --direction in --opcode 'RC RDMA WRITE First' --opcode 'RC RDMA WRITE Last'" "rxelab -g $G -o write -n 5 -l 2500 -T 2"
expect $N injected b 10
expect $N ce b 10
expect $N ce a 0
expect $N icrc-bad b 0
expect $N again 0
expect $N client says done 5 bad 0

# three seconds of nothing; the queue pair's patience (seven times half a second) outlasts them
N=fault_blackhole
if [ $ROLE = b ]; then printf 'name = "blackhole"\n[[rule]]\nname = "hole"\ntype = "blackhole"\ndirection = "in"\nafter = "2s"\nfor = "3s"\n[expect]\nno_message_lost = true\n' > /tmp/hole.toml; fi
pair $N "roce-fault run /tmp/hole.toml -i eth0 --for 300s --json $OUT/$N.fault-b -- rxelab -g $G -o write -n 60 -l 500 -q 1 -G 100 -t 17" -- "rxelab -g $G -o write -n 60 -l 500 -q 1 -G 100 -t 17 $PEER"
expect $N injected b 1+
expect $N dropped b
expect $N again 1+
expect $N client says done 60 bad 0
expect $N server ends 0

# by chance, but from a seed: exactly the reported packets are missing (paced, so that nothing else is lost)
N=fault_random
at_b $N "--drop --direction in --probability 3% --seed 7" "rxelab -g $G -o write -n 120 -l 3000 -q 1 -G 4 -t 15"
expect $N injected b 4+
expect $N dropped b
expect $N client says done 120 bad 0
expect $N server ends 0
