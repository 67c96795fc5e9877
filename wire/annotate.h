/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the API description (wire/cuda.h), all of them empty to the compiler. wire/gen.py gives them
 * their meaning; docs/api.md explains them. */
#pragma once

/* On a line of its own, once: prefix of the generated names, result type, its codes for an invalid argument,
 * no memory, an unsupported function and a forbidden one; VERSIONED: every entry has SINCE. */
#define API(prefix, result, ...)

/* After a parameter, only where C does not say it. Without a word: a scalar or handle by value is sent,
 * `const T *` is one T sent, `T *` one T returned. */
#define BYTES(n)        /* a buffer of n bytes (n: a parameter), sent when const, else returned */
#define COUNT(n)        /* an array of n elements (n: a parameter), sent when const, else returned */
#define TEXT(cap)       /* a returned string in a buffer of cap bytes */
#define STRING          /* a sent string */
#define INOUT           /* sent and returned */
#define IN              /* sent although not const */
#define OPTIONAL        /* may be NULL */
#define OPAQUE          /* the pointer's value itself is sent */
#define UNSENT          /* does not travel */
#define VIA(codec)      /* put_codec and get_codec, and exec_ both in the server, by hand, know how */
#define RAW             /* a struct sent as its bytes although it holds a pointer, which means nothing on
                         * Linux */
#define ORDINAL(path)   /* a sent struct whose CUmemLocation at .path (empty: itself) holds a device
                         * ordinal */
#define VALUE           /* a handle: one that is none is an invalid value in this call */
#define DROP            /* the first handle: dies when the call succeeds */
#define ALTER           /* the first handle: the call changes what its attributes say */

/* After the prototype: how the call is answered. Without a word: it waits for the server. */
#define LOCAL           /* by the shim alone */
#define CACHED(what)    /* by the shim from what it asked once, until `what`; remote_NAME asks */
#define POST            /* queued, no answer awaited; an error is told by a later call */
#define NEW             /* a posted create: the client chooses the handle */
#define SAME(name)      /* the same function under an older name */
#define SHIM            /* the export is written by hand in devshim/ and uses the generated remote_NAME */
#define SERVE           /* the server runs serve_NAME, written by hand, in place of the driver's function */
#define HAND            /* both ends are written by hand, with their own encoding */
#define PRIVATE         /* HAND: between the two ends only, no export */
#define GUARDED         /* changes a shared card: only where the server was started with consent */
#define FREES           /* managed memory may end with the call */
#define SYNCS           /* after it the program may read what the device wrote */
#define CONFIGURES      /* from then on what is told of functions and occupancy is no other program's */
#define ACTS            /* not a mere question, although it returns something: not to be asked ahead */
#define ALWAYS          /* results travel back with an error code too */
#define UNSUPPORTED(why) /* exported, answers CUDA_ERROR_NOT_SUPPORTED; why: a string */
#define GIVES(code)     /* UNSUPPORTED: and the code that a driver would give here */
#define ANYTIME         /* needs no current context; without a word: one that is not lost */
#define UNLOST          /* needs none, but not one that is lost */
#define SINCE(version)  /* the least CUDA version for which cuGetProcAddress gives this symbol */
#define PTSZ(version)   /* a _ptsz flavour (per-thread default stream) exists, since version */
#define PTDS(version)   /* a _ptds flavour exists, since version */
