/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the session inside the application's process: cuInit and the hello, fork, exit, the start and
 * end of threads, and the death of the session.
 *
 * Thread rule: cuInit is serialised by `init`; everything else reads process_code. A forked child never takes
 * a lock of ours: its code is 3 before fork returns there, and every call looks at the code first. */
#include "devshim/process.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "cuda.calls.h"
#include "devshim/arena.h"
#include "devshim/call.h"
#include "devshim/channel.h"
#include "devshim/context.h"
#include "devshim/device.h"
#include "devshim/launch.h"
#include "wire/cuda.h"
#include "wire/frame.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/uncancelled.h"

#define DRIVER_VERSION 13000        /* of the interface that this build describes */
#define MOUNT_DEFAULT "/mnt/scuda"

/* Tells a server that this is the shim, should its driver path lead here. */
__attribute__((visibility("default"))) extern const char scudafs_shim_marker[];
const char scudafs_shim_marker[] = "scudafs";

_Atomic int process_code = CUDA_ERROR_NOT_INITIALIZED;
bool process_blocking, process_server_keeps;
_Thread_local struct thread *thread_cached __attribute__((tls_model("initial-exec")));

static pthread_mutex_t init = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;
static _Atomic bool forked;             /* the child of a process that had a session */
static _Atomic bool opened;             /* this process has, or had, a session */
static _Atomic uint32_t threads;
static _Atomic int version;

/* Variables of the driver that act at the server; the shim honours the ones about devices itself. */
static const char *const environment[] = {
	"CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_MODULE_DATA_LOADING", "CUDA_CACHE_DISABLE",
	"CUDA_CACHE_MAXSIZE", "CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT", "CUDA_FORCE_JIT",
	"CUDA_DISABLE_JIT", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_MAX_COPY_CONNECTIONS",
	"CUDA_SCALE_LAUNCH_QUEUES", "CUDA_GRAPHS_USE_NODE_PRIORITY",
	"CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT", "CUDA_BINARY_LOADER_THREAD_COUNT",
	"CUDA_MODULE_LAZY_LOADING", "SCUDAFS_SOFT_CHECK",
};

CUresult process_die(int error, const char *what)
{
	int code = error == -ESHUTDOWN ? CUDA_ERROR_MPS_CLIENT_TERMINATED : CUDA_ERROR_MPS_RPC_FAILURE;
	int live = 0;
	if (atomic_compare_exchange_strong(&process_code, &live, code)) {
		log_errno(error, "%s: %m: the session is over", what);
		return (CUresult)code;
	}
	return (CUresult)live;
}

int process_driver_version(void)
{
	int v = atomic_load_explicit(&version, memory_order_relaxed);
	return v ? v : DRIVER_VERSION;
}

static void thread_ended(void *p)
{
	struct thread *t = p;
	thread_cached = NULL;
	if (t->exchanged && process_check() == CUDA_SUCCESS) {
		uint8_t bytes[sizeof(struct frame)];
		struct record r = {.bytes = bytes, .kind = FRAME_THREAD_END, .thread = t->id};
		int e = channel_post(&r);
		if (e && e != -ENOMEM)
			process_die(e, "the end of a thread");
	}
	channel_thread_finish();
	context_thread_ends(t);
	free(t->out);
	free(t->stack);
	free(t);
}

static void in_child(void)
{
	init = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (!atomic_load(&opened))
		return;
	atomic_store(&forked, true);
	atomic_store(&process_code, CUDA_ERROR_NOT_INITIALIZED);
	channel_forget();
}

static void at_exit(void)
{
	int live = 0;
	atomic_compare_exchange_strong(&process_code, &live, CUDA_ERROR_DEINITIALIZED);
}

static void prepare(void)
{
	log_init("libcuda", -1);
	call_trace(log_enabled(LOG_LEVEL_DEBUG));
	have_key = pthread_key_create(&key, thread_ended) == 0;
	pthread_atfork(arena_forking, arena_forked, in_child);
}

