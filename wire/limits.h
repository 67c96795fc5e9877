/* SPDX-License-Identifier: Apache-2.0 */
/* Every number that a peer could choose, with the most that we accept. A value past its limit ends the
 * session with one log line. */
#pragma once

#define LIMIT_HEAD          (64u << 10)     /* bytes of a frame's msgpack head */
#define LIMIT_BULK          (256ull << 30)  /* bytes of a record's bulk (a copy to the device streams through,
                                             * it is never held) */
#define LIMIT_REPLY         (1u << 20)      /* bytes of a reply's own bulk and of one DATA frame's bulk */
#define LIMIT_IMAGE         (2u << 30)      /* bytes of a module image */
#define LIMIT_UPCALL        (64u << 10)     /* bytes of an UPCALL frame */
#define LIMIT_BATCH         (1u << 20)      /* bytes of one write to ctl (FUSE max_write) */
#define LIMIT_QUEUE         (8u << 20)      /* bytes that the daemon keeps for a session in one direction */
#define LIMIT_CACHE         (2ull << 30)    /* bytes of one client's images that a server keeps on its disk */
#define LIMIT_CACHE_FILES   8192            /* and files */
#define LIMIT_CACHE_NOTES   (64u << 10)     /* bytes of notes kept with one image */
#define LIMIT_ARENA         (16ull << 30)   /* bytes of memory for large copies that one program shares with
                                             * its mount */
#define LIMIT_LENT          (256ull << 20)  /* bytes of staging memory that a server lends to a mount for a
                                             * session */
#define LIMIT_CALLS         4096            /* entries of a hello's function list */
#define LIMIT_NAME          128             /* bytes of an API name, a client name, a host name, without the
                                             * NUL */
#define LIMIT_STRING        (32u << 10)     /* bytes of any other string in a head */
#define LIMIT_ARRAY         (1u << 20)      /* elements of an array parameter */
#define LIMIT_METADATA      4096u           /* opaque bytes of NVML's metadata of a vGPU or its host */
#define LIMIT_UNASKED       64              /* elements of an array whose room the program does not tell */
#define LIMIT_BODIES        (1u << 16)      /* graphs of one conditional node */
#define LIMIT_DEVICES       64              /* GPUs of one server */
#define LIMIT_ATTRIBUTES    256             /* device attributes in a snapshot */
#define LIMIT_SNAPSHOT      (64u << 10)     /* bytes of a snapshot */
#define LIMIT_THREADS       4096            /* live application threads of a session */
#define LIMIT_HANDLES       (1u << 22)      /* live handles of a session */
#define LIMIT_PENDING       64              /* connections without a preamble; and sessions that have not
                                             * authenticated */
#define LIMIT_SESSIONS      128             /* sessions of one server */
#define LIMIT_SHARED        8192            /* handles that the sessions of a server show each other */
#define LIMIT_SHARED_EACH   1024            /* those of one session, and descriptors of one mount */
#define LIMIT_KEYS          1024            /* lines of a key file */
#define LIMIT_MIRRORS       4096            /* ranges of memory that a program and its GPU use in place */
#define LIMIT_MIRROR        (16ull << 30)   /* bytes of them in all; each end keeps a second copy of what is
                                             * in use */
#define LIMIT_DEPTH         8               /* nesting of msgpack in a head */

/* Times, milliseconds, monotonic clock. What the thread sanitizer is built into takes ten times as long for
 * everything, and has four times as long for it, as its tests have (SLOW). */
#ifdef __SANITIZE_THREAD__
#define TIMES 4
#else
#define TIMES 1
#endif
#define TIME_PREAMBLE       (TIMES * 3000)  /* accept to a complete preamble */
#define TIME_TLS            (TIMES * 10000) /* TLS handshake */
#define TIME_YOUNG          (TIMES * 3000)  /* a session that has said nothing yet may still be about to */
#define TIME_CONNECT        (TIMES * 4000)  /* the daemon's connect, handshake included: a mount
                                             * fails within 5 s */
#define TIME_HEARTBEAT      2000            /* a PING from the daemon */
#define TIME_DEAD           (TIMES * 6000)  /* nothing received: the peer is dead */
#define TIME_SILENCE        (TIMES * 9000)  /* the server's: nothing came from a mount, which sends a PING
                                             * every TIME_HEARTBEAT */
#define TIME_PARK           (TIMES * 5000)  /* a parked FUSE request is answered CTL_AGAIN after this */
