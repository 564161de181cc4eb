/* rxelab: one small libibverbs program that drives a queue pair through one
 * chosen operation, so that each kind of RoCEv2 packet can be recorded alone.
 *
 *   server:  rxelab -o OP [options]
 *   client:  rxelab -o OP [options] SERVER_ADDRESS
 *
 * Both ends swap their QP data over TCP (port 18600), as perftest does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct peer { uint32_t qpn, psn, rkey, mwkey; uint64_t va; uint32_t len; union ibv_gid gid; };

static const char *op = "send", *devname, *until;
static int count = 4, size = 64, mtu = 1024, gidx = 1, timeout_ = 14, retry = 7,
	   rnr_retry = 7, min_rnr = 12, rdelay_ms, port = 18600, tclass, rsize, sl,
	   depth = 16, gap_ms, v6sock, hops = 64, burn;
static uint32_t psn0 = 0;
static int have_psn, both, skew;

static void die(const char *w) { fprintf(stderr, "rxelab: %s: %s\n", w, strerror(errno)); exit(2); }
static void msleep(int ms) { struct timespec t = { ms / 1000, (ms % 1000) * 1000000L }; nanosleep(&t, NULL); }
static int is(const char *s) { return !strcmp(op, s); }
static int starts(const char *s) { return !strncmp(op, s, strlen(s)); }
static int mtu_enum(int m) { return m >= 4096 ? IBV_MTU_4096 : m >= 2048 ? IBV_MTU_2048 : m >= 1024 ? IBV_MTU_1024 : m >= 512 ? IBV_MTU_512 : IBV_MTU_256; }

static int tcp(const char *host)
{
	struct addrinfo h = { .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE,
			      .ai_family = host ? AF_UNSPEC : (v6sock ? AF_INET6 : AF_INET) }, *r;
	char p[16]; snprintf(p, sizeof p, "%d", port);
	if (getaddrinfo(host, p, &h, &r)) die("getaddrinfo");
	if (!host) {
		int s = socket(r->ai_family, SOCK_STREAM, 0), one = 1;
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(s, r->ai_addr, r->ai_addrlen) || listen(s, 1)) die("listen");
		int c = accept(s, NULL, NULL);
		close(s);
		return c;
	}
	for (int i = 0; i < 100; i++) {
		int s = socket(r->ai_family, SOCK_STREAM, 0);
		if (!connect(s, r->ai_addr, r->ai_addrlen)) return s;
		close(s); msleep(200);
	}
	die("connect");
	return -1;
}
static void full(int s, void *b, size_t n, int wr)
{
	char *p = b;
	while (n) { ssize_t k = wr ? write(s, p, n) : read(s, p, n); if (k <= 0) die("socket"); p += k; n -= k; }
}
static void sync_(int s) { char c = 'x'; full(s, &c, 1, 1); full(s, &c, 1, 0); }

static int poll1(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a);
	for (;;) {
		int n = ibv_poll_cq(cq, 1, wc);
		if (n) return n;
		clock_gettime(CLOCK_MONOTONIC, &b);
		if ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 > ms) return 0;
		usleep(200);
	}
}

int main(int argc, char **argv)
{
	int c;
	while ((c = getopt(argc, argv, "o:d:n:l:m:g:t:r:R:M:D:p:T:L:q:S:G:6H:B:bP:U:")) != -1) switch (c) {
	case 'o': op = optarg; break;
	case 'd': devname = optarg; break;
	case 'n': count = atoi(optarg); break;
	case 'l': size = atoi(optarg); break;
	case 'm': mtu = atoi(optarg); break;
	case 'g': gidx = atoi(optarg); break;
	case 't': timeout_ = atoi(optarg); break;
	case 'r': retry = atoi(optarg); break;
	case 'R': rnr_retry = atoi(optarg); break;
	case 'M': min_rnr = atoi(optarg); break;
	case 'D': rdelay_ms = atoi(optarg); break;
	case 'p': port = atoi(optarg); break;
	case 'T': tclass = atoi(optarg); break;
	case 'L': rsize = atoi(optarg); break;
	case 'q': depth = atoi(optarg); break;
	case 'S': psn0 = strtoul(optarg, NULL, 0); have_psn = 1; break;
	case 'G': gap_ms = atoi(optarg); break;
	case 'B': burn = atoi(optarg); break;
	case '6': v6sock = 1; break;
	case 'b': both = 1; break;      /* both ends send, on the one queue pair */
	case 'P': skew = atoi(optarg); break;   /* the two ends disagree by so many about the first PSN */
	case 'U': until = optarg; break;        /* the active end stops once this file is there */
	case 'H': hops = atoi(optarg); break;
	default: return 2;
	}
	const char *host = optind < argc ? argv[optind] : NULL;
	int client = host != NULL;
	int active = client || both;
	if (!rsize) rsize = size;
	int n, uc = starts("uc_"), ud = starts("ud_");
	struct ibv_device **l = ibv_get_device_list(&n), *d = NULL;
	for (int i = 0; i < n; i++) if (!devname || !strcmp(devname, ibv_get_device_name(l[i]))) { d = l[i]; break; }
	if (!d) die("no device");
	struct ibv_context *ctx = ibv_open_device(d);
	if (!ctx) die("open");
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 512, NULL, NULL, 0), *rcq = ibv_create_cq(ctx, 512, NULL, NULL, 0);
	size_t blen = (size > rsize ? size : rsize) + 4096;
	char *buf = aligned_alloc(4096, (blen + 4095) & ~4095UL);
	for (size_t i = 0; i < blen; i++) buf[i] = client ? (char)i : (char)0xee;
	int acc = IBV_ACCESS_LOCAL_WRITE;
	if (!is("noperm_write")) acc |= IBV_ACCESS_REMOTE_WRITE;
	if (!is("noperm_read")) acc |= IBV_ACCESS_REMOTE_READ;
	if (!is("noperm_atomic")) acc |= IBV_ACCESS_REMOTE_ATOMIC;
	if (is("send_inv")) acc |= IBV_ACCESS_MW_BIND;
