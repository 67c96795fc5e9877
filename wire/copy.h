/* SPDX-License-Identifier: Apache-2.0 */
/* The copy records, as both ends see them (devshim/copy.c, server/serve_copy.c). */
#pragma once

/* On which stream a copy runs, and when its call is over. */
enum copy_mode {
	COPY_SYNC, /* the default stream (FRAME_PTDS: the thread's own), over when the copy is */
	COPY_ASYNC, /* the stream that follows */
	/* a stream of the server's own, over when the copy is: the program holds the order by other means */
	COPY_ASIDE,
	/* to the device, as COPY_ASYNC, where what is ahead on the stream ends only when the program lets it
	 * */
	COPY_HELD,
};

/* The server takes the bytes of COPY_HELD into slots of their own, each of so many bytes, until their turn;
 * the program sends no more of them: whoever had to wait for a slot would hold up what frees it. */
#define COPY_SLOT ((size_t)1 << 20)
#define COPY_HELD_SLOTS 2

#define COPY_SMALL (64u << 10) /* bytes that the driver itself takes at once from pageable memory */
#define COPY_DELIVERY                                                                                        \
	(64u << 10) /* bytes of a copy to the host that may be told later; larger ones are fetched at their  \
		       turn */
#define COPY_DELIVERIES (512u << 10) /* bytes of all that wait to be told, of one program */
#define COPY_DELIVERIES_MOST 1024 /* and how many they may be: one answer tells all that are done */

/* Bytes to the host up to COPY_MEDIUM travel in pieces of COPY_PIECE, so that even of so few one piece is on
 * its way while another is put in place; more than that in pieces of LIMIT_REPLY. */
#define COPY_PIECE ((size_t)256 << 10)
#define COPY_MEDIUM ((size_t)2 << 20)

/* A copy to the device at its stream's turn travels in pieces of so many bytes: two of them fit into
 * LIMIT_QUEUE. */
#define COPY_ASIDE_PIECE ((size_t)4 << 20)
