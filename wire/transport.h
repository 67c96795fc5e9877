/* SPDX-License-Identifier: Apache-2.0 */
/* What wire/stream.c and wire/connect.c share; for nobody else. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;
struct key;
struct keys;

int64_t transport_now_ms(void);
/* A clear stream over fd. */
struct stream *stream_new(int fd);
/* The handshake: a client gives its key, a server its keys. -EACCES when it failed, -EPROTO when the server said BYE in clear (stream_unread has it). */
int stream_handshake(struct stream *s, const struct key *key, const struct keys *keys, int64_t deadline);
/* Bytes received and not looked at. */
size_t stream_unread(const struct stream *s, const void **p);
/* True when p starts like a FRAME_BYE rather than a TLS record. */
bool transport_is_bye(const void *p, size_t n);
/* What every connection wants of its socket: no delay, an end to silent death. */
int transport_options(int fd, bool nonblocking);