#ifdef LAB_NEWER
	if (starts("flush") && !is("flush_noperm")) acc |= IBV_ACCESS_FLUSH_GLOBAL;
#endif
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, blen, acc);
	if (!mr) die("reg_mr");
	struct ibv_qp_init_attr ia = { .send_cq = cq, .recv_cq = rcq, .qp_type = ud ? IBV_QPT_UD : uc ? IBV_QPT_UC : IBV_QPT_RC,
		.cap = { .max_send_wr = 128, .max_recv_wr = 256, .max_send_sge = 1, .max_recv_sge = 1 } };
	/* -B: use up QP numbers, so that the two ends of a connection do not share one */
	for (int i = 0; i < burn; i++) { struct ibv_qp *x = ibv_create_qp(pd, &ia); if (x) ibv_destroy_qp(x); }
	if (is("burn")) return 0;
	struct ibv_qp *qp;
#ifdef LAB_NEWER
	/* FLUSH and ATOMIC WRITE are only reached through the extended interface */
	struct ibv_qp_init_attr_ex xa = { .send_cq = cq, .recv_cq = rcq, .qp_type = IBV_QPT_RC, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE,
		.cap = ia.cap };
	int newer = starts("flush") || is("atomic_write");
	if (newer) qp = ibv_create_qp_ex(ctx, &xa); else
#endif
	qp = ibv_create_qp(pd, &ia);
	if (!qp) die("create_qp");
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .pkey_index = 0, .port_num = 1, .qkey = 0x11111111,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	if (is("qp_noperm")) a.qp_access_flags = 0;
	if (uc) a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
#ifdef LAB_NEWER
	if (newer) a.qp_access_flags |= IBV_ACCESS_FLUSH_GLOBAL;
