/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake server and the test program agree on: the `call` of a record says what the server does
 * with it. Numbers are raw u64 in the head. */
#pragma once

enum peer_call {
	PEER_ECHO,          /* WAIT: the reply has the same head */
	PEER_DATA,          /* WAIT: {transfer, bytes, piece}: bytes of DATA in pieces, then the reply */
	PEER_COUNT,         /* WAIT: the reply has {bytes, sum} of all bulk so far */
	PEER_BULK,          /* WAIT: {bytes}: the reply has so much bulk */
	PEER_UPCALL,        /* WAIT: {count}: so many UPCALLs, the reply when all are done */
	PEER_SLOW,          /* WAIT: {milliseconds} until the reply */
	PEER_BYE,
	PEER_CLOSE,
	PEER_BAD,           /* a frame that no server sends */
	PEER_UNASKED,       /* a reply that nobody waits for */
	PEER_LATE_DATA,     /* WAIT as PEER_DATA, but the reply comes first */
};

static inline unsigned char peer_byte(unsigned long long transfer, unsigned long long offset)
{
	return (unsigned char)(transfer * 31 + offset * 7 + (offset >> 12) * 13);
}
