/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to ctl: a batch and the wait for an answer in one ioctl, larger answers fetched behind it.
 *
 * Thread rule: any thread that keeps the descriptor (session.h). */
#include "devshim/nvml/session.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "devshim/count.h"
#include "wire/limits.h"

static unsigned long wait_class(size_t n)
{
	return n <= 256 ? CTL_WAIT_256 : n <= 1024 ? CTL_WAIT_1K : n <= 4096 ? CTL_WAIT_4K : CTL_WAIT_16K;
}

static ssize_t read_at(int fd, void *p, size_t n, int64_t at)
{
	ssize_t r;
	do
		r = pread(fd, p, n, at);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : r;
}

/* Fetches an answer of n bytes that does not fit into the ioctl. */
static int fetch(int fd, struct call *c, uint64_t seq, size_t n)
{
	if (n > sizeof(struct frame) + LIMIT_HEAD + LIMIT_REPLY)
		return -EPROTO;
	free(c->large);
	c->large = malloc(n);
	for (size_t at = 0; c->large && at < n;) {
		size_t piece = n - at < LIMIT_BATCH ? n - at : LIMIT_BATCH;
		ssize_t r = read_at(fd, c->large + at, piece, CTL_REPLY(seq) + (int64_t)at);
		if (r <= 0)
			return r ? (int)r : -EPROTO;
		at += (size_t)r;
	}
	return c->large ? 0 : -ENOMEM;
}

int exchange_answer(int fd, struct call *c, uint64_t batch, uint64_t seq, size_t n, const uint8_t **answer,
	size_t *answer_len)
{
	struct ctl_wait w = {.batch = batch, .seq = seq, .len = (uint32_t)n};
	unsigned long request;

	for (;;) {
		/* Answers are small as a rule; a larger one is fetched. */
		request = wait_class(sizeof w + (w.len > 1000 ? w.len : 1000));
		memcpy(c->room, &w, sizeof w);
		if (ioctl(fd, request, c->room) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		memcpy(&w, c->room, sizeof w);
		if (!(w.flags & CTL_AGAIN))
			break;
		w = (struct ctl_wait){.seq = seq};
	}
	*answer_len = w.len;
	*answer = c->room + sizeof w;
	count_received(w.len);
	if (!(w.flags & CTL_LARGE))
		return w.len <= _IOC_SIZE(request) - sizeof w ? 0 : -EPROTO;
	int r = fetch(fd, c, seq, w.len);
	*answer = c->large;
	return r;
}

bool exchange_answers(const uint8_t *answer, size_t n, uint64_t seq)
{
	struct frame a;
	const char *why;

	if (n < sizeof a)
		return false;
	memcpy(&a, answer, sizeof a);
	return !frame_check(&a, false, &why) && a.kind == FRAME_REPLY && a.seq == seq && !a.bulk_len &&
	       n == sizeof a + a.head_len;
}

int exchange_take(struct call *c, uint64_t seq, const uint8_t *answer, size_t n)
{
	if (!exchange_answers(answer, n, seq))
		return -EPROTO;
	msg_init(&c->in, (void *)(answer + sizeof(struct frame)), n - sizeof(struct frame));
	return 0;
}