#endif
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS))) die("INIT");

	struct peer me = { 0 }, pe;
	srand(time(NULL) ^ getpid());
	me.qpn = qp->qp_num; me.psn = have_psn ? (psn0 & 0xffffff) : (rand() & 0xffffff);
	me.rkey = mr->rkey; me.va = (uintptr_t)buf; me.len = blen;
	if (ibv_query_gid(ctx, 1, gidx, &me.gid)) die("gid");
	int s = tcp(host);
	full(s, &me, sizeof me, 1); full(s, &pe, sizeof pe, 0);

	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1, .sl = sl, .grh = { .dgid = pe.gid, .sgid_index = gidx, .hop_limit = hops, .traffic_class = tclass } };
	struct ibv_ah *ahp = NULL;
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTR;
	if (ud) {
		if (ibv_modify_qp(qp, &a, IBV_QP_STATE)) die("RTR");
		a.qp_state = IBV_QPS_RTS; a.sq_psn = me.psn;
		if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN)) die("RTS");
		ahp = ibv_create_ah(pd, &ah);
		if (!ahp) die("ah");
	} else {
		a.path_mtu = mtu_enum(mtu); a.dest_qp_num = pe.qpn; a.rq_psn = (pe.psn + skew) & 0xffffff; a.ah_attr = ah;
		a.max_dest_rd_atomic = 4; a.min_rnr_timer = min_rnr;
		if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  (uc ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))) die("RTR");
		a.qp_state = IBV_QPS_RTS; a.timeout = timeout_; a.retry_cnt = retry; a.rnr_retry = rnr_retry; a.sq_psn = me.psn; a.max_rd_atomic = 4;
		if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | (uc ? 0 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))) die("RTS");
	}
	/* send_inv: the server binds a type 2 memory window and hands out its key */
	uint32_t mwkey = 0;
	if (is("send_inv") && !client) {
		struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		if (!mw) die("mw");
		struct ibv_send_wr w = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
		w.bind_mw.mw = mw; w.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		w.bind_mw.bind_info.mr = mr; w.bind_mw.bind_info.addr = (uintptr_t)buf; w.bind_mw.bind_info.length = 4096;
		w.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		if (ibv_post_send(qp, &w, &bad)) die("bind");
		struct ibv_wc wc;
		if (!poll1(cq, &wc, 2000) || wc.status) { fprintf(stderr, "bind status %d\n", wc.status); return 2; }
		mwkey = w.bind_mw.rkey;
	}
	if (is("send_inv")) { uint32_t k = mwkey; full(s, &k, 4, 1); full(s, &k, 4, 0); pe.mwkey = k; }

	int wants_recv = starts("send") || is("write_imm") || is("uc_write_imm") || starts("uc_send") || ud || starts("rnr") || is("badlen");
	int grh = ud ? 40 : 0, posted = 0;
	struct ibv_sge rs = { .addr = (uintptr_t)buf, .length = rsize + grh, .lkey = mr->lkey };
	struct ibv_recv_wr rw = { .sg_list = &rs, .num_sge = 1 }, *rbad;
	if ((!client || both) && wants_recv && !starts("rnr"))
		for (; posted < count; posted++) if (ibv_post_recv(qp, &rw, &rbad)) die("post_recv");
	sync_(s);
	if (!client && starts("rnr")) {
		/* each receive is posted late, so the sender meets RNR NAKs */
		for (; posted < count; posted++) { msleep(rdelay_ms ? rdelay_ms : 30); if (ibv_post_recv(qp, &rw, &rbad)) die("post_recv"); }
	}
	printf("%s %s qpn 0x%06x psn 0x%06x -> qpn 0x%06x psn 0x%06x rkey 0x%08x va 0x%llx\n", client ? "client" : "server", op,
	       me.qpn, me.psn, pe.qpn, pe.psn, pe.rkey, (unsigned long long)pe.va);
	int bad_n = 0;
#ifdef LAB_NEWER
	if (active && newer) {
		struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp); struct ibv_wc wc;
		for (int i = 0; i < count; i++) {
			ibv_wr_start(x);
			x->wr_id = 2 * i; x->wr_flags = IBV_SEND_SIGNALED;
			if (is("atomic_write")) { uint64_t val = 0x1122334455667700ULL + i; ibv_wr_atomic_write(x, pe.rkey, pe.va + 8 * i, &val); }
			else {
				ibv_wr_rdma_write(x, pe.rkey, pe.va); ibv_wr_set_sge(x, mr->lkey, (uintptr_t)buf, size);
				x->wr_id = 2 * i + 1;
				ibv_wr_flush(x, pe.rkey, pe.va, size, IBV_FLUSH_GLOBAL, is("flush_mr") ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
			}
			if (ibv_wr_complete(x)) die("wr_complete");
			for (int k = is("atomic_write") ? 1 : 2; k; k--) {
				if (!poll1(cq, &wc, 10000)) { printf("timeout\n"); break; }
				printf("wr %d opcode %d: %s\n", (int)wc.wr_id, wc.opcode, ibv_wc_status_str(wc.status));
			}
		}
	} else
