/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver tells by itself or keeps for who asks: its log, notices about a device, core dumps,
 * checkpoints. */
#include <stdbool.h>
#include "check.h"

static int messages;
static bool same_thread, ended, a_level;
static pthread_t of;

static void CUDA_CB told(void *n, CUlogLevel level, char *text, size_t len)
{
	messages += *(int *)n;
	same_thread = pthread_equal(of, pthread_self());
	ended = strlen(text) == len;
	a_level = level == CU_LOG_LEVEL_ERROR || level == CU_LOG_LEVEL_WARNING;
	SAY("~ %d: %.*s", level, (int)len, text);
}

static void CUDA_CB asks(void *n, CUlogLevel level, char *text, size_t len)
{
	CUdeviceptr p = 0;

	(void)n, (void)level, (void)text, (void)len;
	SAY("~ from inside: %s", name_of(cuMemAlloc(&p, 64)));
}

/* An error that every driver finds: a kernel in a shape that no device takes. */
static void err(CUfunction f)
{
	SAY("launch -> %s", name_of(cuLaunchKernel(f, 1, 1, 1, 5000, 1, 1, 0, NULL, NULL, NULL)));
}

static void tell_lines(char *text)
{
	char copy[25600], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *line; (line = strsep(&rest, "\n"));)
		SAY("~ %s", line);
}

static void logs(void)
{
	CUlogsCallbackHandle h = NULL, second = NULL;
	CUlogIterator it = 0, behind;
	int one = 1, ten = 10;
	char text[25600], small[8], path[64];
	size_t n = sizeof(text);
	FILE *f;

	begin();
	CUfunction nothing = kernel("nothing");
	of = pthread_self();
	ASK(cuLogsCurrent(&it, 0));
	ASK(cuLogsCurrent(&behind, 3));
	ASK(cuLogsCurrent(NULL, 0));
	ASK(cuLogsRegisterCallback(NULL, NULL, &h));
	ASK(cuLogsRegisterCallback(told, &one, &h));
	SAY("a handle %d", h != NULL);
	err(nothing);
	SAY("told %d, by this thread %d, ended %d, level %d", messages > 0, same_thread, ended, a_level);
	messages = 0;
	ASK(cuLogsRegisterCallback(told, &ten, &second));
	err(nothing);
	SAY("both told %d", messages > 0 && messages % 11 == 0);
	ASK(cuLogsUnregisterCallback(h));
	messages = 0;
	err(nothing);
	SAY("the second told %d", messages > 0 && messages % 10 == 0);
	ASK(cuLogsUnregisterCallback(second));
	messages = 0;
	err(nothing);
	SAY("told %d", messages);
	ASK(cuLogsRegisterCallback(asks, NULL, NULL));
	err(nothing);

	behind = it;
	ASK(cuLogsDumpToMemory(&behind, text, &n, 0));
	SAY("some text %d, ended %d, went on %d", n > 0,
			n < sizeof(text) && text[n] == 0 && strlen(text) == n, behind != it);
	tell_lines(text);
	n = sizeof(text);
	ASK(cuLogsDumpToMemory(&behind, text, &n, 0));
	SAY("no more %d", n == 0);
	n = sizeof(small);
	behind = it;
	ASK(cuLogsDumpToMemory(&behind, small, &n, 0));
	SAY("size %zu", n);
	n = sizeof(text);
	ASK(cuLogsDumpToMemory(NULL, text, &n, 0));
	SAY("some text %d", n > 0);
	snprintf(path, sizeof(path), "/tmp/log.%d", (int)getpid());
	unlink(path);
	behind = it;
	SAY("to a file -> %s", name_of(cuLogsDumpToFile(&behind, path, 0)));
	f = fopen(path, "r");
	SAY("a file %d", f != NULL);
	if (f) {
		SAY("some text %d", fread(text, 1, sizeof(text), f) > 0);
		fclose(f);
	}
	SAY("nothing to a file -> %s", name_of(cuLogsDumpToFile(&behind, path, 0)));
	f = fopen(path, "r");
	if (f) {
		SAY("some text %d", fread(text, 1, sizeof(text), f) > 0);
		fclose(f);
	}
	unlink(path);
	VARY(cuLogsDumpToFile(NULL, "/nowhere/at/all", 0));
}

static void CUDA_CB noticed(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle h)
{
	(void)info, (void)data, (void)h;
}

static void devices(void)
{
	CUasyncCallbackHandle h = NULL;

	begin();
	ASK(cuDeviceRegisterAsyncNotification(device, NULL, NULL, &h));
	ASK(cuDeviceRegisterAsyncNotification(99, noticed, NULL, &h));
	if (ASK(cuDeviceRegisterAsyncNotification(device, noticed, NULL, &h)) == CUDA_SUCCESS) {
		ASK(cuDeviceUnregisterAsyncNotification(99, h));
		ASK(cuDeviceUnregisterAsyncNotification(device, h));
	}
}

static void core_dumps(void)
{
	static const CUcoredumpSettings which[] = {CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_TRIGGER_HOST,
		CU_COREDUMP_LIGHTWEIGHT, CU_COREDUMP_ENABLE_USER_TRIGGER, CU_COREDUMP_FILE, CU_COREDUMP_PIPE,
		CU_COREDUMP_GENERATION_FLAGS, CU_COREDUMP_MAX, 0};
	char v[1024];
	size_t n;
	bool off = false, on = true;

	begin();
	for (int global = 0; global < 2; global++)
		for (size_t i = 0; i < COUNT(which); i++) {
			CUresult r;

			memset(v, 0, sizeof(v));
			n = sizeof(v);
			r = global ? cuCoredumpGetAttributeGlobal(which[i], v, &n)
				   : cuCoredumpGetAttribute(which[i], v, &n);
			SAY("%s%d -> %s", global ? "global " : "", which[i], name_of(r));
			SAY("~ %zu bytes: %d %s", n, *(int *)v, v);
		}
	n = 1;
	ASK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, v, &n));
	SAY("~ %zu", n);
	ASK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, NULL, &n));
	SAY("~ %zu", n);
	ASK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, v, NULL));
	n = sizeof(bool);
	ASK(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &off, &n));
	ASK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &off, &n));
	ASK(cuCoredumpSetAttribute(99, &off, &n));
	/* Refused through a mount, where the file would be the GPU host's. */
	VARY(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &n));
	VARY(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &n));
}

static void checkpoints(void)
{
	int tid = 0;
	CUprocessState state = 9;

	begin();
	VARY(cuCheckpointProcessGetRestoreThreadId(getpid(), &tid));
	VARY(cuCheckpointProcessGetState(getpid(), &state));
}

SECTIONS({"logs", logs}, {"devices", devices}, {"core_dumps", core_dumps}, {"checkpoints", checkpoints})