struct thread *thread_create(void)
{
	pthread_once(&once, prepare);
	struct thread *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->id = atomic_fetch_add(&threads, 1) + 1;
	t->out = malloc(sizeof(struct frame) + LIMIT_HEAD + LAUNCH_PARAMS);
	if (!t->out || (have_key && pthread_setspecific(key, t))) {
		free(t->out);
		free(t);
		return NULL;
	}
	return thread_cached = t;
}

struct start { void *(*run)(void *); void *arg; char name[16]; };

static void *start_thread(void *p)
{
	struct start s = *(struct start *)p;
	free(p);
	prctl(PR_SET_NAME, s.name, 0, 0, 0);
	return s.run(s.arg);
}

int process_thread(void *(*run)(void *), void *arg, size_t stack, const char *name)
{
	struct start *s = malloc(sizeof *s);
	if (!s)
		return -ENOMEM;
	*s = (struct start){.run = run, .arg = arg};
	strncpy(s->name, name, sizeof s->name - 1);
	const size_t least = (size_t)PTHREAD_STACK_MIN;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack)
		pthread_attr_setstacksize(&attr, stack < least ? least : stack);
	/* The application's signals are for its own threads. */
	sigset_t all, before;
	sigfillset(&all);
	/* But for what its own pages bring about when we touch them (node.c). */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_t t;
	int e = pthread_create(&t, &attr, start_thread, s);
	if (e == EINVAL && stack) {
		/* A program's thread-local variables may need more than the small stack that we asked for. */
		pthread_attr_destroy(&attr);
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		e = pthread_create(&t, &attr, start_thread, s);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (e)
		free(s);
	return -e;
}

static void put_command(struct msg *m)
{
	char line[LIMIT_NAME + 1] = "";
	if (program_invocation_short_name)
		strncpy(line, program_invocation_short_name, sizeof line - 1);
	put_text(m, line);
}

/* The calls by the number of their list; or, for a server of another build, one by one. */
static void put_hello(struct msg *m, bool listed)
{
	const char *user = getenv("USER");
	char name[LIMIT_NAME + 1] = "";
	strncpy(name, user ? user : "", sizeof name - 1);
	put_map(m, 8);
	put_text(m, "protocol"), put_u64(m, PROTOCOL_VERSION);
	put_text(m, "version"), put_text(m, VERSION);
	put_text(m, "pid"), put_u64(m, (uint64_t)getpid());
	put_text(m, "uid"), put_u64(m, getuid());
	put_text(m, "user"), put_text(m, name);
	put_text(m, "command"), put_command(m);
	if (!listed)
		put_text(m, "list"), put_u64(m, CALL_LIST);
	else
		put_text(m, "calls"), put_array(m, CALL_COUNT);
	for (unsigned i = 0; listed && i < CALL_COUNT; i++) {
		put_array(m, 2);
		put_text(m, call_names[i].name);
		put_u64(m, call_names[i].signature);
	}
	unsigned n = 0;
	const unsigned known = sizeof environment / sizeof *environment;
	for (unsigned i = 0; i < known; i++)
		n += getenv(environment[i]) && strlen(getenv(environment[i])) < LIMIT_NAME;
	put_text(m, "env"), put_map(m, n);
	for (unsigned i = 0; i < known; i++) {
		const char *v = getenv(environment[i]);
		if (v && strlen(v) < LIMIT_NAME)
			put_text(m, environment[i]), put_text(m, v);
	}
}

/* *again: the server wants to see the list. */
static bool take_hello(struct msg *m, bool *again)
{
	char field[64];
	bool snapshot = false;
	size_t n = get_map(m, 64);
	for (size_t i = 0; i < n && !m->bad; i++) {
		get_text(m, field, sizeof field);
		if (!strcmp(field, "protocol")) {
			if (get_u64(m) != PROTOCOL_VERSION)
				return false;
		} else if (!strcmp(field, "again")) {
			*again = get_bool(m);
		} else if (!strcmp(field, "keeps")) {
			process_server_keeps = get_bool(m);
		} else if (!strcmp(field, "snapshot")) {
			snapshot = device_read_snapshot(m);
			if (!snapshot)
				return false;
		} else if (!strcmp(field, "unknown")) {
			size_t unknown = get_array(m, CALL_COUNT);
			for (size_t j = 0; j < unknown; j++) {
				uint64_t id = get_u64(m);
				if (id >= CALL_COUNT)
					return false;
				log_info("the server lacks %s", call_names[id].name);
				call_lacks((unsigned)id);
			}
		} else {
			get_skip(m);
		}
	}
	return (snapshot || *again) && get_end(m);
}