#endif
	if (active) {
		int out = 0, done = 0, i = 0;
		struct ibv_wc wc;
		while (done < count) {
			while (i < count && out < depth) {
				struct ibv_sge sg = { .addr = (uintptr_t)buf, .length = size, .lkey = mr->lkey };
				struct ibv_send_wr w = { .wr_id = i, .sg_list = &sg, .num_sge = size ? 1 : 0, .send_flags = IBV_SEND_SIGNALED }, *bad;
				w.wr.rdma.remote_addr = pe.va; w.wr.rdma.rkey = pe.rkey;
				const char *o = op; if (uc || ud) o += 3;
				if (!strcmp(o, "send") || is("ud_badqkey") || is("rnr") || is("badlen")) w.opcode = IBV_WR_SEND;
				else if (!strcmp(o, "send_se")) { w.opcode = IBV_WR_SEND; w.send_flags |= IBV_SEND_SOLICITED; }
				else if (!strcmp(o, "send_imm")) { w.opcode = IBV_WR_SEND_WITH_IMM; w.imm_data = htonl(0xcafe0000 + i); }
				else if (!strcmp(o, "send_inv")) { w.opcode = IBV_WR_SEND_WITH_INV; w.invalidate_rkey = pe.mwkey; }
				else if (!strcmp(o, "write_imm") || is("rnr_write_imm")) { w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; w.imm_data = htonl(0xbeef0000 + i); }
				else if (!strcmp(o, "read") || is("noperm_read")) w.opcode = IBV_WR_RDMA_READ;
				else if (is("badrkey_read")) { w.opcode = IBV_WR_RDMA_READ; w.wr.rdma.rkey ^= 0x5a; }
				else if (is("badrkey")) { w.opcode = IBV_WR_RDMA_WRITE; w.wr.rdma.rkey ^= 0x5a; }
				else if (is("badva")) { w.opcode = IBV_WR_RDMA_WRITE; w.wr.rdma.remote_addr += pe.len; }
				else if (!strcmp(o, "write") || is("noperm_write") || is("qp_noperm")) w.opcode = IBV_WR_RDMA_WRITE;
				else if (is("faa") || is("cas") || is("noperm_atomic") || is("unaligned")) {
					sg.length = 8; sg.addr += 1024;
					w.num_sge = 1;
					w.opcode = is("cas") ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
					w.wr.atomic.remote_addr = pe.va + (is("unaligned") ? 3 : 0); w.wr.atomic.rkey = pe.rkey;
					w.wr.atomic.compare_add = is("cas") ? (i ? (uint64_t)i : 0xeeeeeeeeeeeeeeeeULL) : 0x0102030405060708ULL;
					w.wr.atomic.swap = i + 1;
				} else if (is("mixed")) {
					static const int k[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };
					w.opcode = k[i % 3];
					if (w.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) { sg.length = 8; w.wr.atomic.remote_addr = pe.va; w.wr.atomic.rkey = pe.rkey; w.wr.atomic.compare_add = 1; w.num_sge = 1; }
				} else { fprintf(stderr, "unknown op %s\n", op); return 2; }
				if (ud) { w.wr.ud.ah = ahp; w.wr.ud.remote_qpn = pe.qpn; w.wr.ud.remote_qkey = is("ud_badqkey") ? 0x22222222 : 0x11111111; }
				if (is("send_inv") && i > 0) w.opcode = IBV_WR_SEND;
				if (ibv_post_send(qp, &w, &bad)) die("post_send");
				i++; out++;
				if (until && !access(until, F_OK)) count = i;
				if (gap_ms) msleep(gap_ms);
			}
			if (!poll1(cq, &wc, 30000)) { fprintf(stderr, "timeout\n"); bad_n++; break; }
			out--; done++;
			if (wc.status) { bad_n++; printf("wr %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status)); }
		}
		printf("%s done %d bad %d\n", client ? "client" : "server", done, bad_n);
	}
	sync_(s);
	if (!client || both) {
		struct ibv_wc wc; int got = 0, err = 0;
		while (poll1(rcq, &wc, 50) > 0) { got++; if (wc.status) { err++; printf("recv: %s\n", ibv_wc_status_str(wc.status)); } }
		printf("%s received %d bad %d first word 0x%08x\n", client ? "client" : "server", got, err, *(uint32_t *)buf);
	}
	ibv_destroy_qp(qp);
	return 0;
}
