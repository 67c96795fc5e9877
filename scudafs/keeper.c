/* SPDX-License-Identifier: Apache-2.0 */
/* See keeper.h. Thread rule: `lock` guards all of a keeper; a file belongs to the caller while its state is
 * KEPT_THERE. */
#include "scudafs/keeper.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "scudafs/clock.h"
#include "wire/limits.h"

void keeper_init(struct keeper *k)
{
	memset(k, 0, sizeof(*k));
	pthread_mutex_init(&k->lock, NULL);
	k->end = &k->queue;
}

static void append(struct keeper *k, struct kept *file)
{
	file->next = NULL;
	*k->end = file;
	k->end = &file->next;
}

void keeper_open(struct keeper *k, struct kept *file)
{
	int error = getrandom(&file->token, sizeof(file->token), 0) == sizeof(file->token) ? 0 : -EIO;
	pthread_mutex_lock(&k->lock);
	if (!error && !k->up)
		error = -ECONNREFUSED;
	if (!error) {
		file->state = KEPT_NEW;
		file->connection = k->connection;
		append(k, file);
	}
	pthread_mutex_unlock(&k->lock);
	if (error)
		file->done(file, error);
}

bool keeper_close(struct keeper *k, struct kept *file)
{
	pthread_mutex_lock(&k->lock);
	/* Another connection knows nothing of it. */
	bool tell = k->up && file->connection == k->connection;
	if (tell) {
		file->state = KEPT_CLOSED;
		append(k, file);
	}
	pthread_mutex_unlock(&k->lock);
	if (!tell)
		free(file);
	return tell;
}

void keeper_up(struct keeper *k)
{
	pthread_mutex_lock(&k->lock);
	k->connection++;
	k->up = true;
	pthread_mutex_unlock(&k->lock);
}

void keeper_down(struct keeper *k, int error)
{
	pthread_mutex_lock(&k->lock);
	struct kept *list = k->asked;
	*k->end = NULL;
	struct kept *queue = k->queue;
	k->asked = k->queue = NULL;
	k->end = &k->queue;
	k->up = false;
	pthread_mutex_unlock(&k->lock);
	for (int i = 0; i < 2; i++, list = queue)
		while (list) {
			struct kept *file = list;
			list = file->next;
			if (file->state == KEPT_CLOSED)
				free(file);
			else
				file->done(file, -error);
		}
}

bool keeper_next(struct keeper *k, struct frame *f)
{
	pthread_mutex_lock(&k->lock);
	struct kept *file = k->queue;
	if (file) {
		k->queue = file->next;
		if (!k->queue)
			k->end = &k->queue;
		bool open = file->state == KEPT_NEW;
		*f = (struct frame){.kind = open ? FRAME_KEEP : FRAME_DROP,
			.seq = file->token.word[0],
			.ctx = file->token.word[1]};
		if (open) {
			file->state = KEPT_ASKED;
			file->asked_at = clock_ms();
			file->next = k->asked;
			k->asked = file;
		} else {
			free(file);
		}
	}
	pthread_mutex_unlock(&k->lock);
	return file != NULL;
}

bool keeper_is_overdue(struct keeper *k)
{
	uint64_t now = clock_ms();
	bool overdue = false;
	pthread_mutex_lock(&k->lock);
	for (struct kept *file = k->asked; file; file = file->next)
		overdue |= clock_since(now, file->asked_at) >= TIME_DEAD;
	pthread_mutex_unlock(&k->lock);
	return overdue;
}

bool keeper_answer(struct keeper *k, const struct frame *f)
{
	pthread_mutex_lock(&k->lock);
	struct kept **at = &k->asked;
	while (*at && ((*at)->token.word[0] != f->seq || (*at)->token.word[1] != f->ctx))
		at = &(*at)->next;
	struct kept *file = *at;
	if (file) {
		*at = file->next;
		file->state = KEPT_THERE;
	}
	pthread_mutex_unlock(&k->lock);
	if (!file)
		return false;
	file->done(file, f->call ? -ENOSPC : 0);
	return true;
}