/* The answer is the server's own map; a server that refuses ends the session instead. */
static CUresult hello(struct thread *t, bool listed)
{
	bool again = false;
	struct msg m;
	msg_init(&m, t->out + sizeof(struct frame), LIMIT_HEAD);
	put_hello(&m, listed);
	if (m.bad)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct record r = {.bytes = t->out, .head_len = (uint32_t)m.len, .kind = FRAME_HELLO,
			.thread = t->id};
	struct answer a;
	t->exchanged = true;
	int e = channel_wait(&r, 8192, &a);
	if (e) {
		log_errno(e, "hello: %m");
		return e == -ESHUTDOWN ? CUDA_ERROR_MPS_CLIENT_TERMINATED : CUDA_ERROR_MPS_CONNECTION_FAILED;
	}
	msg_init(&m, (void *)a.head, a.frame.head_len);
	if (!take_hello(&m, &again) || (again && listed)) {
		log_error("the server's hello cannot be understood");
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	}
	return again ? hello(t, true) : CUDA_SUCCESS;
}

static CUresult open_code(int e, const char *path)
{
	log_errno(e, "%s: %m", path);
	switch (e) {
	case -ENOENT:
	case -ENOTDIR:
		/* The node may be there although the server's own socket file is not. */
		return access(path, F_OK) ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_MPS_CONNECTION_FAILED;
	case -EUSERS:
		return CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_MPS_CONNECTION_FAILED;
	}
}

static char directory[PATH_MAX];

const char *process_directory(void)
{
	return directory;
}

/* The program may change its own folder later. */
static void note_directory(const char *mount)
{
	if (!realpath(mount, directory))
		snprintf(directory, sizeof directory, "%s", mount);
}

static CUresult start(void)
{
	static bool exit_handler;
	struct thread *t = thread_self();
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	const char *mount = getenv("SCUDAFS_MOUNT");
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/ctl", mount && *mount ? mount : MOUNT_DEFAULT);
	if (n < 0 || (size_t)n >= sizeof path)
		return CUDA_ERROR_NO_DEVICE;
	uncancelled state = uncancelled_begin();
	int e = channel_open(path);
	if (e)
		return open_code(e, path);
	atomic_store(&opened, true);
	note_directory(mount && *mount ? mount : MOUNT_DEFAULT);
	CUresult r = hello(t, false);
	if (!r) {
		channel_settle();
		device_apply_environment(getenv("CUDA_DEVICE_ORDER"), getenv("CUDA_VISIBLE_DEVICES"));
		if (device_count() == 0)
			r = CUDA_ERROR_NO_DEVICE;
		else if (!context_init(device_count()))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r) {
		channel_close();
		atomic_store(&opened, false);
		return r;
	}
	const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
	process_blocking = blocking && atoi(blocking) != 0;
	version = device_driver_version();
	if (!exit_handler)
		exit_handler = atexit(at_exit) == 0;
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int Flags)
{
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = process_check();
	if (r != CUDA_ERROR_NOT_INITIALIZED || atomic_load(&forked))
		return r;
	int saved = errno;
	pthread_once(&once, prepare);
	pthread_mutex_lock(&init);
	r = process_check();
	if (r == CUDA_ERROR_NOT_INITIALIZED) {
		r = start();
		if (!r)
			atomic_store(&process_code, CUDA_SUCCESS);
	}
	pthread_mutex_unlock(&init);
	errno = saved;
	return r;
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = process_driver_version();
	return CUDA_SUCCESS;
}
